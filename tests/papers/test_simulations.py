"""If these fail, the page shows other simulations than the paper's."""

import numpy as np
import pytest

from papers.eagle.simulations import PAPER, Size, classification, prior, regression

# An independent replica of Figure 3: error relative to the oracle's for NoAS and AS, 40 runs.
FIGURE_3 = {0.0: (1.00, 1.00), 0.1: (1.01, 1.27), 1.0: (1.41, 1.95), 5.0: (2.80, 1.04),
            10.0: (3.24, 1.00)}  # fmt: skip


def runs(simulate, *args, n_runs=40, **options):
    outcomes = [simulate(*args, np.random.default_rng(run), **options) for run in range(n_runs)]
    return np.array([list(vars(outcome).values()) for outcome in outcomes])


@pytest.mark.parametrize("within", FIGURE_3)
def test_figure_3(within):
    errors = runs(regression, within)
    relative = (errors[:, 1:3] / errors[:, :1]).mean(axis=0)
    np.testing.assert_allclose(relative, FIGURE_3[within], rtol=0.07)


def test_figure_3_crosses_between_1_and_5():
    _, no, yes, right = runs(regression, 1.0).mean(axis=0)
    assert yes > no
    assert right == pytest.approx(0.42, abs=0.03)
    _, no, yes, right = runs(regression, 5.0).mean(axis=0)
    assert yes < no
    assert right > 0.9


def test_figure_6_assignment_helps_where_groups_are_mixed():
    for length in (1.0, 0.316):
        oracle, no, yes, _ = runs(classification, 0.0, n_runs=15, length=length).mean(axis=0)
        assert oracle <= yes < no
    oracle, no, yes, right = runs(classification, 10.0, n_runs=15, length=0.316).mean(axis=0)
    assert no < 1.1 * oracle
    assert no < yes
    assert right > 0.95


@pytest.mark.parametrize("sameness", [0.0, 0.1, 1.0, 5.0, 10.0])
def test_the_prior_adds_up_and_prefers_by_the_exponential(sameness):
    chances = prior(sameness, 2, 5)
    assert chances.sum() == pytest.approx(1)
    assert chances[2] / chances[0] == pytest.approx(np.exp(sameness))


@pytest.mark.parametrize("simulate", [regression, classification])
def test_groups_of_one_are_the_oracle(simulate):
    outcome = simulate(1.0, np.random.default_rng(0), Size(n_samples=200, group_size=1))
    assert outcome.no_assignment == pytest.approx(outcome.oracle, rel=1e-9)
    assert outcome.with_assignment == pytest.approx(outcome.oracle, rel=1e-9)
    assert outcome.rightly_assigned == 1


def test_same_seed_same_bits():
    first, second = (runs(classification, 1.0, n_runs=2) for _ in range(2))
    assert np.array_equal(first, second)
    assert PAPER.groups().shape == (100, 1000)
