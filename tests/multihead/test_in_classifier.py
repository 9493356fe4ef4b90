"""If these fail, a head that works alone cannot be trained, saved or asked as a classifier."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.errors import LabelsError
from umpteen.multihead import CascadeHead, LabelCode, PowersetHead, ProductHead, SamplingHead
from umpteen.neural import NetworkRecipe, blueprint

N_LABELS = 12


def samples(n=360, n_labels=N_LABELS):
    """A sample has the features of its two labels; the first one is its class."""
    random = np.random.default_rng(0)
    classes = np.arange(n) % n_labels
    others = (classes + 1 + random.integers(n_labels - 1, size=n)) % n_labels
    Y = np.zeros((n, n_labels))
    Y[np.arange(n), classes] = Y[np.arange(n), others] = 1
    return csr_matrix(np.eye(n_labels)[classes]), csr_matrix(Y), classes


def model(head, **parameters):
    return um.NeuralClassifier(
        "bag", head, epochs=12, batch_size=32, learning_rate=2e-2, random_state=0, **parameters
    )


@pytest.mark.parametrize("head", ["product", "cascade", "sampling"])
def test_one_class_per_sample(head, tmp_path):
    X, _, classes = samples()
    trained = model(head).fit(X, classes)
    assert trained.score(X, classes) == 1.0
    assert trained.head_.options.get("loss", "softmax") == "softmax"
    trained.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(X, k=3) == trained.predict_topk(X, k=3)


@pytest.mark.parametrize("head", ["cascade", "sampling", "powerset"])
def test_several_labels_per_sample(head, tmp_path):
    _, Y, _ = samples()
    trained = model(head).fit(Y, Y)
    top = trained.predict_topk(Y, k=2)
    assert um.metrics.precision_at_k(Y, top, 2) > 0.99
    trained.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(Y, k=2) == top


def test_a_product_refuses_several_labels():
    _, Y, _ = samples()
    with pytest.raises(LabelsError, match="one class per sample"):
        model("product").fit(Y, Y)


@pytest.mark.parametrize("head_class", [ProductHead, CascadeHead, SamplingHead])
def test_the_digits_of_unseen_labels_stay_theirs(head_class, tmp_path):
    """Of 4 x 3 codes, label 5 is unseen: without `all_labels`, 6 would get its code."""
    X, _, classes = samples()
    rows = classes != 5
    head = blueprint(head_class, lengths=[4, 3])
    trained = model(head, recipe=NetworkRecipe(all_labels=True)).fit(X[rows], classes[rows])
    assert trained.n_labels_ == N_LABELS
    np.testing.assert_array_equal(trained.seen_labels_, np.arange(N_LABELS))
    np.testing.assert_array_equal(trained.predict(X[rows]), classes[rows])
    np.testing.assert_array_equal(model(head).fit(X[rows], classes[rows]).seen_labels_,
                                  np.delete(np.arange(N_LABELS), 5))  # fmt: skip
    trained.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(X, k=12) == trained.predict_topk(X, k=12)


def test_a_product_answers_with_a_class_it_has_never_seen():
    """Two features tell two digits: with its digits learned from others, class 5 = (1, 2) is."""
    classes = np.tile(np.arange(N_LABELS), 30)
    X = csr_matrix(np.concatenate([np.eye(4)[classes // 3], np.eye(3)[classes % 3]], axis=1))
    rows = classes != 5
    head = blueprint(ProductHead, lengths=[4, 3])
    trained = model(head, recipe=NetworkRecipe(all_labels=True)).fit(X[rows], classes[rows])
    assert trained.score(X, classes) == 1.0
    assert model(head).fit(X[rows], classes[rows]).score(X, classes) < 1.0


def test_an_order_of_labels_is_saved(tmp_path):
    X, _, classes = samples()
    code = LabelCode(N_LABELS, [4, 3]).shuffled(1)
    trained = model(blueprint(ProductHead, code=code)).fit(X, classes)
    assert trained.score(X, classes) == 1.0
    trained.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(X, k=12) == trained.predict_topk(X, k=12)


def test_sets_as_a_blueprint():
    _, Y, _ = samples()
    trained = model(blueprint(PowersetHead, labels_per_head=6)).fit(Y, Y)
    assert um.metrics.precision_at_k(Y, trained.predict_topk(Y, k=2), 2) > 0.99


@pytest.mark.parametrize(
    "head",
    ["full", blueprint(ProductHead), "product", "cascade", "sampling", "adversarial"],
    ids=str,
)
def test_scores_are_logarithms_of_the_probabilities_of_classes(head, tmp_path):
    X, _, classes = samples(120)
    gap = np.where(classes == 5, 12, classes)  # label 5 is never seen
    trained = model(head).set_params(epochs=2).fit(X, gap)
    every = np.tile(np.arange(13), (len(gap), 1))
    logs = trained.predict_log_proba(X, every)
    assert (logs[:, 5] == -np.inf).all()
    total = np.exp(logs).sum(axis=1)
    if head == "product":  # several codes: a lower bound
        assert trained.head_.options["n_codes"] == 4
        assert (total <= 1).all()
    else:
        np.testing.assert_allclose(total, 1, rtol=1e-4)
    top = trained.predict_topk(X, k=4)
    found = np.take_along_axis(logs, top.labels.astype(np.int64), axis=1)
    np.testing.assert_allclose(top.scores, found, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(trained.predict_log_proba(X, gap), logs[np.arange(120), gap])
    trained.save(tmp_path / "model")
    np.testing.assert_array_equal(um.load(tmp_path / "model").predict_log_proba(X, every), logs)


@pytest.mark.parametrize("head", ["full", "cascade", "sampling", "powerset"])
def test_scores_are_logarithms_of_the_probabilities_of_labels(head):
    _, Y, _ = samples(120)
    trained = model(head).fit(Y, Y)
    top = trained.predict_topk(Y, k=N_LABELS)
    likely = top.labels[:, :2], np.exp(top.scores[:, :2])
    assert np.exp(top.scores[top.labels >= 0]).max() <= 1
    assert likely[1].mean() > 0.5
    assert np.exp(top.scores[:, 2:]).mean() < 0.2


def test_labels_to_ask_about_are_checked():
    X, _, classes = samples(60)
    trained = model("full").set_params(epochs=1).fit(X, classes)
    with pytest.raises(LabelsError, match="which of the 12 labels"):
        trained.predict_log_proba(X)
    with pytest.raises(LabelsError, match=r"labels have shape \(3,\)"):
        trained.predict_log_proba(X, [0, 1, 2])
