"""Figure 3 and Figure 6: when does it help to assign the labels of a group to its samples?"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from papers.contents import Block, Section, Table, Value
from papers.drawing import lines
from papers.eagle.simulations import (
    DEVIATIONS,
    PAPER,
    Outcome,
    classification,
    regression,
)
from papers.eagle.theory import FloatArray, theorem1_rate
from papers.progress import progress_bar

_N_RUNS = 40
_LENGTHS = (1.0, 0.316)
_SIZES = (
    f"Synthetic, {PAPER.n_samples:,} samples in groups of {PAPER.group_size}, "
    f"{PAPER.n_features} features, {PAPER.n_labels} outputs"
)


def sections(quick: bool) -> list[Section]:
    """Figure 3, which is also the left of Figure 6, and the right of Figure 6."""
    n_runs = 4 if quick else _N_RUNS
    return [
        Section(
            "Figure 3, regression",
            "the more the samples of a group differ, the better is assignment (AS); where they "
            "hardly differ it is slightly worse than learning from the groups' sums (NoAS).",
            f"{_SIZES}, {n_runs} runs.",
            partial(_regression, n_runs),
        ),
        Section(
            "Figure 6, classification",
            "AS becomes significantly better than NoAS as the samples of a group differ more.",
            f"{_SIZES}, {n_runs} runs. The printed prior of a group's labels does not add up to "
            "1; here the preferred label is exp(s2) times as likely as any other, so a larger s2 "
            "makes samples of a group more alike, unlike in Figure 3.",
            partial(_classification, n_runs),
        ),
    ]


def _regression(n_runs: int) -> Iterator[Block]:
    runs = [_repeat(partial(regression, within), n_runs) for within in DEVIATIONS]  # (runs, 4) each
    relative = [run[:, 1:3] / run[:, :1] for run in runs]
    means, spreads = ([f(r, axis=0) for r in relative] for f in (np.mean, np.std))
    rates = [theorem1_rate(PAPER.group_size, 1.0, within) for within in DEVIATIONS]
    yield Table(
        "Error relative to the oracle that knows which output is whose; mean and standard "
        "deviation over runs. The paper's number is the ratio of Theorem 1's rates.",
        ["s2 (within a group)", "NoAS", "AS", "rightly assigned, %"],
        [
            [f"{s2:g}", Value(m[0], s[0], rate), Value(m[1], s[1]), _percent(run[:, 3])]
            for s2, m, s, rate, run in zip(DEVIATIONS, means, spreads, rates, runs, strict=True)
        ],
    )
    yield lines(
        "Error relative to the oracle (lower is better)",
        [f"{s2:g}" for s2 in DEVIATIONS],
        _curves(means) | {"NoAS by Theorem 1": rates},
        spreads=_curves(spreads),
        x_label="s2, deviation of samples within a group",
        y_label="error / oracle's error",
    )
    worse = [s2 for s2, m in zip(DEVIATIONS, means, strict=True) if m[1] > m[0] + 0.005]
    if worse:
        s2 = max(worse, key=lambda s2: means[DEVIATIONS.index(s2)][1])
        no, yes = means[DEVIATIONS.index(s2)]
        right = 100 * runs[DEVIATIONS.index(s2)][:, 3].mean()
        yield (
            f"AS is worse for s2 in {', '.join(f'{s2:g}' for s2 in worse)}, most of all at "
            f"{s2:g}: {yes:.2f} against {no:.2f}, because only {right:.0f} % of the outputs go to "
            f"their own sample. NoAS tends to the square root of the group size, "
            f"{PAPER.group_size**0.5:.2f}."
        )


def _classification(n_runs: int) -> Iterator[Block]:
    yield (
        "The paper gives the noise of the samples, 0.1, but not the length of the labels' "
        "embeddings; with length 1 labels hardly overlap, with 0.316 (0.1 per feature) they do."
    )
    for length in _LENGTHS:
        runs = [
            _repeat(partial(classification, s2, length=length), n_runs) for s2 in DEVIATIONS
        ]  # (runs, 4) each
        relative = [_relative(run) for run in runs]
        yield Table(
            f"Wrong answers in % (mean and standard deviation over runs), embeddings of length "
            f"{length:g}; relative: all wrong answers over all of the oracle's",
            ["s2 (sameness)", "oracle", "NoAS", "AS", "NoAS, relative", "AS, relative",
             "rightly assigned, %"],
            [
                [f"{s2:g}", *(_percent(run[:, i]) for i in range(3)),
                 *(None if r is None else Value(r) for r in ratios), _percent(run[:, 3])]
                for s2, ratios, run in zip(DEVIATIONS, relative, runs, strict=True)
            ],
        )  # fmt: skip
        yield lines(
            f"Error relative to the oracle (lower is better), embeddings of length {length:g}",
            [f"{s2:g}" for s2 in DEVIATIONS],
            {name: [ratios[i] for ratios in relative] for i, name in enumerate(("NoAS", "AS"))},
            x_label="s2, sameness of labels within a group",
            y_label="error / oracle's error",
            logarithmic=True,
        )


def _repeat(simulate: Callable[[np.random.Generator], Outcome], n_runs: int) -> FloatArray:
    """Errors of the oracle, NoAS and AS and the share rightly assigned, `(n_runs, 4)`."""
    found = []
    with progress_bar("Simulating", n_runs) as advance:
        for run in range(n_runs):
            outcome = simulate(np.random.default_rng(run))
            found.append([*vars(outcome).values()])
            advance()
    return np.array(found)


def _relative(run: FloatArray) -> tuple[float | None, float | None]:
    oracle, no, yes = run[:, :3].sum(axis=0)
    return (float(no / oracle), float(yes / oracle)) if oracle else (None, None)


def _percent(shares: FloatArray) -> Value:
    return Value(100 * float(shares.mean()), 100 * float(shares.std(ddof=1)))


def _curves(pairs: list[FloatArray]) -> dict[str, list[float]]:
    return {"NoAS": [float(p[0]) for p in pairs], "AS": [float(p[1]) for p in pairs]}
