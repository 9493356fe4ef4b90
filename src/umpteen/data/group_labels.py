"""Labels that stand in a file once per group, or on every row of it."""

from umpteen.data.samples import Samples
from umpteen.errors import GroupsError


def labels_of_groups(samples: Samples) -> dict[str, list[str]]:
    """Return the labels of each group, from samples that were read with `group_field`.

    The labels of a group are on one of its rows, such as the first, or on several rows, which then
    have to agree. A group without labels has an empty list.

    >>> rows = {"texts": ["a", "b", "c"], "groups": ["p", "p", "q"]}
    >>> labels_of_groups(Samples(**rows, labels=[["red", "red"], [], ["blue"]]))
    {'p': ['red', 'red'], 'q': ['blue']}
    """
    if samples.groups is None:
        raise GroupsError("the samples have no groups: read them with group_field=")
    found: dict[str, list[str]] = {}
    for row, (group, labels) in enumerate(
        zip(samples.groups, samples.labels or [[]] * len(samples), strict=True)
    ):
        before = found.setdefault(group, [])
        if labels and before and sorted(labels) != sorted(before):
            raise GroupsError(
                f"sample {row:,} of group {group!r} has the labels {labels!r:.80}, and another one "
                f"{before!r:.80}. Give the labels of a group on its first row, or the same labels "
                "on all rows. If these are the labels of single samples, do not use groups"
            )
        found[group] = before or labels
    return found
