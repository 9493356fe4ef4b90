"""Files of texts whose labels are known per group, and `umpteen assign`."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer

from umpteen.cli.errors import UsageError
from umpteen.cli.models import Model, Verify, load_tagger
from umpteen.cli.output import Json
from umpteen.cli.predict import write_answers
from umpteen.cli.reading import Reading, named, reads_file
from umpteen.cli.shards import check_output

Group = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Column of each text's group, if labels are known per group only."
    ),
]
GroupLabels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Labels of groups, if not in FILE: columns NAME and 'labels'."
    ),
]


@dataclass(frozen=True)
class GroupedTexts:
    """Texts, the group of each, and the labels of each group."""

    texts: list[str]
    groups: list[str]
    group_labels: dict[str, list[str]]
    ids: list[str] | None

    def __len__(self) -> int:
        return len(self.texts)

    def figures(self) -> dict[str, Any]:
        """Return what there is to learn from."""
        sizes, lists = list(Counter(self.groups).values()), list(self.group_labels.values())
        repeated = any(len(set(labels)) < len(labels) for labels in lists)
        return {
            "samples": len(self),
            "groups": len(sizes),
            "texts_per_group": f"{min(sizes):,} to {max(sizes):,}, median {median(sizes):g}",
            "labels": len({name for labels in lists for name in labels}),
            "labels_per_group": f"{mean(len(set(labels)) for labels in lists):.1f} on average",
            "groups_without_labels": sum(not labels for labels in lists),
            "labels_are": "counts: some are repeated in a group"
            if repeated
            else "presence: none is repeated in a group",
        }


def read_grouped(
    file: Path | list[Path], reading: Reading, group: str, group_labels: Path | None
) -> GroupedTexts:
    """Read texts and their groups, and the labels of groups from the same or another file."""
    from umpteen.data import labels_of_groups
    from umpteen.validation import check_named_groups

    options = reading.options | ({} if group_labels is None else {"labels_field": ""})
    samples = replace(reading, options=options).read(file, group_field=group)
    if len(samples) == 0:
        raise UsageError(
            f"{named(file)} has no texts: expected a line for each text, with its {group!r}"
        )
    texts, groups = samples.texts, samples.groups
    if texts is None or groups is None:
        raise UsageError(f"--group is for files of texts, and {named(file)} holds matrices")
    lists = (
        labels_of_groups(samples)
        if group_labels is None
        else _labels_of_file(group_labels, reading, group)
    )
    check_named_groups(groups, lists, len(texts))
    if not any(lists.values()):
        raise UsageError(
            f"no group of {group_labels or named(file)} has labels: expected a column "
            "'labels', with the labels of a group on its first row. Name another column with "
            "--labels-column, or another file with --group-labels"
        )
    return GroupedTexts(texts, groups, lists, samples.ids)


def _labels_of_file(path: Path, reading: Reading, group: str) -> dict[str, list[str]]:
    """The labels of groups in a file of their own, where each group has one row."""
    from umpteen.errors import DataFormatError

    wanted = {"labels_field", "label_separator"}
    options = {name: value for name, value in reading.options.items() if name in wanted}
    try:
        found = Reading(None, options | {"text_field": group}).read(path, group_field=group)
    except DataFormatError as error:  # the column of groups stands in for texts
        raise DataFormatError(str(error).replace("text_field", "group_field")) from None
    lists: dict[str, list[str]] = {}
    for name, labels in zip(found.groups or [], found.labels or [], strict=True):
        if name in lists:
            raise UsageError(f"{path} has the group {name!r} twice: expected one row per group")
        lists[name] = labels
    return lists


def refuse_alone(group: str | None, group_labels: Path | None) -> None:
    """Refuse labels of groups without groups."""
    if group is None and group_labels is not None:
        raise UsageError("--group-labels needs --group, the column with the group of each text")


@reads_file
def assign(
    model: Model,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Texts in groups with labels; - for stdin.")
    ],
    reading: Reading,
    group: Annotated[
        str, typer.Option(metavar="NAME", help="Column of each text's group.", show_default=False)
    ],
    group_labels: GroupLabels = None,
    none_of_these: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="P",
            help="Leave out a label if the chance that any text of the group has it is lower.",
        ),
    ] = 0.0,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave texts out of the output.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write JSONL to this file instead."),
    ] = None,
    verify: Verify = None,
    json: Json = None,
) -> None:  # fmt: skip
    """Assign the labels of each group to its texts.

    \b
    FILE has texts, their groups, and the labels of each group on its first row, as in pages.csv:
      page,text,labels
      p1,Simmer the sauce.,cooking|garden
      p1,Prune the roses in spring.,
    \b
    Example:
      umpteen assign model/ pages.csv --group page -o paragraphs.jsonl
    \b
    The output has a line for each text, in the same order; a score is the probability that the
    text has the label, given that its group has it:
      {"group": "p1", "text": "Simmer the sauce.", "labels": [{"label": "cooking", "score": 0.98}]}
    """
    check_output(None if output is None else str(output), [file])
    tagger = load_tagger(model, "assign", verify=verify)
    given = read_grouped(file, reading, group, group_labels)
    answers = tagger.assign(
        given.texts, given.groups, given.group_labels, none_of_these=none_of_these
    )
    records = (
        {
            "id": None if given.ids is None else given.ids[i],
            "group": given.groups[i],
            "text": None if no_text else given.texts[i],
            "labels": [{"label": label, "score": score} for label, score in tags],
            "last": i + 1 == len(answers),
        }
        for i, tags in enumerate(answers)
    )
    write_answers(records, output, json)
