"""Labels grouped by how often they were seen in training: where a model is good, and where not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.metrics.hits import Hits
from umpteen.metrics.propensity import Scored
from umpteen.metrics.ranking import ratio

_HEAD, _TORSO = 0.5, 0.8


@dataclass(frozen=True)
class LabelGroup:
    """Labels of similar frequency, and how well they are found.

    `fewest` and `most` are training samples per label, `test_share` is the share of all
    relevant (sample, label) pairs of the test, `recall` the share of the group's own that was
    found, `precision` what the group's hits add to precision at k, and `psp` what they add to
    PSP at k, where there is one.
    """

    name: str
    n_labels: int
    fewest: int
    most: int
    test_share: float
    recall: float
    precision: float
    psp: float | None = None

    @property
    def span(self) -> str:
        """Training samples per label, from the rarest to the most frequent."""
        few, most = f"{self.fewest:,}", f"{self.most:,}"
        return most if few == most else f"{few}-{most}"


def bands(
    hits: Hits, counts: npt.NDArray[np.int64], k: int, scored: Scored | None = None
) -> list[LabelGroup]:
    """Return head, torso and tail; and unseen, if test labels were never seen in training.

    The head are the most frequent labels, up to half of all training occurrences; the torso
    reaches up to 80 %; the tail is the rest. Labels of equal frequency stay together. Groups
    without labels are left out; `precision` and `psp` of all groups add up to those at k.
    """
    more_frequent = _share_of_more_frequent(counts)
    seen = counts > 0
    members = {
        "head": seen & (more_frequent < _HEAD),
        "torso": seen & (more_frequent >= _HEAD) & (more_frequent < _TORSO),
        "tail": seen & (more_frequent >= _TORSO),
        "unseen": ~seen & (hits.relevant_per_label > 0),
    }
    return list(_groups(hits, counts, k, members, scored))


def deciles(
    hits: Hits, counts: npt.NDArray[np.int64], k: int, scored: Scored | None = None
) -> list[LabelGroup]:
    """Return ten groups of equally many labels seen in training, the most frequent first."""
    by_frequency = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    tenths = {f"decile {i + 1}": tenth for i, tenth in enumerate(np.array_split(by_frequency, 10))}
    return list(_groups(hits, counts, k, tenths, scored))


def _groups(
    hits: Hits,
    counts: npt.NDArray[np.int64],
    k: int,
    members: dict[str, Any],
    scored: Scored | None,
) -> Iterator[LabelGroup]:
    relevant, found = hits.relevant_per_label, hits.per_label(k)
    possible = 0.0 if scored is None else scored.possible(k)
    for name, labels in members.items():
        frequency = counts[labels]
        if len(frequency) == 0:
            continue
        yield LabelGroup(
            name=name,
            n_labels=len(frequency),
            fewest=int(frequency.min()),
            most=int(frequency.max()),
            test_share=ratio(relevant[labels].sum(), relevant.sum()),
            recall=ratio(found[labels].sum(), relevant[labels].sum()),
            precision=ratio(found[labels].sum(), k * len(hits)),
            psp=None if scored is None else ratio(found[labels] @ scored.worth[labels], possible),
        )


def _share_of_more_frequent(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return, for each label, the share of all occurrences that more frequent labels have.

    >>> _share_of_more_frequent(np.array([1, 6, 2, 1]))
    array([0.8, 0. , 0.6, 0.8])
    """
    values, value_of, n_labels = np.unique(counts, return_inverse=True, return_counts=True)
    up_to = np.cumsum(values * n_labels)
    total = max(int(counts.sum()), 1)
    return np.asarray((total - up_to)[value_of] / total, np.float64)
