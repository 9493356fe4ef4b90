"""The unconstrained-features model: descent against the closed form."""

from itertools import product
from math import comb

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from scipy.optimize import check_grad, minimize
from scipy.sparse import csr_matrix

from papers.collapse.landscape import (
    balanced_cases,
    by_penalty,
    critical_points,
    curvatures,
    measured,
    uneven_cases,
)
from papers.collapse.unconstrained import UnconstrainedFeatures
from umpteen.collapse import EtfHead
from umpteen.collapse.frames import simplex_etf
from umpteen.errors import ParameterError
from umpteen.neural import Targets

CASES = [
    pytest.param(4, {1: 2, 2: 1}, False, id="4 labels, pairs"),
    pytest.param(4, {1: 1, 2: 2, 3: 1}, False, id="4 labels, triples"),
    pytest.param(5, {1: 3, 2: 1}, True, id="5 labels, pairs, normalized"),
    pytest.param(5, {1: 2, 2: 1, 3: 1}, False, id="5 labels, triples"),
    pytest.param(5, {1: 1, 3: 2}, True, id="5 labels, no pairs"),
    pytest.param(4, {1: 2, 4: 3}, False, id="4 labels, all of them at once"),
]


def model_of(n_labels, samples, normalize, share=0.05):
    """A model whose penalties' product is a share of the one from which all is zero."""
    any_penalty = UnconstrainedFeatures(n_labels, samples, 1.0, 1.0, normalize=normalize)
    root = np.sqrt(share * any_penalty.zero_from)
    return UnconstrainedFeatures(n_labels, samples, 3 * root, root / 3, normalize=normalize)


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


@pytest.mark.parametrize(("n_labels", "samples", "normalize"), CASES)
@pytest.mark.parametrize("dimension", ["K", "K - 1", "K + 3"])
def test_descent_reaches_the_closed_form(n_labels, samples, normalize, dimension):
    d = {"K": n_labels, "K - 1": n_labels - 1, "K + 3": n_labels + 3}[dimension]
    model = model_of(n_labels, samples, normalize)
    found, theory = model.descend(d), model.optimum()
    assert found.objective == pytest.approx(theory.objective, abs=1e-9)
    assert (found.weight**2).sum() == pytest.approx(theory.weight_norm, rel=1e-4)
    for labels, feature in zip(model.label_sets, found.features, strict=True):
        rows = found.weight[list(labels)].sum(axis=0)
        if len(labels) == n_labels:
            np.testing.assert_allclose(feature, 0, atol=1e-4)
            continue
        assert cosine(feature, rows) > 0.9999
        coefficient = theory.coefficients[len(labels)]
        np.testing.assert_allclose(feature, coefficient * rows, atol=2e-4)


@pytest.mark.parametrize(("n_labels", "samples", "normalize"), CASES)
def test_at_the_optimum_the_weight_is_a_simplex_and_norms_balance(n_labels, samples, normalize):
    model = model_of(n_labels, samples, normalize)
    found = model.descend(n_labels)
    directions = found.weight / np.linalg.norm(found.weight, axis=1, keepdims=True)
    simplex = simplex_etf(n_labels, n_labels)
    np.testing.assert_allclose(directions @ directions.T, simplex @ simplex.T, atol=1e-4)
    np.testing.assert_allclose(
        model.weight_penalty * (found.weight**2).sum(),
        model.feature_penalty * (found.features**2).sum(),
        rtol=1e-4,
    )


@pytest.mark.parametrize(("n_labels", "samples", "normalize"), CASES)
def test_zero_is_optimal_exactly_from_the_predicted_penalties_on(n_labels, samples, normalize):
    above = model_of(n_labels, samples, normalize, share=1.02)
    below = model_of(n_labels, samples, normalize, share=0.98)
    assert above.optimum().is_zero
    assert not below.optimum().is_zero
    assert np.abs(above.descend(n_labels).weight).max() < 1e-3
    found = below.descend(n_labels)
    assert np.abs(found.weight).max() > 1e-2
    assert found.objective == pytest.approx(below.optimum().objective, abs=1e-9)
    assert found.objective < above_zero(below) - 1e-7


def above_zero(model):
    zeros = np.zeros((model.n_labels, 1)), np.zeros((len(model.label_sets), 1))
    return model.objective(*zeros, np.zeros(model.n_labels))


