"""If these fail, the page says wrong things about what the paper leaves open."""

from itertools import product

import numpy as np
import pytest

from papers.eagle import readings


@pytest.mark.parametrize("seed", range(5))
def test_no_embedding_is_better_than_the_best(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4, 3, 2))
    chosen = [X[np.arange(4), list(which)].sum(axis=0) for which in product(range(3), repeat=4)]
    best = max(np.linalg.norm(total) for total in chosen)
    assert readings.best_objective(X) == pytest.approx(best)
    angles = np.linspace(0, 2 * np.pi, 5000)
    tried = [readings.objective(X, np.array([np.cos(a), np.sin(a)])) for a in angles]
    assert max(tried) == pytest.approx(best, rel=1e-4)


def test_algorithm_1_is_near_the_best_and_never_above():
    gaps = [readings.gap(np.random.default_rng(seed)) for seed in range(40)]
    assert min(gaps) > -1e-6
    assert 0 < np.mean(gaps) < 0.1


def test_sections_make_their_tables_on_a_small_set(monkeypatch):
    monkeypatch.setattr(readings, "available", lambda names: ["pydocs"])
    monkeypatch.setattr(readings, "task", lambda name, quick: small_task())
    found = {section.title: list(section.measure()) for section in readings.sections(quick=True)}
    assert [len(found[title]) for title in found] == [2, 1, 1, 1]
    merges = found["List or set of labels"][0].rows
    assert len(merges) == 6
    assert all(0 <= row[-1].ours <= 1 or np.isnan(row[-1].ours) for row in merges)
    costs = found["Appendix A, cost"][0].rows
    assert all(row[2].ours > 0 and row[3].ours > 0 for row in costs)


def small_task():
    import umpteen as um
    from papers.eagle.grouped_data import Task

    data = um.data.make_extreme(n_samples=600, n_features=300, n_labels=40, random_state=0)
    return Task("small", data.train.X, data.train.Y, data.test.X, data.test.Y)
