"""Figure 2 at the optimum, and Theorem 2: sets that are missing or rare, minima and saddles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from papers.collapse.unconstrained import Solution, UnconstrainedFeatures
from papers.contents import Block, Cell, Section, Table, Value
from umpteen.metrics import collapse_measures

_PENALTY = 0.005
_FLAT, _ROUNDING = 1e-6, 1e-7


def sections(quick: bool) -> list[Section]:
    """Uneven sets, then the landscape."""
    return [
        Section(
            "Figure 2 at the optimum: pairs missing or rare",
            "collapse does not need balanced sets of several labels: where some pairs have few "
            "samples or none, the others still lie on the sums of their labels.",
            "The unconstrained-features model with one sample per label; L-BFGS, the best of "
            f"{1 if quick else 3} start(s). 0 is perfect for every measure; NCm as in the paper.",
            partial(_uneven, 1 if quick else 3),
        ),
        Section(
            "Theorem 2: minima and saddles",
            "with more features than labels, every critical point that is no global minimum has a "
            "direction of negative curvature: descent cannot get stuck.",
            "The smallest eigenvalue of the Hessian, by differences of the gradient, at zero, at "
            "optima in fewer dimensions (critical points of the whole space, too, as the gradient "
            "of a column of zeros is zero), and at the optimum; with one feature more than labels. "
            "Samples are the number for each set of so many labels.",
            partial(_landscape, quick),
        ),
    ]


def uneven_cases() -> dict[str, UnconstrainedFeatures]:
    """Models whose pairs have different numbers of samples."""
    pairs = list(combinations(range(4), 2))
    cases: Mapping[str, tuple[int, dict[tuple[int, ...], int]]] = {
        "K = 3, all pairs": (3, {}),
        "K = 3, one pair missing": (3, {(0, 1): 0}),
        "K = 4, one pair missing": (4, {(0, 1): 0}),
        "K = 4, two disjoint pairs missing": (4, {(0, 1): 0, (2, 3): 0}),
        "K = 4, pairs with 1 to 6 samples": (4, {pair: 1 + i for i, pair in enumerate(pairs)}),
    }
    return {
        name: UnconstrainedFeatures(k, {1: 1, 2: 1}, _PENALTY, _PENALTY, counts=counts)
        for name, (k, counts) in cases.items()
    }


def by_penalty() -> dict[float, UnconstrainedFeatures]:
    """One uneven model with penalties of different size."""
    return {
        penalty: UnconstrainedFeatures(3, {1: 1, 2: 1}, penalty, penalty, counts={(0, 1): 0})
        for penalty in (0.0005, 0.002, _PENALTY, 0.02, 0.03)
    }


def balanced_cases(quick: bool) -> list[UnconstrainedFeatures]:
    """Models with different numbers of labels, multiplicities, samples and penalties."""
    shapes: list[tuple[int, dict[int, int]]] = [
        (3, {1: 1}), (3, {1: 1, 2: 1}), (4, {1: 1, 2: 1}), (4, {1: 2, 2: 1}),
        (4, {1: 1, 2: 1, 3: 1}), (5, {1: 1, 2: 1}),
    ]  # fmt: skip
    penalties = [(_PENALTY, _PENALTY), (0.001, 0.001), (0.002, 0.01)]
    if quick:
        shapes, penalties = shapes[:2], penalties[:1]
    return [
        UnconstrainedFeatures(n_labels, samples, *pair, normalize=normalize)
        for n_labels, samples in shapes
        for pair in penalties
        for normalize in ((False, True) if len(samples) > 1 else (False,))
    ]


def measured(model: UnconstrainedFeatures, n_starts: int) -> dict[str, float]:
    """NC2 of classifier and means, and NCm, where descent ends."""
    starts = [model.descend(model.n_labels + 1, seed=seed) for seed in range(n_starts)]
    best = min(starts, key=lambda found: found.objective)
    sets = [list(labels) for labels in model.label_sets]
    found = collapse_measures(best.features, sets, best.weight)
    return {
        "NC2, classifier": float(found.classifier_simplex or 0),
        "NC2, means": found.means_simplex,
        "NCm": found.tagwise_angle[2],
    }


def _uneven(n_starts: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for name, model in uneven_cases().items():
        found = measured(model, n_starts)
        rows.append([name, *(Value(each, digits=4) for each in found.values())])
    yield Table(f"Measures at the optimum, both penalties {_PENALTY:g}", ["model", *found], rows)
    rows = [
        [f"{penalty:g}", *(Value(each, digits=4) for each in measured(model, n_starts).values())]
        for penalty, model in by_penalty().items()
    ]
    yield Table("K = 3, one pair missing, by the penalties", ["both penalties", *found], rows)
    yield (
        "With balanced pairs all measures vanish (Theorem 1). With pairs missing or rare they do "
        "not: the simplex and the sums hold approximately only, also at the optimum."
    )


def critical_points(model: UnconstrainedFeatures) -> dict[str, Solution]:
    """Zero, optima in fewer dimensions, and that of the whole space."""
    dimension = model.n_labels + 1
    found = {}
    for used in range(dimension + 1):
        if used == 0:
            shapes = (model.n_labels, dimension), (len(model.label_sets), dimension)
            zero = (np.zeros(shapes[0]), np.zeros(shapes[1]), np.zeros(model.n_labels))
            found["zero"] = Solution(*zero, model.objective(*zero))
        else:
            flat = model.descend(used)
            wider = [
                np.pad(each, ((0, 0), (0, dimension - used)))
                for each in (flat.weight, flat.features)
            ]
            name = "whole space" if used == dimension else f"{used} dimension(s)"
            found[name] = replace(flat, weight=wider[0], features=wider[1])
    return found


def _landscape(quick: bool) -> Iterator[Block]:
    model = UnconstrainedFeatures(4, {1: 1, 2: 1}, _PENALTY, _PENALTY)
    rows: list[list[Cell]] = []
    for name, point in critical_points(model).items():
        rows.append([
            name, Value(point.objective - model.optimum().objective, digits=5),
            f"{model.steepness(point):.1e}", f"{model.smallest_curvature(point):+.1e}",
        ])  # fmt: skip
    columns = ["critical point", "above the optimum", "gradient", "smallest eigenvalue"]
    yield Table("K = 4, all sets of one and two labels, 5 features", columns, rows)
    yield _all_landscapes(balanced_cases(quick))


def _all_landscapes(models: Sequence[UnconstrainedFeatures]) -> Table:
    rows: list[list[Cell]] = []
    for model in models:
        above, at = curvatures(model)
        penalties = f"{model.weight_penalty:g} and {model.feature_penalty:g}"
        loss = "divided by the number of labels" if model.normalize else "summed"
        rows.append([
            f"K = {model.n_labels}, samples {model.samples}, penalties {penalties}, loss {loss}",
            len(above), f"{max(above):+.1e}" if above else None, f"{min(at):+.1e}",
        ])  # fmt: skip
    columns = ["model", "points above the optimum", "their largest smallest eigenvalue",
               "smallest eigenvalue at the optimum"]  # fmt: skip
    return Table(f"All critical points found, {len(models)} models", columns, rows)


def curvatures(model: UnconstrainedFeatures) -> tuple[list[float], list[float]]:
    """Return smallest eigenvalues at critical points above the optimum, and at the optimum."""
    best = model.optimum().objective
    above: list[float] = []
    at: list[float] = []
    for point in critical_points(model).values():
        if model.steepness(point) > _FLAT:
            continue  # not critical
        place = above if point.objective > best + _ROUNDING else at
        place.append(model.smallest_curvature(point))
    return above, at