@pytest.mark.parametrize("normalize", [False, True])
def test_the_optimum_is_the_minimum_of_the_low_dimensional_objective(normalize):
    """Over the norm of W and the gaps themselves, by a search without slopes."""
    n_labels, samples = 5, {1: 2, 2: 1, 3: 1}
    model = model_of(n_labels, samples, normalize, share=0.01)
    multiplicities = np.array([1, 2, 3])
    counts = np.array([2 * 5, 10, 10])

    def objective(values):
        rho, gaps = np.exp(values[0]), values[1:]
        lead = 1 if normalize else multiplicities
        losses = lead * np.log(multiplicities + (n_labels - multiplicities) * np.exp(-gaps))
        coefficients = gaps * (n_labels - 1) / rho
        squares = coefficients**2 * rho / n_labels
        squares *= multiplicities * (n_labels - multiplicities) / (n_labels - 1)
        penalty = model.feature_penalty * (counts * squares).sum() + model.weight_penalty * rho
        return (counts * losses).sum() / counts.sum() + penalty

    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000, "maxfev": 20_000}
    found = minimize(objective, np.ones(4), method="Nelder-Mead", options=options)
    theory = model.optimum()
    assert theory.objective == pytest.approx(found.fun, abs=1e-10)
    assert theory.weight_norm == pytest.approx(np.exp(found.x[0]), rel=1e-4)
    np.testing.assert_allclose(list(theory.gaps.values()), found.x[1:], rtol=1e-4)


def test_slopes_are_those_of_the_objective():
    model = UnconstrainedFeatures(3, {1: 1, 2: 2}, 0.1, 0.2, bias_penalty=0.3)
    shapes = (3, 2), (9, 2), (3,)
    ends = np.cumsum([6, 18, 3])[:-1]

    def parts(values):
        return [p.reshape(s) for p, s in zip(np.split(values, ends), shapes, strict=True)]

    def slope(values):
        return np.concatenate([s.ravel() for s in model._objective_and_slopes(*parts(values))[1]])

    at = np.random.default_rng(0).standard_normal(27)
    assert check_grad(lambda values: model.objective(*parts(values)), slope, at) < 1e-5


def test_a_penalized_bias_is_zero_at_the_optimum():
    plain = model_of(4, {1: 2, 2: 1}, False)
    model = UnconstrainedFeatures(
        4, {1: 2, 2: 1}, plain.weight_penalty, plain.feature_penalty, bias_penalty=0.01
    )
    found = model.descend(5)
    np.testing.assert_allclose(found.bias, 0, atol=1e-4)
    assert found.objective == pytest.approx(plain.optimum().objective, abs=1e-9)


@pytest.mark.parametrize(("n_labels", "samples", "normalize"), CASES)
def test_penalties_without_use_are_those_counted_over_all_label_sets(n_labels, samples, normalize):
    model = UnconstrainedFeatures(n_labels, samples, 1.0, 1.0, normalize=normalize)
    sizes = [len(labels) for labels in model.label_sets]
    assert model.n_samples == len(sizes)
    total = sum((1 / m if normalize else m) * (n_labels - m) for m in sizes)
    expected = total / (4 * len(sizes) ** 2 * n_labels * (n_labels - 1))
    assert model.zero_from == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("n_labels", "samples"), [(50, {25: 1}), (1000, {1: 3, 2: 1}), (1000, {1: 1, 500: 2})]
)
def test_many_labels_are_counted_not_listed(n_labels, samples, normalize):
    """Half of 50 labels make 126,410,606,437,752 sets: a list of them never ends."""
    model = UnconstrainedFeatures(n_labels, samples, 1.0, 1.0, normalize=normalize)
    assert model.n_samples == sum(count * comb(n_labels, m) for m, count in samples.items())
    assert 0 < model.zero_from < 1
    if model.n_samples < 1e250:
        assert model.optimum().is_zero
    if model.n_samples > 1e9:
        with pytest.raises(ParameterError, match="too many samples to list"):
            model.descend(5)


def test_just_below_the_penalties_without_use_the_optimum_of_many_labels_is_not_zero():
    assert not model_of(50, {25: 1}, False, share=0.98).optimum().is_zero
    assert model_of(50, {25: 1}, False, share=1.02).optimum().is_zero


@pytest.mark.parametrize("samples", [{1: 1}, {1: 2, 2: 1}, {2: 1, 4: 1}])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("share", [1e-90, 1e-30, 1 - 1e-9, 1 - 1e-15, 1.0, 1e90])
def test_the_optimum_is_finite_for_any_penalties(samples, normalize, share):
    found = model_of(4, samples, normalize, share).optimum()
    numbers = [found.objective, found.weight_norm, *found.gaps.values()]
    assert np.isfinite([*numbers, *found.coefficients.values()]).all()


