"""If these fail, the page's numbers are not of what it says they are."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from papers.adversarial import (
    defaults,
    figure1,
    objectives,
    readings,
    shares,
    signal,
    theorems,
    trained,
    trees,
)
from papers.adversarial.figure1 import headline, reached
from papers.adversarial.hierarchical import hierarchical
from papers.adversarial.methods import METHODS, Quality, measure, train
from papers.adversarial.rates import best_rate
from papers.adversarial.tasks import Samples, Task, as_matrix, task
from papers.adversarial.theorems import NOISES, Tabular
from papers.sets import rarest_label
from umpteen.softmax import AdversarialSoftmax, NoiseTree


def small(sparse=False):
    train, others = hierarchical(40, 12, 400, 60, seed=3)
    form = csr_matrix if sparse else np.asarray
    test = Samples(form(others.X), others.y)
    return Task("small", form(train.X), as_matrix(train.y, 40), test, test)


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
    for samples in (chosen.validation, chosen.test):
        assert samples.X.shape[0] == len(samples.y) > 0
        assert samples.y.max() < chosen.n_classes


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_is_measured_on_all_classes(method, sparse):
    chosen = small(sparse)
    model, seconds = train(chosen, METHODS[method], 0.05)
    found = measure(model, chosen.test)
    every = np.tile(np.arange(40), (len(chosen.test.y), 1))
    logs = model.predict_log_proba(chosen.test.X, every)
    own = np.arange(len(logs)), chosen.test.y
    assert seconds > 0
    assert found.likelihood == pytest.approx(logs[own].mean(), abs=1e-4)
    assert found.accuracy == pytest.approx(100 * (logs.argmax(axis=1) == own[1]).mean(), abs=2)


def test_the_rate_with_the_highest_validation_accuracy_is_taken(monkeypatch):
    worth = {0.03: 1.0, 0.1: 5.0, 0.3: 9.0, 1.0: 7.0}
    monkeypatch.setattr(figure1, "train", lambda task, setting, s: (setting["learning_rate"], s))
    monkeypatch.setattr(figure1, "measure", lambda rate, samples: Quality(worth[rate], 0.0))
    run = partial(figure1._validation_accuracy, small(), {}, 1.0)
    assert best_rate(tuple(worth), run, float) == (0.3, 9.0)


def curve(*pairs):
    return [(seconds, Quality(accuracy, 0.0)) for seconds, accuracy in pairs]


def test_headline_is_the_time_to_the_highest_accuracy_of_a_baseline():
    slow = curve((1.0, 10.0), (8.0, 20.0), (9.0, 12.0))
    curves = {"adversarial": curve((1.0, 15.0), (2.0, 25.0)), "umpteen": curve((1.0, 5.0))}
    curves |= dict.fromkeys(figure1.BASELINES, slow)
    assert reached(curves["adversarial"], 20.0) == pytest.approx(1.5)
    assert reached(slow, 21.0) is None
    assert reached(slow, 3.0) == 1.0
    ratios = {row[0]: row[2] and row[2].ours for row in headline(curves).rows}
    assert ratios["adversarial"] == pytest.approx(8 / 1.5)
    assert ratios["umpteen"] is None
    assert ratios["uniform"] == 1


def test_theorem_1_holds_for_every_noise_and_only_corrected():
    tabular = Tabular.drawn(4_000, seed=1)
    for noise in NOISES:
        np.testing.assert_allclose(np.exp(tabular.log_noise(noise)).sum(axis=1), 1, rtol=1e-5)
        corrected, uncorrected = tabular.deviations(tabular.optimum(noise), noise)
        assert corrected < 1e-6
        assert uncorrected < 1e-6 if noise == "uniform" else uncorrected > 0.1
        early, late = (tabular.trained(noise, epochs) for epochs in (1, 40))
        assert late < early
        assert late < 0.3


def test_small_sections_give_tables_and_figures(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(trees, "_QUICK", (8, 16))
    for section in [*trees.sections(True), theorems.sections(True)[0]]:
        kinds = {type(part).__name__ for part in section.measure()}
        assert "Table" in kinds


def test_gaussian_classes_differ_in_the_dimensions_that_are_said():
    task = signal.gaussian_classes(200, signal=5, nuisance=3, n_others=4_000)
    y = task.Y.indices
    assert len(np.unique(y)) == 200
    assert len(task.validation.y) == len(task.test.y) == 2_000
    within = task.X - np.stack([task.X[y == each].mean(0) for each in range(200)])[y]
    spread = np.linalg.eigvalsh(np.cov(within.T))
    assert (spread > 3).sum() == 3  # nuisance
    means = np.stack([task.X[y == each].mean(0) for each in range(200)])
    clean = np.linalg.svd(within, full_matrices=False)[2][3:]  # without nuisance
    assert (np.linalg.eigvalsh(np.cov((means @ clean.T).T)) > 0.5).sum() == 5


def test_scores_alone_are_those_without_the_noise():
    chosen = small()
    setting = {**METHODS["adversarial"], "learning_rate": 0.3}
    model, _ = train(chosen, setting, 0.1)
    alone = chosen.test.X @ model.scores_.weights.T + model.scores_.biases
    noise = np.concatenate([table for _, table in model.noise_.tree.log_prob_all(chosen.test.X)])
    found = readings.read(model, chosen.test)
    for scores, quality in ((alone, found.alone), (alone + noise, found.corrected)):
        right = scores.argmax(1) == chosen.test.y
        assert quality.accuracy == pytest.approx(100 * right.mean())
        logs = log_softmax(scores, axis=1)[np.arange(len(right)), chosen.test.y]
        assert quality.likelihood == pytest.approx(logs.mean(), rel=1e-4)


def quality(accuracy, likelihood=0.0):
    return Quality(accuracy, likelihood)


def trained_for(seconds, accuracy, rate=0.1):
    both = readings.Readings(quality(accuracy), quality(accuracy - 1))
    return readings.Trained(rate, seconds, both, both)


def test_rates_are_chosen_on_validation_at_every_time_also_the_longest(monkeypatch):
    worth = {(0.03, 1): 5, (0.1, 1): 9, (0.3, 1): 8, (0.03, 4): 12, (0.1, 4): 10, (0.3, 4): 99}

    def run(task, method, rate, seconds, seed=0):
        return trained_for(seconds, worth[rate, seconds], rate)

    monkeypatch.setattr(readings, "_run", run)
    found = readings._tuned(small(), "frequency", (1, 4))
    assert [(run.rate, run.worth) for run in found] == [(0.1, 9), (0.03, 12)]


def test_each_measure_has_the_reading_that_validation_prefers():
    validation = readings.Readings(quality(5.0, -2.0), quality(6.0, -3.0))
    test = readings.Readings(quality(50.0, -20.0), quality(60.0, -30.0))
    run = readings.Trained(0.1, 1.0, validation, test)
    assert (run.worth, run.quality) == (6.0, (60.0, -20.0))


def test_a_baseline_that_is_far_behind_has_its_trial_only(monkeypatch):
    reference = [trained_for(1, 30), trained_for(4, 40), trained_for(9, 50)]
    for accuracy, n_runs in ((31.9, 1), (32.1, 3)):
        monkeypatch.setattr(
            readings, "_run", lambda *args, accuracy=accuracy: trained_for(args[3], accuracy)
        )
        found = readings._tried(small(), "uniform", (1, 4, 9), reference)
        assert [run.seconds for run in found] == ([4] if n_runs == 1 else [1, 4, 9])


def test_speed_ups_are_those_of_the_same_seed():
    found = {
        "adversarial": [[trained_for(1, 10), trained_for(2, 30)], [trained_for(4, 50)]],
        "frequency": [[trained_for(6, 20)], [trained_for(8, 40), trained_for(9, 30)]],
        "NCE": [[trained_for(1, 5)]],
    }
    baseline, tree = readings.faster(found, "frequency").rows
    assert baseline[1].ours == 7
    assert tree[2].ours == pytest.approx((6 / 1.5 + 8 / 4) / 2)
    found["adversarial"][1] = [trained_for(9, 39)]
    assert readings.faster(found, "frequency").rows[1][2] is None


@pytest.mark.parametrize(("nuisance", "least", "most"), [(0, 0.9, 1.0), (8, 0.0, 0.2)])
def test_principal_components_see_the_signal_if_nothing_is_larger(nuisance, least, most):
    task = signal.gaussian_classes(3_000, signal=8, nuisance=nuisance)
    found = []
    for directions in ("principal", "discriminant"):
        tree = NoiseTree(dim=8, directions=directions, regularizer=1.0, verbose=False)
        found.append(shares.signal_share(task, tree.fit(task.X, task.Y)))
    assert least <= found[0] <= most
    assert found[1] > 0.9


def test_features_of_a_network_keep_samples_and_classes():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    words = small(sparse=True)
    found = trained.trained(words)
    assert found.dense
    assert found.X.shape == (400, 128)
    assert (found.Y != words.Y).nnz == 0
    np.testing.assert_array_equal(found.test.y, words.test.y)
    centres = np.stack([found.X[found.Y.indices == each].mean(0) for each in range(40)])
    distances = ((found.X[:, None] - centres) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == found.Y.indices).mean() > 0.8


def test_divergence_is_that_of_predictions_from_the_data():
    X, y, counts = objectives.table(8, 2_400, 0)
    np.testing.assert_array_equal(counts.sum(axis=1), 200)
    model = AdversarialSoftmax(objective="softmax", recipe=objectives._PLAIN, epochs=30)
    found = objectives.divergence(model.set_params(verbose=False).fit(X, y), counts)
    expected = 0.0
    for kind, row in enumerate(counts):
        logs = model.predict_log_proba(objectives.rows_of_kinds()[[kind] * 8], np.arange(8))
        for label, count in enumerate(row):
            if count:
                expected += count / 2_400 * (np.log(count / 200) - logs[label])
    assert found == pytest.approx(expected, rel=1e-4)
    assert 0 <= found < 0.05  # a full softmax can say it all


def test_quality_counts_answers_that_are_not_the_most_probable():
    task = small()
    model = AdversarialSoftmax(epochs=2, verbose=False).fit(task.X, task.Y)
    accuracy, confidence, loss, other = defaults.quality(model, task.test)
    every = np.tile(np.arange(40), (len(task.test.y), 1))
    logs = model.predict_log_proba(task.test.X, every)
    assert accuracy == pytest.approx(100 * (logs.argmax(axis=1) == task.test.y).mean())
    assert confidence == pytest.approx(100 * np.exp(logs).max(axis=1).mean(), rel=1e-4)
    assert loss == pytest.approx(-logs[np.arange(len(logs)), task.test.y].mean(), rel=1e-4)
    assert other == 0
    model.frequency_discount_ = 1.0
    assert defaults.quality(model, task.test)[3] > 0
