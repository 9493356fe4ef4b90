"""AdversarialSoftmax as users meet it: answers, more samples, interruptions, corners."""

import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax
from sklearn.base import clone

import umpteen
from umpteen import AdversarialSoftmax
from umpteen.errors import (
    FeaturesError,
    LabelsError,
    LabelsShapeError,
    ModelPathError,
    ParameterError,
)
from umpteen.softmax import SoftmaxRecipe, adversarial, training
from umpteen.softmax.prediction import Answers
from umpteen.softmax.split import split_samples
from umpteen.softmax.weights import SparseScores
from umpteen.validation import check_seed

N_CLASSES = 9


def blobs(n=240, seed=0, sparse=False):
    """A class for each corner of a cloud; class 4 has no samples."""
    random = np.random.default_rng(seed)
    y = random.integers(0, N_CLASSES, n)
    y[y == 4] = 5
    y[-1] = N_CLASSES - 1
    centers = np.random.default_rng(99).normal(0, 2, (N_CLASSES, 12))
    X = (centers[y] + random.normal(size=(n, 12))).astype(np.float32)
    return (csr_matrix(np.where(X > 2, X, 0)) if sparse else X), y


def model_of(**parameters):
    """Negative sampling from a tree, from zero; numbers of the recipe by their names."""
    chosen = {
        "noise": "tree", "objective": "negative_sampling", "learning_rate": 1.0,
        "frequency_discount": 0.0, "epochs": 4, "n_jobs": 1, "verbose": False, **parameters,
    }  # fmt: skip
    numbers = {"regularizer": 1e-4, "centroid_scale": 0.0, "calibrate": False}
    for name in SoftmaxRecipe.__dataclass_fields__:
        if name in chosen:
            numbers[name] = chosen.pop(name)
    return AdversarialSoftmax(**chosen, recipe=SoftmaxRecipe(**numbers))


def assert_same_bits(one, two):
    for field in fields(one.scores_):
        first, second = (getattr(model.scores_, field.name) for model in (one, two))
        if isinstance(first, csr_matrix):
            np.testing.assert_array_equal(first.indices, second.indices)
            first, second = first.data, second.data
        np.testing.assert_array_equal(first, second)
    assert one.validation_scores_ == two.validation_scores_
    if one.noise_.tree is not None:
        np.testing.assert_array_equal(one.noise_.tree.weights_, two.noise_.tree.weights_)


def brute_force(model, X):
    """Log-probabilities of all classes, straight from the definition."""
    rows = X.toarray() if hasattr(X, "toarray") else X
    weights = model.scores_.weights
    weights = weights.toarray() if hasattr(weights, "toarray") else weights
    scores = rows.astype(float) @ weights.T.astype(float) + model.scores_.biases
    if model.objective == "negative_sampling":
        every = np.tile(np.arange(N_CLASSES, dtype=np.int32), (len(rows), 1))
        scores += model.noise_.log_prob(model.noise_.reduce(X), every)
    scores[:, 4] = -np.inf
    return log_softmax(scores, axis=1)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "parameters", [{}, {"noise": "frequency"}, {"objective": "nce"}], ids=["tree", "freq", "nce"]
)
def test_answers_are_the_most_probable_classes(sparse, parameters):
    X, y = blobs(sparse=sparse)
    model = model_of(**parameters).fit(X, y)
    if sparse:
        X = X.tolil()
        X[3] = 0
        X = X.tocsr()
    logs, top = brute_force(model, X), model.predict_topk(X, k=N_CLASSES + 2)
    np.testing.assert_array_equal(top.labels[:, -1:], -1)  # the class unseen
    assert (top.labels != 4).all()
    given = top.labels[:, :-1].astype(int)
    np.testing.assert_array_equal(np.sort(given, axis=1), [[0, 1, 2, 3, 5, 6, 7, 8]] * len(given))
    expected = np.take_along_axis(np.exp(logs), given, axis=1)
    np.testing.assert_allclose(top.scores[:, :-1], expected, atol=1e-5)
    np.testing.assert_allclose(top.scores[:, :-1].sum(axis=1), 1, rtol=1e-5)
    assert (np.diff(top.scores[:, :-1], axis=1) <= 0).all()
    every = np.tile(np.arange(N_CLASSES), (len(given), 1))
    np.testing.assert_allclose(model.predict_log_proba(X, every), logs, atol=1e-3)
    np.testing.assert_array_equal(
        model.predict_log_proba(X, every[:, 2]), model.predict_log_proba(X, every)[:, 2]
    )
    assert model.score(X, y) > 0.4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", [{"noise": "frequency"}, {"objective": "softmax"}])