def test_more_samples_than_numbers_can_count_are_named():
    with pytest.raises(ParameterError, match="fewer labels"):
        UnconstrainedFeatures(2000, {1000: 1}, 1.0, 1.0).optimum()


def test_samples_are_all_label_sets_of_their_multiplicity():
    sets = UnconstrainedFeatures(3, {2: 2}, 1, 1).label_sets
    assert sets == [pair for pair, _ in product([(0, 1), (0, 2), (1, 2)], range(2))]


@pytest.mark.parametrize("normalize", [True, False])
def test_with_penalties_the_loss_is_the_objective_of_the_theory(normalize):
    model = UnconstrainedFeatures(4, {1: 2, 2: 1}, 0.03, 0.002, normalize=normalize)
    n = len(model.label_sets)
    features = np.random.default_rng(0).standard_normal((n, 6))
    head = EtfHead(
        6, 4, learned=True, bias=False, normalize=normalize, weight_penalty=0.03,
        feature_penalty=0.002 * n,  # of the mean here, of the sum there
    )  # fmt: skip
    targets = Targets.of(csr_matrix(model.targets > 0, dtype=np.float32))
    found = head(torch.from_numpy(features).float(), targets)
    weight = head.weight.detach().numpy().astype(np.float64)
    assert found.item() == pytest.approx(model.objective(weight, features, np.zeros(4)), rel=1e-5)


def test_sets_have_numbers_of_their_own():
    model = UnconstrainedFeatures(3, {1: 2, 2: 1}, 0.01, 0.01, counts={(0, 1): 0, (1,): 5})
    sets = model.label_sets
    assert len(sets) == model.n_samples == 2 + 5 + 2 + 0 + 1 + 1
    assert sets.count((1,)) == 5
    assert (0, 1) not in sets
    for unknown in (model.optimum, lambda: model.zero_from):
        with pytest.raises(ParameterError, match="closed form"):
            unknown()


def test_missing_pairs_bend_the_simplex_and_the_sums():
    """The docs said that pairs still lie on the sums."""
    cases = uneven_cases()
    balanced = measured(cases["K = 3, all pairs"], 2)
    assert max(balanced.values()) < 1e-3
    missing = measured(cases["K = 3, one pair missing"], 2)
    assert missing["NC2, classifier"] > 0.05
    assert missing["NCm"] > 0.02
    away = [measured(model, 1)["NCm"] for model in by_penalty().values()]
    assert away == sorted(away, reverse=True)  # the page says which way it goes
    assert away[0] > 2 * away[-1]


@pytest.mark.parametrize("model", balanced_cases(quick=False)[::4], ids=str)
def test_models_of_other_sizes_and_penalties_have_saddles_only(model):
    above, at = curvatures(model)
    assert len(above) >= model.n_labels - 1
    assert max(above) < -1e-3
    assert min(at) > -1e-6


def test_the_curvature_is_that_of_the_literal_hessian():
    model = UnconstrainedFeatures(3, {1: 1, 2: 1}, 0.02, 0.01)
    point = model.descend(2, max_steps=5)
    shapes = [point.weight.shape, point.features.shape, point.bias.shape]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    targets = torch.from_numpy(model.targets)

    def objective(values):
        weight, features, bias = (
            each.reshape(shape)
            for each, shape in zip(torch.tensor_split(values, ends.tolist()), shapes, strict=True)
        )
        logits = features @ weight.T + bias
        loss = -(targets * logits.log_softmax(1)).sum() / len(logits)
        return loss + 0.02 * weight.square().sum() + 0.01 * features.square().sum()

    arrays = [point.weight, point.features, point.bias]
    values = torch.from_numpy(np.concatenate([each.ravel() for each in arrays]))
    hessian = torch.autograd.functional.hessian(objective, values)
    expected = float(torch.linalg.eigvalsh(hessian)[0])
    assert model.smallest_curvature(point) == pytest.approx(expected, abs=1e-5)


def test_all_critical_points_but_the_optimum_are_saddles():
    model = UnconstrainedFeatures(4, {1: 1, 2: 1}, 0.005, 0.005)
    optimum = model.optimum().objective
    saddles = 0
    for point in critical_points(model).values():
        assert model.steepness(point) < 1e-4
        if point.objective > optimum + 1e-6:
            assert model.smallest_curvature(point) < -1e-4
            saddles += 1
        else:
            assert model.smallest_curvature(point) > -1e-5
    assert saddles >= 3
