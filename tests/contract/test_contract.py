"""What a user may rely on, whichever classifier it is."""

import sys
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import umpteen as um
from tests.engines import OtherProcesses
from umpteen import parallel
from umpteen.base import ExtremeClassifier
from umpteen.errors import ModelCorruptError, ModelNotFoundError, NotFittedError, ParameterError

from .cases import (
    BAD_PARAMETERS,
    CASES,
    N_LABELS,
    N_SAMPLES,
    checkerboard,
    classifiers,
    kinds,
    noise,
)


def test_every_classifier_is_checked():
    """A classifier without a case would ship unchecked."""
    assert set(classifiers()) == {name for name, case in CASES.items() if case.is_available}


def test_every_classifier_is_public():
    """A classifier that `umpteen` does not name cannot be found by a user, nor loaded."""
    assert set(classifiers()) <= set(um.__all__)


def test_finds_the_plain_answer(case):
    X, Y = checkerboard()
    model = case.plain
    best_two = np.sort(model.predict_topk(X, k=2).labels, axis=1)
    np.testing.assert_array_equal(best_two.ravel(), Y.indices)
    assert model.score(X, Y) == 1.0


def test_finds_the_plain_answer_on_dense_features(case):
    X, Y = checkerboard()
    assert case.fitted(X.toarray(), Y.toarray()).score(X.toarray(), Y) == 1.0


@pytest.mark.parametrize("dense_first", [True, False])
def test_training_and_prediction_may_differ_in_format(case, dense_first):
    X, Y = checkerboard()
    first, second = (X.toarray(), X) if dense_first else (X, X.toarray())
    assert case.fitted(first, Y).score(second, Y) == 1.0


def test_single_labels_come_back_as_they_went_in(case):
    """scikit-learn's metrics on 1-D labels would fail on anything else."""
    X, _ = checkerboard()
    predicted = case.fitted(X, kinds()).predict(X)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, kinds())


def test_predict_is_a_sparse_indicator(case):
    X, Y = checkerboard()
    predicted = case.plain.predict(X)
    assert isinstance(predicted, csr_matrix)
    assert predicted.shape == Y.shape
    assert set(predicted.data) == {1}
    assert set(np.diff(predicted.indptr)) == {2}  # as in training: two labels per sample


@pytest.mark.parametrize("k", [1, 3, N_LABELS, N_LABELS + 5])
def test_topk_has_the_promised_form(case, k):
    X, _ = checkerboard()
    top = case.plain.predict_topk(X, k=k)
    assert top.labels.shape == top.scores.shape == (N_SAMPLES, min(k, N_LABELS))
    assert (top.labels.dtype, top.scores.dtype) == (np.int32, np.float32)
    assert top.labels.max() < N_LABELS
    assert (np.isneginf(top.scores) == (top.labels == -1)).all()
    assert not np.isnan(top.scores).any()


@pytest.mark.parametrize("n", [0, 1, N_SAMPLES])
def test_a_billion_labels_are_all_that_there_are(case, n):
    """A table with a place for each of them takes all memory, and the session with it."""
    X, _ = checkerboard()
    model = case.plain
    top = model.predict_topk(X[:n], k=10**9)
    assert top.labels.shape == (n, N_LABELS)
    assert top == model.predict_topk(X[:n], k=N_LABELS)


def test_labels_never_seen_leave_their_places_empty(case):
    """The width of an answer says how many labels there are, whatever was in the training part."""
    X, Y = checkerboard()
    wide = csr_matrix(np.hstack([Y.toarray(), np.zeros((N_SAMPLES, 3))]))
    top = case.fitted(X, wide).predict_topk(X, k=10**9)
    assert top.k == N_LABELS + 3
    assert (top.labels[:, N_LABELS:] == -1).all()


