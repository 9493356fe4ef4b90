"""The appendix's inequalities, tried with numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.contents import Block, Cell, Section, Table, Value

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """Scores of some labels, which of them are relevant, k, c and d."""

    scores: Floats
    relevant: npt.NDArray[np.bool_]
    k: int
    c: float
    d: float

    @classmethod
    def drawn(cls, random: np.random.Generator, lowest_c: float, highest_c: float) -> "Case":
        """At random, with at least k relevant labels and one that is not, as Claim 20 asks."""
        n_labels = int(random.integers(2, 30))
        n_relevant = int(random.integers(1, n_labels))
        relevant = random.permutation(n_labels) < n_relevant
        lean = random.random() * 2  # how far relevant labels are ahead
        scores = np.clip(random.uniform(-1, 1, n_labels) + lean * relevant, -1, 1)
        c, d = random.uniform(lowest_c, highest_c), 1 + 4 * random.random()
        return cls(scores, relevant, int(random.integers(1, n_relevant + 1)), c, d)


def precision_loss(case: Case) -> float:
    """Definition 1: the share of the best k labels that are not relevant."""
    best = np.argsort(-case.scores, kind="stable")[: case.k]
    return 1 - float(case.relevant[best].mean())


def ramp_loss(case: Case, gamma: float) -> float:
    """Definition 3: the same by how far the best relevant labels are above all others."""
    own = np.sort(case.scores[case.relevant])[::-1][: case.k]
    ahead = own - case.scores[~case.relevant].max()
    return 1 - float(np.clip(ahead / gamma, 0, 1).sum()) / case.k


def hinge_loss(case: Case, upper: float, lower: float) -> float:
    """The proof's: what relevant labels lack to `upper`, and others have above `lower`."""
    own, others = case.scores[case.relevant], case.scores[~case.relevant]
    return float(np.maximum(upper - own, 0).sum() + np.maximum(others - lower, 0).sum())


def contrastive_loss(case: Case) -> float:
    """Definition 4."""
    own, others = case.scores[case.relevant], case.scores[~case.relevant]
    of_own = np.log(1 / case.c) + case.d * (1 - own)
    of_others = -np.log(1 - case.c * np.exp(case.d * (others - 1)))
    return float(of_own.sum() + of_others.sum())


def slacks(case: Case) -> dict[str, float]:
    """By how much each inequality holds; negative where it does not."""
    gamma = np.log(4 * case.c) / case.d
    scaled = contrastive_loss(case) / np.log(4 * case.c)
    found = {
        "Claim 21: contrastive ≥ d · hinge": contrastive_loss(case)
        - case.d * hinge_loss(case, 1, 1 - gamma)
    }
    if gamma > 0:
        found["Claim 17: ramp ≥ precision loss"] = ramp_loss(case, gamma) - precision_loss(case)
        found["Claim 20: hinge / gamma ≥ ramp"] = hinge_loss(
            case, 1, 1 - gamma
        ) / gamma - ramp_loss(case, gamma)
        found["Claim 18: contrastive / ln(4c) ≥ ramp"] = scaled - ramp_loss(case, gamma)
    found["Corollary 19: contrastive / ln(4c) ≥ precision loss"] = scaled - precision_loss(case)
    return found


def lemma1_slack(random: np.random.Generator, dim: int, c: float, d: float) -> tuple[float, float]:
    """How far a score moves from a label's text z to its classifier w, and its bound."""
    sample, text, shift = random.standard_normal((3, dim))
    text /= np.linalg.norm(text)
    own = text + random.random() * shift / np.linalg.norm(shift)
    own /= np.linalg.norm(own)
    sample /= np.linalg.norm(sample)
    lacking = c - c * np.exp(d * (text @ own - 1))  # Postulate 2's epsilon
    moved = abs(sample @ own - sample @ text)
    return float(moved), float(np.sqrt(2 * np.exp(2 * d) / (c * d) * lacking))


def sections(quick: bool) -> list[Section]:
    """One section."""
    n_cases = 2_000 if quick else 50_000
    return [
        Section(
            "Appendices A, C and H: bounds",
            "the contrastive loss bounds the loss of precision at k from above (Claims 17 to 21), "
            "for all 0 < c < 1 and d ≥ 1; a label's text is nearly as good as the best classifier "
            "(Lemma 1); log-likelihoods are Lipschitz (Appendix C).",
            f"{n_cases:,} random cases of 2 to 29 labels for each row; slack is the left side "
            "minus the right.",
            partial(_measured, n_cases),
        )
    ]


def _measured(n_cases: int) -> Iterator[Block]:
    ranges = {"c from 0.25 to 1": (0.2501, 0.999), "c below 0.25": (0.01, 0.2499)}
    for said, (lowest, highest) in ranges.items():
        found = tried(n_cases, lowest, highest)
        rows: list[list[Cell]] = [
            [name, _share(values < -1e-9), Value(float(values.min()), digits=4)]
            for name, values in found.items()
        ]
        yield Table(said, ["inequality", "violated", "smallest slack"], rows)
    yield (
        "Below c = 1/4, ln(4c) is negative, and so is gamma: Claim 18 and its corollary, "
        "printed for all c, then say nothing. SiameseXML's c of 0.9 and 0.75 are well above."
    )
    yield _lemma1(n_cases)
    yield _slopes()


def tried(n_cases: int, lowest_c: float, highest_c: float) -> dict[str, Floats]:
    """The slacks of all inequalities in many cases."""
    random = np.random.default_rng(0)
    drawn = [slacks(Case.drawn(random, lowest_c, highest_c)) for _ in range(n_cases)]
    return {name: np.array([case[name] for case in drawn]) for name in drawn[0]}


def _lemma1(n_cases: int) -> Table:
    rows: list[list[Cell]] = []
    for c, d in ((0.9, 1.5), (0.75, 3.0)):
        random = np.random.default_rng(0)
        pairs = np.array([lemma1_slack(random, 8, c, d) for _ in range(n_cases)])
        moved, bound = pairs.T
        tight = float((moved / np.maximum(bound, 1e-12)).max())
        rows.append([f"c = {c}, d = {d}", _share(moved > bound + 1e-9), Value(tight, digits=3)])
    return Table(
        "Lemma 1: random samples, texts and classifiers of 8 numbers",
        ["constants", "violated", "largest share of the bound that is reached"],
        rows,
    )


def slopes(c: float, d: float) -> tuple[float, float]:
    """The steepest of ln p(+1, v) and ln p(-1, v) for v from -1 to 1, by differences."""
    cosines = np.linspace(-1, 1, 200_001)
    own = np.log(c) + d * (cosines - 1)
    others = np.log1p(-c * np.exp(d * (cosines - 1)))
    return tuple(float(np.abs(np.diff(y) / np.diff(cosines)).max()) for y in (own, others))  # type: ignore[return-value]


def _slopes() -> Table:
    rows: list[list[Cell]] = []
    for c, d in ((0.9, 1.5), (0.75, 3.0)):
        own, others = slopes(c, d)
        rows.append([
            f"c = {c}, d = {d}", Value(own, paper=d), Value(others, paper=d * c / (1 - c)),
        ])  # fmt: skip
    return Table(
        "Appendix C: steepest slopes (paper: the bounds d and dc / (1 - c))",
        ["constants", "ln p(+1, v)", "ln p(-1, v)"],
        rows,
    )


def _share(wrong: Any) -> str:
    return f"{int(np.count_nonzero(wrong)):,} of {len(wrong):,}"
