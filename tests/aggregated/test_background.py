"""If these fail, labels are mistaken for what all samples have in common."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen.aggregated import background as module
from umpteen.aggregated.assignment import similarities
from umpteen.aggregated.background import Background
from umpteen.aggregated.embeddings import Search
from umpteen.aggregated.problem import Problem

from . import literal

ALL = 100  # directions, more than there are


def wide_problem(seed, overlap=False):
    """More groups than features, so that directions can be complete."""
    small = literal.random_problem(seed, overlap=overlap, n=150, d=10, n_groups=40, n_labels=6)
    return small, Problem.of(*small.sparse)


def similarity(problem, background, iterations=0):
    search = Search(iterations, 0.1, background)
    return similarities(problem, search, 0, 1)[0]


def centred_sums(small):
    rows = literal.unit_rows(small.X, center=True)
    return rows, small.groups.astype(float) @ rows


def within_groups(small, table):
    """Scores of each label of each group, less their mean, at length one: what ranks samples."""
    for members, counts in zip(small.groups, small.counts, strict=True):
        for label in np.flatnonzero(counts):
            values = table[members, label]
            if members.sum() > 2:
                yield values - values.mean()


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("ridge", [0.03, 1.0, 10.0])
def test_shrunk_similarity_is_ridge_regression(overlap, ridge, monkeypatch):
    monkeypatch.setattr(module, "_RIDGES", (ridge,))
    monkeypatch.setattr(module, "_n_judges", lambda problem: 0)  # directions of all groups
    for seed in range(5):
        small, problem = wide_problem(seed, overlap)
        found = similarity(problem, Background.of_groups(problem, ALL, 0)).toarray()
        rows, sums = centred_sums(small)
        filled = small.groups.any(axis=1)
        penalty = ridge * (sums[filled] ** 2).sum() / filled.sum()
        gram = sums.T @ sums + penalty * np.eye(sums.shape[1])
        wanted = rows @ np.linalg.solve(gram, sums.T @ small.counts)
        factor = {}
        for label in np.flatnonzero(small.counts.any(axis=0)):
            one = literal.Small(small.X, small.groups, small.counts * (np.arange(6) == label))
            ours = np.concatenate(list(within_groups(one, found)))
            theirs = np.concatenate(list(within_groups(one, wanted)))
            factor[label] = ours @ theirs / (theirs @ theirs)
            np.testing.assert_allclose(ours, factor[label] * theirs, atol=2e-4 * np.abs(ours).max())
        assert min(factor.values()) > 0


def test_shrinking_matters():
    """The comparison above would pass if nothing were shrunk and nothing needed to be."""
    small, problem = wide_problem(0)
    shrunk = similarity(problem, Background.of_groups(problem, ALL, 0)).toarray()
    plain = similarity(problem, Background.of_mean(problem.X)).toarray()
    likeness = [
        a @ b / np.sqrt(a @ a * (b @ b))
        for a, b in zip(within_groups(small, shrunk), within_groups(small, plain), strict=True)
    ]
    assert min(likeness) < 0.9


def test_iterations_against_a_background_equal_the_literal_loop():
    """With directions shrunk: samples seen through the square root of what is left of them."""
    small, problem = wide_problem(1)
    background = Background.of_groups(problem, 4, 0)
    u = background.directions.astype(float)
    root = np.eye(len(u)) + u @ np.diag(np.sqrt(1 - background.shrink.astype(float)) - 1) @ u.T
    rows = literal.unit_rows(small.X, center=True) @ root
    for label in range(1, 6):
        weights = small.counts[:, label]
        own = [j for j in np.flatnonzero(weights) if small.groups[j].any()]
        e = literal.unit(sum(weights[j] * rows[small.groups[j]].sum(axis=0) for j in own))
        for _ in range(5):
            best = [
                np.flatnonzero(small.groups[j])[(rows[small.groups[j]] @ e).argmax()] for j in own
            ]
            closest = sum(weights[j] * rows[i] for j, i in zip(own, best, strict=True))
            e = literal.unit(e + 0.1 * literal.unit(closest))
        found = similarity(problem, background, iterations=5).toarray()
        one = literal.Small(small.X, small.groups, small.counts * (np.arange(6) == label))
        wanted = np.repeat((rows @ e)[:, None], 6, axis=1)
        for ours, theirs in zip(within_groups(one, found), within_groups(one, wanted), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_directions_are_those_of_the_groups():
    """As numpy's SVD finds them."""
    small, problem = wide_problem(2)
    background = Background.of_groups(problem, 3, 0)
    _, _, right = np.linalg.svd(centred_sums(small)[1])
    cosines = np.abs((right[:3] * background.directions.T).sum(axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-3)
    np.testing.assert_allclose(
        background.directions.T @ background.directions, np.eye(3), atol=1e-5
    )
    assert (np.diff(background.shrink) <= 0).all()
    assert background.shrink.max() < 1


def test_no_directions_are_the_mean_alone():
    small, problem = wide_problem(3)
    for background in (Background.of_groups(problem, 0, 0), Background.of_mean(problem.X)):
        assert background.directions.shape == (10, 0)
        wanted = literal.unit_rows(small.X).mean(axis=0)
        np.testing.assert_allclose(background.mean, wanted, atol=1e-6)


def test_few_groups_are_held_against_the_mean_alone():
    """Directions of a handful of groups are the labels that are looked for."""
    rng = np.random.default_rng(0)
    X, numbers = rng.random((57, 5)), np.arange(57) // 3  # 19 groups
    problem = Problem.of(X, numbers, [[0, 1]] * 19)
    assert Background.of_groups(problem, 8, 0).directions.shape[1] == 0
    problem = Problem.of(np.vstack([X, X[:3]]), [*numbers, 19, 19, 19], [[0, 1]] * 20)
    assert Background.of_groups(problem, 8, 0).directions.shape[1] == 5


def test_the_same_seed_gives_the_same_background():
    _, problem = wide_problem(4)
    one, two = (Background.of_groups(problem, 4, 7) for _ in range(2))
    for part in ("mean", "directions", "shrink"):
        np.testing.assert_array_equal(getattr(one, part), getattr(two, part))


def test_a_mean_of_many_samples_is_exact():
    """In float32, a hundred thousand like values add up to something else."""
    X = csr_matrix(np.full((200_000, 1), 0.1, np.float32))
    assert Background.of_mean(X).mean[0] == np.float32(0.1)


def test_samples_without_any_spread_do_no_harm():
    problem = Problem.of(np.ones((60, 4)), np.arange(60) // 2, [[0]] * 15 + [[1]] * 15)
    background = Background.of_groups(problem, 3, 0)
    assert np.isfinite(background.shrink).all()
    assert np.isfinite(similarity(problem, background).data).all()