@pytest.mark.parametrize("dense", [True, False])
def test_best_first_and_ties_to_the_lowest_id(case, dense):
    """Otherwise the same model would rank differently from one machine to the next."""
    X, _ = noise()
    top = case.noisy[dense].predict_topk(X.toarray() if dense else X, k=20)
    better = top.scores[:, :-1] > top.scores[:, 1:]
    tied = top.scores[:, :-1] == top.scores[:, 1:]
    in_order = (top.labels[:, :-1] < top.labels[:, 1:]) | (top.labels[:, 1:] == -1)
    assert (better | (tied & in_order)).all()
    for labels in top.labels:
        offered = labels[labels >= 0]
        assert len(set(offered)) == len(offered)


def test_fewer_labels_are_the_first_of_more(case):
    X, _ = noise()
    model = case.noisy[False]
    assert model.predict_topk(X, k=10).first(1) == model.predict_topk(X, k=1)


@pytest.mark.parametrize("dense", [True, False])
def test_given_labels_are_scored_as_they_are_predicted(case, dense):
    """Scores that came from elsewhere could not be compared with those of the answer."""
    X, Y = noise()
    X = X.toarray() if dense else X
    model, candidates = case.noisy[dense], noise(seed=1)[1]
    scores = model.score_labels(X, candidates)
    assert (scores.dtype, scores.shape) == (np.float32, Y.shape)
    np.testing.assert_array_equal(scores.indptr, candidates.indptr)
    np.testing.assert_array_equal(scores.indices, candidates.indices)
    assert np.isfinite(scores.data).all()
    offered = model.predict_topk(X, k=Y.shape[1]).to_csr(Y.shape[1])
    given = csr_matrix(offered != 0)
    both = candidates.multiply(given).nonzero()
    assert len(both[0]) > 100
    np.testing.assert_array_equal(np.asarray(scores[both]), np.asarray(offered[both]))


def test_nothing_asked_gets_no_scores(case):
    X, Y = checkerboard()
    model = case.plain
    assert model.score_labels(X, [[]] * N_SAMPLES).nnz == 0
    assert model.score_labels(X, 0 * Y).nnz == 0
    assert model.score_labels(X[:0], Y[:0]).shape == (0, N_LABELS)


def test_relevant_labels_score_higher_than_others(case):
    X, Y = checkerboard()
    scores = case.plain.score_labels(X, np.ones(Y.shape)).toarray()
    relevant = Y.toarray() > 0
    others = np.where(relevant, -np.inf, scores).max(1)
    assert (np.where(relevant, scores, np.inf).min(1) > others).all()


@pytest.mark.parametrize("dense", [True, False])
def test_same_bits_for_any_number_of_threads(case, dense):
    """Otherwise a result could not be reproduced on another machine."""
    X, Y = noise(3000)
    X = X.toarray() if dense else X
    models = [case.fitted(X, Y, n_jobs=n) for n in (1, 2, 4)]
    one, two, four = (model.predict_topk(X, k=5) for model in models)
    assert one == two == four
    assert one.scores.tobytes() == two.scores.tobytes() == four.scores.tobytes()
    one, two, four = (model.score_labels(X, Y) for model in models)
    assert one.data.tobytes() == two.data.tobytes() == four.data.tobytes()


@pytest.fixture(scope="module")
def other_processes():
    engine = OtherProcesses()
    yield engine
    engine.close()


# All of these compute on the threads of this process, whatever engine there is.
NO_TASKS = {
    "AdversarialSoftmax": "each step of its stochastic gradient descent needs the one before",
    "CoAttentionMIML": "a network, whose steps need the one before",
    "NeuralClassifier": "a network, which uses several machines by torch.distributed",
}


def test_same_bits_in_other_processes(case, other_processes, monkeypatch):
    """A method that stays here without a word makes a cluster useless."""
    for module in ("clustering", "trees.representation"):
        monkeypatch.setattr(f"umpteen.{module}.stays_here", lambda *_: False)
    monkeypatch.setattr("umpteen.sharding._WORTH_SENDING", 0)
    X, Y = noise(1000)
    expected = case.fitted(X, Y).predict_topk(X)
    before = other_processes.n_tasks
    with parallel.engine(other_processes):
        found = case.fitted(X, Y).predict_topk(X)
    uses_engine = other_processes.n_tasks > before
    assert uses_engine == (type(case.build()).__name__ not in NO_TASKS)
    assert found == expected
    assert found.scores.tobytes() == expected.scores.tobytes()