def test_the_length_of_samples_changes_no_answer(sparse, kind):
    X, y = blobs(sparse=sparse)
    one, two = (AdversarialSoftmax(epochs=3, verbose=False, **kind) for _ in range(2))
    short, long = one.fit(X, y).predict_topk(X, 2), two.fit(64 * X, y).predict_topk(64 * X, 2)
    np.testing.assert_allclose(short.scores, long.scores, atol=1e-3)


@pytest.mark.parametrize("beam_width", [None, 8])
def test_a_discount_ranks_by_scores_without_that_share_of_frequencies(beam_width):
    X, y = blobs()
    model = model_of(frequency_discount=0.5, beam_width=beam_width).fit(X, y)
    assert model.frequency_discount_ == 0.5
    counts = np.maximum(np.bincount(y, minlength=N_CLASSES), 1)  # but for the validation split
    np.testing.assert_array_less(model.counts_, counts + 1)
    scores = brute_force(model, X) - 0.5 * np.log(np.maximum(model.counts_, 1))
    top = model.predict_topk(X, k=3)
    expected = np.exp(log_softmax(scores, axis=1))
    np.testing.assert_allclose(top.scores, -np.sort(-expected, axis=1)[:, :3], atol=1e-5)
    own = np.take_along_axis(expected, top.labels.astype(int), axis=1)
    np.testing.assert_allclose(top.scores, own, atol=1e-5)
    logs = model.predict_log_proba(X, y)
    np.testing.assert_allclose(logs, brute_force(model, X)[np.arange(len(y)), y], atol=1e-3)


def test_the_discount_is_the_one_that_serves_the_validation_split_best():
    X, y = blobs(600, seed=3)
    model = model_of(frequency_discount="auto", epochs=1, learning_rate=0.1).fit(X, y)
    training_split, validation = split_samples(
        X, csr_matrix(np.eye(N_CLASSES)[y]), 0.05, check_seed(0)
    )
    np.testing.assert_array_equal(model.counts_, training_split.counts)
    own = np.asarray(validation.Y.argmax(axis=1)).ravel()
    precision = {}
    for discount in adversarial.DISCOUNTS:
        scores = brute_force(model, validation.X) - discount * np.log(np.maximum(model.counts_, 1))
        precision[discount] = (scores.argmax(axis=1) == own).mean()
    assert model.frequency_discount_ == max(precision, key=precision.get)
    assert model.validation_scores_ == [max(precision.values())]
    chosen = model.frequency_discount_
    assert model.partial_fit(X[:60], y[:60]).frequency_discount_ == chosen


