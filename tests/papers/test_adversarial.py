"""If these fail, the page's numbers are not of what it says they are."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from papers.adversarial import figure1, runs, theorems, trees
from papers.adversarial.figure1 import headline, reached
from papers.adversarial.hierarchical import hierarchical
from papers.adversarial.methods import METHODS, ONE, Budget, Tuning
from papers.adversarial.runs import Point, Quality, judged, run
from papers.adversarial.tabular import Tabular
from papers.adversarial.tasks import Judges, Task, as_matrix, task
from papers.sets import rarest_label


def small(sparse=False):
    train, others = hierarchical(40, 12, 400, 60, seed=3)
    form = csr_matrix if sparse else np.asarray
    judges = Judges(form(others.X), others.y)
    return Task("small", form(train.X), as_matrix(train.y, 40), judges, judges)


def test_rarest_label_is_what_a_loop_finds():
    random = np.random.default_rng(0)
    Y = csr_matrix((random.random((60, 12)) < 0.2).astype(np.float32))
    counts = random.integers(0, 8, 12)
    for row, found in enumerate(rarest_label(Y, counts)):
        own = [label for label in Y[row].indices if counts[label] >= 3]
        assert found == min(own, key=lambda label: (counts[label], label), default=-1)


def test_made_up_classes_all_occur_and_relatives_are_near():
    train, others = hierarchical(64, 16, 2_000, 500, noise=0.1, seed=5)
    again, _ = hierarchical(64, 16, 2_000, 500, noise=0.1, seed=5)
    np.testing.assert_array_equal(train.X, again.X)
    assert set(train.y) == set(range(64))
    np.testing.assert_allclose(np.linalg.norm(others.X, axis=1), 1, rtol=1e-5)
    centres = np.stack([train.X[train.y == y].mean(axis=0) for y in range(64)])
    assert ((others.X @ centres.T).argmax(axis=1) == others.y).mean() > 0.5
    cosines = centres @ centres.T - 2 * np.eye(64)
    assert cosines.max(axis=1).mean() > 0.5  # a sibling
    assert abs(np.median(cosines)) < 0.4  # a stranger


def test_text_tasks_have_a_class_for_every_sample():
    chosen = task("pydocs", True)
    assert np.diff(chosen.Y.indptr).tolist() == [1] * chosen.X.shape[0]
    assert np.bincount(chosen.Y.indices, minlength=chosen.n_classes).min() >= 1
    for judges in (chosen.validation, chosen.test):
        assert judges.X.shape[0] == len(judges.y) > 0
        assert judges.y.max() < chosen.n_classes


@pytest.mark.parametrize("sparse", [False, True])
def test_quality_is_that_of_a_softmax_over_all_classes(sparse, monkeypatch):
    chosen = small(sparse)
    monkeypatch.setattr(runs, "_BLOCK_SCORES", 40 * 7)  # blocks of 7 rows
    trained = run(chosen, {**ONE, "learning_rate": 0.3, "tree": 1.0}, 0.2)
    scores = trained.state.model.table(chosen.test.X)
    noise = trained.state.noise
    logs = noise.log_prob_table(noise.reduce(chosen.test.X))
    found = judged(trained.state, chosen.test, is_corrected=True)
    for quality, table in zip(found, (scores + logs, scores), strict=True):
        expected = log_softmax(table.astype(np.float64), axis=1)
        own = expected[np.arange(len(chosen.test.y)), chosen.test.y]
        assert quality.likelihood == pytest.approx(own.mean(), abs=1e-4)
        hits = (expected.argmax(axis=1) == chosen.test.y).mean()
        assert quality.accuracy == pytest.approx(100 * hits)


def test_seconds_of_a_curve_begin_with_the_tree_and_judging_is_free(monkeypatch):
    chosen = small()
    ticks = iter(range(10_000))
    monkeypatch.setattr(runs.time, "perf_counter", lambda: float(next(ticks)))
    trained = run(chosen, {"tree": 1.0, "n_jobs": 1}, 30.0, chosen.test)
    seconds = [point.seconds for point in trained.points]
    assert trained.noise_seconds > 0
    assert seconds[0] > trained.noise_seconds
    assert seconds == sorted(seconds)
    assert trained.seconds < 40  # each look at the clock is a second


def test_tuning_keeps_to_its_trials_and_takes_the_best(monkeypatch):
    worth = {0.1: 5.0, 0.3: 9.0, 1.0: 7.0, 0.03: 1.0}
    tried = []

    class Trial:
        def __init__(self, setting):
            self.setting = setting

        def judge(self, judges):
            penalty = abs(self.setting["regularizer"] - 1e-3)
            accuracy = worth[self.setting["learning_rate"]] - penalty
            return Point(0.0, Quality(accuracy, 0.0), Quality(0.0, 0.0))

    def fake(task, setting, seconds, free_noise):
        tried.append(setting)
        return Trial(setting)

    monkeypatch.setattr("papers.adversarial.methods.run", fake)
    tuning = Tuning(small(), METHODS[1], Budget(1.0, 8, 1.0, 10))
    assert (tuning.best["learning_rate"], tuning.best["regularizer"]) == (0.3, 1e-3)
    assert len(tried) == len(tuning.tried) <= 8
    tried.clear()
    assert len(Tuning(small(), METHODS[0], Budget(1.0, 3, 1.0, 10)).tried) == len(tried) == 3


def curve(*pairs):
    return [Point(s, Quality(a, 0.0), Quality(0.0, 0.0)) for s, a in pairs]


def test_headline_is_the_time_to_where_the_best_baseline_ends():
    slow = curve((1.0, 10.0), (8.0, 20.0))
    curves = {"adversarial": curve((1.0, 15.0), (2.0, 25.0)), "umpteen": curve((1.0, 5.0))}
    curves |= dict.fromkeys(figure1.BASELINES, slow)
    assert reached(curves["adversarial"], 20.0) == pytest.approx(1.5)
    assert reached(slow, 21.0) is None
    assert reached(slow, 3.0) == 1.0
    (table,) = headline(curves)
    ratios = {row[0]: row[2] and row[2].ours for row in table.rows}
    assert ratios["adversarial"] == pytest.approx(8 / 1.5)
    assert ratios["umpteen"] is None
    assert ratios["uniform"] == 1


def test_theorem_1_holds_for_every_noise_and_only_corrected():
    tabular = Tabular.drawn(4_000, seed=1)
    for name, noise in tabular.noises().items():
        np.testing.assert_allclose(np.exp(tabular.log_noise(noise)).sum(axis=1), 1, rtol=1e-5)
        corrected, uncorrected = tabular.deviations(tabular.optimum(noise), noise)
        assert corrected < 1e-6
        assert uncorrected < 1e-6 if name == "uniform" else uncorrected > 0.1
        early, late = (deviation for deviation, _ in tabular.trained(noise, (1, 40)))
        assert late < early
        assert late < 0.3


def test_small_sections_give_tables_and_figures(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(trees, "_QUICK", (8, 16))
    for section in [*trees.sections(True), theorems.sections(True)[0]]:
        kinds = {type(part).__name__ for part in section.measure()}
        assert "Table" in kinds