def test_same_bits_when_fitted_again(case):
    X, Y = noise()
    model = deepcopy(case.noisy[False])
    first = model.predict_topk(X)
    assert case.fit(model, X, Y).predict_topk(X) == first


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_a_saved_model_answers_with_the_same_bits(case, dense, verify, tmp_path):
    X, _ = noise()
    X = X.toarray() if dense else X
    model = case.noisy[dense]
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model", verify=verify)
    assert type(loaded) is type(model)
    assert _parameters(loaded) == _parameters(model)
    assert loaded.predict_topk(X) == model.predict_topk(X)
    assert (loaded.predict(X) != model.predict(X)).nnz == 0


def _parameters(model):
    """Its parameters and those of classifiers among them, of which only the type can be compared.

    (The parameters of a nested one stand beside it, as `solver__n_jobs`.)
    """
    return {
        name: type(value) if isinstance(value, ExtremeClassifier) else repr(value)
        for name, value in model.get_params(deep=True).items()
    }


def test_a_missing_model_is_named(case, tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        um.load(tmp_path / "nowhere")


def test_a_truncated_model_is_refused(case, tmp_path):
    """A copy that broke off would otherwise answer with garbage."""
    case.noisy[False].save(tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    with pytest.raises(ModelCorruptError):
        um.load(tmp_path / "model", verify=True)


def test_clone_and_set_params(case):
    model = case.build(n_jobs=1)
    assert _parameters(clone(model)) == _parameters(model)
    assert model.set_params(n_jobs=2).get_params()["n_jobs"] == 2
    assert not hasattr(clone(case.plain), "n_labels_")


def test_what_is_learned_is_declared(case):
    """An undeclared attribute would survive an interrupted refit, beside those of the new data."""
    model = case.plain
    learned = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert learned == model._fitted_names()


def test_an_interrupted_fit_leaves_no_mixture(case):
    """Half of an old and half of a new model would read beyond the end of its arrays."""
    X, Y = checkerboard()
    model = deepcopy(case.plain)
    model._forget()
    model.n_features_in_, model.n_labels_ = 2 * X.shape[1], Y.shape[1]
    with pytest.raises(NotFittedError, match="fit"):
        model.predict_topk(X)


def test_a_refused_fit_leaves_the_old_model(case):
    X, Y = checkerboard()
    model = deepcopy(case.plain)
    with pytest.raises(um.errors.LabelsError):
        case.fit(model, X, Y[:-1])
    assert model.score(X, Y) == 1.0


@pytest.mark.parametrize(
    "use", ["predict", "predict_topk", "score_labels", "score", "save", "classes_"]
)
def test_an_unfitted_model_says_so(case, use, tmp_path):
    X, Y = checkerboard()
    model = case.build()
    more = {"score": (X, Y), "score_labels": (X, Y), "save": (tmp_path / "model",)}
    arguments = more.get(use, (X,))
    with pytest.raises(NotFittedError, match="call fit"):
        getattr(model, use)(*arguments)
    assert not list(tmp_path.iterdir())


def test_wrong_parameters_are_refused_by_name(case):
    for parameters in (*BAD_PARAMETERS, *case.bad_parameters):
        with pytest.raises(ParameterError, match=next(iter(parameters))):
            case.fitted(*checkerboard(), **parameters)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3", None])
def test_impossible_k_is_refused(case, k):
    X, _ = checkerboard()
    with pytest.raises(ParameterError, match="k=1 or more"):
        case.plain.predict_topk(X, k=k)


def test_empty_samples_get_a_defined_answer(case):
    """Texts without a known word are common; they must not crash, nor turn into NaN."""
    X, _ = checkerboard()
    model = case.plain
    empty = csr_matrix((3, X.shape[1]), dtype=np.float32)
    for nothing in (empty, empty.toarray()):
        top = model.predict_topk(nothing, k=2)
        assert top.labels.shape == (3, 2)
        assert not np.isnan(top.scores).any()
        assert model.predict(nothing).shape == (3, N_LABELS)


def test_samples_without_features_or_labels_do_no_harm_in_training(case):
    X, Y = (matrix.tolil() for matrix in checkerboard())
    X[0], Y[1] = 0, 0
    Y[0] = 0
    model = case.fitted(X.tocsr(), Y.tocsr())
    assert model.score(X[2:], Y[2:]) == 1.0


@pytest.mark.parametrize("dense", [True, False])
def test_labels_without_samples_are_never_predicted(case, dense):
    X, Y = checkerboard()
    X = X.toarray() if dense else X
    gap = csr_matrix(Y.shape, dtype=np.float32)
    wide = csr_matrix(np.hstack([gap.toarray(), Y.toarray(), gap.toarray()]))
    top = case.fitted(X, wide).predict_topk(X, k=3 * N_LABELS)
    offered = top.labels[top.labels >= 0]
    assert offered.min() >= N_LABELS
    assert offered.max() < 2 * N_LABELS


@pytest.mark.parametrize("dense", [True, False])
def test_no_rows_give_no_answers(case, dense):
    """A service with an empty batch, a pipeline with an empty part."""
    X, Y = checkerboard()
    X = X.toarray() if dense else X
    model = case.fitted(X, Y)
    assert model.predict_topk(X[:0], k=3).labels.shape == (0, 3)
    assert model.predict(X[:0]).shape == (0, N_LABELS)
    assert model.score(X[:0], Y[:0]) == 0.0


def test_one_label_only(case):
    X, _ = checkerboard()
    model = case.fitted(X, np.ones((N_SAMPLES, 1)))
    np.testing.assert_array_equal(model.predict_topk(X, k=1).labels, 0)


def test_one_sample_only(case):
    X, Y = checkerboard()
    model = case.fitted(X[:1], Y[:1])
    assert model.predict_topk(X[:1], k=1).labels[0, 0] in Y[:1].indices


def test_huge_and_tiny_values_stay_finite(case):
    """Squares of 1e30 overflow float32, those of 1e-30 vanish."""
    X, Y = checkerboard()
    for scale in (1e30, 1e-30):
        top = case.fitted(X * scale, Y).predict_topk(X * scale, k=2)
        assert np.isfinite(top.scores[top.labels >= 0]).all()


def test_input_is_never_modified_and_may_be_read_only(case):
    """Memory-mapped data is read-only; a changed X would spoil the next experiment."""
    X, Y = (matrix.tocsr() for matrix in noise())
    arrays = [part for m in (X, Y) for part in (m.data, m.indices, m.indptr)]
    before = [part.tobytes() for part in arrays]
    for part in arrays:
        part.flags.writeable = False
    model = case.fitted(X, Y)
    model.predict_topk(X)
    scores = model.score_labels(X, Y)
    assert not any(np.shares_memory(scores.indices, part) for part in arrays)
    assert [part.tobytes() for part in arrays] == before
    same = (m.data is a for m, a in ((X, arrays[0]), (Y, arrays[3])))
    assert all(same)


def test_read_only_dense_features(case):
    X, Y = checkerboard()
    X = X.toarray()
    X.flags.writeable = False
    assert case.fitted(X, Y).score(X, Y) == 1.0


def test_nothing_of_size_samples_times_labels(case):
    """With a million labels such a table does not fit any memory."""
    n_samples, n_labels = 5_000, 50_000
    rows = np.arange(n_samples)
    ones = np.ones(n_samples, np.float32)
    X = csr_matrix((ones, (rows, rows)), shape=(n_samples, n_samples))
    Y = csr_matrix((ones, (rows, rows)), shape=(n_samples, n_labels))
    resident = _peak_resident_bytes()
    tracemalloc.start()
    try:
        case.fitted(X, Y, n_jobs=1).predict_topk(X, k=3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n_samples * n_labels / 2  # bytes: not even a table of flags
    assert _peak_resident_bytes() - resident < n_samples * n_labels


def _peak_resident_bytes() -> int:
    """Sees what kernels allocate, as tracemalloc does not; only where the unit is known."""
    if sys.platform != "linux":
        return 0
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