def test_no_rows_have_no_answers():
    X, y = blobs()
    model = model_of().fit(X, y)
    for beam_width in (None, 64):
        assert model.set_params(beam_width=beam_width).predict_topk(X[:0], k=3).labels.shape == (
            0,
            3,
        )
    assert model.predict_log_proba(X[:0], []).shape == (0,)
    assert model.predict_log_proba(X[:0], np.zeros((0, 3), int)).shape == (0, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_wide_beam_is_exact_and_a_narrow_one_finds_the_best_of_its_own(sparse):
    X, y = blobs(sparse=sparse)
    model = model_of(epochs=8).fit(X, y)
    exact = model.predict_topk(X, k=3)
    wide = model.set_params(beam_width=8).predict_topk(X, k=3)
    np.testing.assert_array_equal(wide.labels, exact.labels)
    np.testing.assert_allclose(wide.scores, exact.scores, atol=1e-5)
    narrow = model.set_params(beam_width=1).predict_topk(X, k=1)
    assert (narrow.labels == exact.labels[:, :1]).mean() > 0.6


def test_a_beam_that_finds_no_class_with_samples_answers_none():
    X, y = blobs()
    model = model_of(beam_width=1).fit(X, y)
    nothing = np.zeros(N_CLASSES, np.int64)
    found = Answers(model.scores_, model.noise_, nothing, True, 0.0, 1).among_candidates(X, 2, 1)
    assert (found.labels == -1).all()
    assert (found.scores == -np.inf).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_more_samples_help_a_class_that_had_few(sparse):
    X, y = blobs(400, sparse=sparse)
    rare = y == 2
    few = ~rare
    few[np.flatnonzero(rare)[:1]] = True
    model = model_of(epochs=10, validation_fraction=0.0).fit(X[few], y[few])
    before = model.score(X[rare], y[rare])
    n_weights = model.scores_.weights.size
    mixed = np.random.default_rng(0).permutation(len(y))[:200]
    model.partial_fit(X[mixed], y[mixed])
    assert model.score(X[rare], y[rare]) > max(before, 0.5)
    assert (model.scores_.weights.size > n_weights) == sparse


def test_a_class_without_samples_is_answered_once_it_has_some():
    X, y = blobs()
    model = model_of(epochs=10).partial_fit(X, y, classes=np.arange(12))
    assert model.n_labels_ == 12
    assert model.predict(X[:2]).shape == (2,)
    new = np.full((20, 12), 9, np.float32)
    assert not np.isin(model.predict_topk(new, k=12).labels, [4, 9, 10, 11]).any()
    tree = model.noise_.tree
    model.partial_fit(new, np.full(20, 11))
    assert (model.predict(new) == 11).all()
    assert model.noise_.tree is tree


def test_samples_that_do_not_fit_the_model_are_refused():
    X, y = blobs()
    model = model_of().fit(X, y)
    with pytest.raises(FeaturesError, match="12"):
        model.partial_fit(X[:, :5], y)
    with pytest.raises(LabelsError, match="9"):
        model.partial_fit(X, np.full(len(X), 9))
    with pytest.raises(LabelsError):
        model_of().partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(LabelsError):
        model_of().partial_fit(X, y, classes=[0, 1])


def test_label_ids_out_of_range_are_refused():
    X, y = blobs()
    with pytest.raises(LabelsError):
        model_of().fit(X, y - 1)
    model = model_of().fit(X, y)
    for wrong in (np.full(len(X), 9), np.full(len(X), -1)):
        with pytest.raises(LabelsError):
            model.predict_log_proba(X, wrong)
    with pytest.raises(LabelsShapeError):
        model.predict_log_proba(X, y[:3])
    with pytest.raises(LabelsError, match="which"):
        model.predict_log_proba(X)


def test_the_best_epoch_is_kept():
    X, y = blobs()
    settings = {"validation_fraction": 0.2, "learning_rate": 0.3, "patience": 2}
    model = model_of(epochs=30, **settings).fit(X, y)
    scores = model.validation_scores_
    first, last = np.argmax(scores), len(scores) - 1 - np.argmax(scores[::-1])
    assert len(scores) == min(30, first + 1 + 2)
    again = model_of(epochs=int(last) + 1, **settings).fit(X, y)
    assert again.validation_scores_ == scores[: last + 1]
    np.testing.assert_array_equal(model.scores_.weights, again.scores_.weights)


def test_no_time_is_time_for_one_chunk(monkeypatch):
    monkeypatch.setattr(training, "_CHUNK", 1)
    X, y = blobs()
    model = model_of(epochs=10**6, max_seconds=1e-9, batch_size=10).fit(X, y)
    assert len(model.validation_scores_) == 1
    assert (model.scores_.bias_squares > 1e-6).any()


def test_the_validation_split_has_only_labels_that_are_learned():
    random = np.random.default_rng(0)
    Y = csr_matrix(random.random((200, 40)) < 0.03)
    training, validation = split_samples(np.arange(1, 201)[:, None], Y, 0.4, seed=1)
    rows, drawn = training.X.ravel() - 1, validation.X.ravel() - 1
    np.testing.assert_array_equal(np.sort(np.concatenate([rows, drawn])), np.arange(200))
    assert 10 < len(drawn) < 80
    assert set(training.Y.indices) == set(Y.indices)
    assert np.diff(validation.Y.indptr).min() > 0
    np.testing.assert_array_equal(validation.Y.toarray(), Y[drawn].toarray())


CONTINUED = [
    {},
    {"objective": "augment_reduce", "noise": "uniform", "sparse": True},
    {"objective": "sampled_softmax", "noise": "frequency"},
]


@pytest.mark.parametrize("parameters", CONTINUED, ids=["tree", "bounds", "frequency"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path, parameters):
    parameters = {"patience": 9, **parameters}
    X, y = blobs(sparse=parameters.pop("sparse", False))
    whole = model_of(epochs=6, **parameters).fit(X, y)
    model_of(epochs=3, checkpoint=tmp_path / "c", **parameters).fit(X, y)
    resumed = model_of(epochs=6, checkpoint=tmp_path / "c", **parameters).fit(X, y)
    assert_same_bits(whole, resumed)
    assert len(resumed.validation_scores_) == 6


def test_a_resumed_fit_without_a_seed_keeps_the_one_it_had(tmp_path, monkeypatch):
    X, y = blobs()
    chosen = {"random_state": None, "patience": 9}
    model_of(epochs=2, checkpoint=tmp_path / "c", **chosen).fit(X, y)
    resumed = model_of(checkpoint=tmp_path / "c", **chosen).fit(X, y)
    seed = umpteen.load(tmp_path / "c").state.seed
    monkeypatch.setattr(adversarial, "check_seed", lambda _: seed)
    assert_same_bits(resumed, model_of(**chosen).fit(X, y))


def test_the_checkpoint_of_another_fit_is_refused(tmp_path):
    X, y = blobs()
    model_of(checkpoint=tmp_path / "c", epochs=1).fit(X, y)
    for other in (model_of(learning_rate=0.5), model_of(noise="uniform")):
        with pytest.raises(ModelPathError, match="another"):
            other.set_params(checkpoint=tmp_path / "c").fit(X, y)
    with pytest.raises(ModelPathError, match="another"):
        model_of(checkpoint=tmp_path / "c").fit(X + 1, y)
    model_of().fit(X, y).save(tmp_path / "model")
    with pytest.raises(ModelPathError, match="another"):
        model_of(checkpoint=tmp_path / "model").fit(X, y)


KILLED = """
import os, signal, sys
import numpy as np
from umpteen import AdversarialSoftmax
from umpteen.softmax.training import State

original = State.record

def record(state, score):
    original(state, score)
    if state.epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)

State.record = record
data = np.load(sys.argv[1])
model = AdversarialSoftmax(epochs=5, checkpoint=sys.argv[2], noise="tree")
model.set_params(objective="negative_sampling", learning_rate=1.0, n_jobs=1)
model.set_params(frequency_discount=0.0, recipe__centroid_scale=0.0, recipe__patience=9)
model.set_params(recipe__calibrate=False)
model.set_params(recipe__regularizer=1e-4)
model.fit(data["X"], data["y"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    X, y = blobs()
    np.savez(tmp_path / "data.npz", X=X, y=y)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "data.npz", tmp_path / "c"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert umpteen.load(tmp_path / "c").state.epoch == 2
    whole = model_of(epochs=5, patience=9).fit(X, y)
    resumed = model_of(epochs=5, patience=9, checkpoint=tmp_path / "c").fit(X, y)
    assert_same_bits(whole, resumed)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_saved_model_answers_and_learns_with_the_same_bits(tmp_path, sparse):
    X, y = blobs(sparse=sparse)
    model = model_of().fit(X, y)
    model.save(tmp_path / "m")
    loaded = umpteen.load(tmp_path / "m")
    assert_same_bits(model, loaded)
    assert loaded.predict_topk(X, k=4) == model.predict_topk(X, k=4)
    assert_same_bits(model.partial_fit(X[:50], y[:50]), loaded.partial_fit(X[:50], y[:50]))


@pytest.mark.parametrize("parameters", [{}, {"objective": "softmax", "noise": "auto"}])
def test_threads_do_not_change_a_bit(monkeypatch, parameters):
    monkeypatch.setattr(training, "_CHUNK", 50)
    X, y = blobs()
    one, two, four = (
        model_of(n_jobs=n_jobs, batch_size=20, **parameters).fit(X, y) for n_jobs in (1, 2, 4)
    )
    assert_same_bits(one, two)
    assert_same_bits(one, four)
    assert one.predict_topk(X) == four.predict_topk(X)


def test_several_labels_share_the_probability():
    X, y = blobs(400)
    Y = csr_matrix(np.eye(N_CLASSES + 2)[y])
    Y += csr_matrix((np.ones(400), (np.arange(400), 9 + (y > 4))), shape=Y.shape)
    model = model_of(epochs=15).fit(X, Y)
    top = model.predict_topk(X, k=2)
    hits = [set(top.labels[row]) == set(Y[row].indices) for row in range(400)]
    assert np.mean(hits) > 0.7
    assert np.median(top.scores) == pytest.approx(0.5, abs=0.2)


OBJECTIVES = [
    {}, {"noise": "frequency"}, {"noise": "uniform"}, {"objective": "nce"},
    {"objective": "one_vs_each", "noise": "auto"}, {"objective": "augment_reduce", "noise": "auto"},
    {"objective": "softmax", "noise": "auto"}, {"objective": "sampled_softmax"},
]  # fmt: skip


@pytest.mark.parametrize("parameters", OBJECTIVES, ids=str)
def test_corners_have_answers(parameters):
    """One class only, constant features, no features at all, fewer rows than classes."""
    X, y = blobs(60)
    one = model_of(**parameters).fit(X, np.zeros(60, int)).predict_topk(X, k=2)
    np.testing.assert_array_equal(one.labels, [[0]] * 60)
    np.testing.assert_allclose(one.scores[:, 0], 1)
    for constant in (np.ones_like(X), np.zeros_like(X)):
        model = model_of(epochs=20, learning_rate=0.1, **parameters).fit(constant, y)
        answers = model.predict_topk(constant, k=N_CLASSES)
        assert (answers.labels == answers.labels[0]).all()
        assert np.isfinite(answers.scores[:, :-1]).all()
    few = model_of(**parameters).fit(X[:5], csr_matrix(np.eye(100)[[0, 3, 99, 3, 50]]))
    answers = few.predict_topk(X, k=5).labels
    np.testing.assert_array_equal(np.sort(answers, axis=1), [[-1, 0, 3, 50, 99]] * 60)


def test_numbers_of_the_recipe_are_set_by_their_names():
    """As scikit-learn's searches set them; the recipe of a copy is left as it was."""
    model = AdversarialSoftmax()
    other = clone(model.set_params(recipe__batch_size=7))
    other.set_params(recipe__patience=2, recipe__batch_size=8)
    assert model.recipe == SoftmaxRecipe(batch_size=7)
    assert other.get_params()["recipe__batch_size"] == 8
    assert other.set_params(recipe=SoftmaxRecipe(), recipe__patience=4).recipe == SoftmaxRecipe(
        patience=4
    )
    for wrong in ({"recipe__batch_size": 0}, {"recipe__colour": 1}, {"recipes__batch_size": 1}):
        with pytest.raises((ParameterError, ValueError, AttributeError)):
            model.set_params(**wrong)


def test_features_decide_the_form_of_the_weights():
    X, y = blobs()
    assert not isinstance(model_of().fit(csr_matrix(X), y).scores_, SparseScores)
    assert isinstance(model_of().fit(blobs(sparse=True)[0].toarray(), y).scores_, SparseScores)
    dense, sparse = blobs(sparse=True)[0].toarray(), blobs(sparse=True)[0]
    assert_same_bits(model_of().fit(dense, y), model_of().fit(sparse, y))


def test_sparse_rows_are_drawn_by_frequency_and_dense_ones_from_a_tree():
    for sparse in (False, True):
        X, y = blobs(sparse=sparse)
        model = AdversarialSoftmax(epochs=1, verbose=False).fit(X, y)
        assert (model.noise_.tree is None) == sparse
    with pytest.raises(ParameterError, match='fit with noise="tree"'):
        model.set_params(beam_width=8).predict_topk(X)


def test_parameters_of_the_first_version_become_a_recipe(tmp_path):
    golden = Path(__file__).parents[1] / "storage" / "golden" / "0.1"
    found = {}
    for name in ("", "-beam", "-paper", "-frequency"):
        with zipfile.ZipFile(golden / f"AdversarialSoftmax{name}.zip") as archive:
            archive.extractall(tmp_path / f"model{name}")
        found[name] = umpteen.load(tmp_path / f"model{name}")
    assert [model.beam_width for model in found.values()] == [None, 64, None, None]
    assert [found[name].noise for name in ("", "-beam", "-frequency")] == [
        "tree", "tree", "frequency",
    ]  # fmt: skip
    assert found[""].recipe == SoftmaxRecipe(centroid_scale=10.0)
    assert found["-paper"].recipe == replace(AdversarialSoftmax.paper().recipe, calibrate=True)


@pytest.mark.parametrize("scale", [1e-22, 1e-24, 1e-38])
def test_samples_whose_squares_vanish_in_float32_are_learned_without_a_division_by_zero(scale):
    X = np.random.default_rng(0).random((40, 3)).astype(np.float32) * np.float32(scale)
    for features in (X, csr_matrix(X)):
        top = AdversarialSoftmax(epochs=1).fit(features, np.arange(40) % 4).predict_topk(X, k=4)
        assert np.isfinite(top.scores[top.labels >= 0]).all()
