"""The steps of training, against literal losses and a literal Adagrad."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, logsumexp

from umpteen.kernels import sampled_softmax as kernel
from umpteen.kernels.sampled_softmax import Rules, slopes
from umpteen.softmax.full import train_on_all_classes
from umpteen.softmax.weights import DenseScores, SparseScores

N_CLASSES = 6
OBJECTIVES = {
    "negative_sampling": kernel.NEGATIVE_SAMPLING,
    "nce": kernel.NCE,
    "one_vs_each": kernel.ONE_VS_EACH,
    "augment_reduce": kernel.AUGMENT_REDUCE,
    "sampled_softmax": kernel.SAMPLED_SOFTMAX,
}


def rules_of(name, regularizer=0.05, center=0.0, batch_size=4):
    return Rules(OBJECTIVES[name], 0.3, regularizer, batch_size, center, 1.0)


def softplus(value):
    return np.logaddexp(0, value)


def literal_loss(name, rules, scores, logs, labels, bound):
    """Of one visit: the own class first, then those that were drawn."""
    own, drawn, n = scores[0], scores[1:], len(scores) - 1
    other = labels[1:] != labels[0]
    penalty = own**2 + np.mean(drawn**2)
    if name == "negative_sampling":  # Eq. 6
        loss = softplus(-own) + np.mean(softplus(drawn))
        corrected = scores + logs + rules.center
        penalty = corrected[0] ** 2 + np.mean(corrected[1:] ** 2)
    elif name == "nce":
        noise = logs + np.log(n)
        loss = softplus(noise[0] - own) + np.sum(softplus(drawn - noise[1:]))
    elif name == "one_vs_each":
        loss = np.sum(softplus(drawn - own)[other]) / n
    elif name == "augment_reduce":
        loss = np.log(bound) + (1 + estimated_sum(drawn - own, other)) / bound - 1
    else:
        weighed = (drawn - logs[1:] - np.log(n))[other]
        loss = -own + logsumexp(np.concatenate([[own], weighed]))
    return loss + rules.regularizer * penalty


def estimated_sum(differences, other):
    """Of exp(s_y' - s_y) over the other classes, from uniform draws."""
    return N_CLASSES / len(differences) * np.exp(differences[other]).sum()


def visit(seed, n=4):
    """Scores, the noise's log-probabilities and labels; one drawn class is the own one."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, N_CLASSES, 1 + n).astype(np.int32)
    labels[2] = labels[0]
    by_class = random.normal(0, 1.5, N_CLASSES)
    logs = np.log(random.dirichlet(np.ones(N_CLASSES)))[labels].astype(np.float32)
    return by_class[labels], logs, labels


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_the_derivatives_of_the_loss(name, seed):
    rules, share, old = rules_of(name, center=0.7), 0.4, 40.0  # 40: no part is cut off at 1
    scores, logs, labels = visit(seed)
    found = np.empty(len(scores))
    bound = slopes(rules, scores, logs, labels, N_CLASSES, old, share, found)
    for i in range(len(scores)):
        step = np.zeros(len(scores))
        step[i] = 1e-5
        above, below = (
            literal_loss(name, rules, scores + sign * step, logs.astype(float), labels, bound)
            for sign in (1, -1)
        )
        assert found[i] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_the_bound_moves_towards_what_the_visit_says():
    scores, logs, labels = visit(0)
    rules, other = rules_of("augment_reduce"), labels[1:] != labels[0]
    said = 1 + estimated_sum(scores[1:] - scores[0], other)
    new = slopes(rules, scores, logs, labels, N_CLASSES, 40.0, 0.25, np.empty(len(scores)))
    assert new == pytest.approx(0.75 * 40 + 0.25 * said)
    for name in set(OBJECTIVES) - {"augment_reduce"}:
        out = np.empty(len(scores))
        assert slopes(rules_of(name), scores, logs, labels, N_CLASSES, 40.0, 0.25, out) == 40.0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_very_large_scores_have_finite_slopes(name):
    _, logs, labels = visit(0)
    out = np.empty(len(labels))
    for own in (-1e4, 1e4):
        scores = np.where(labels == labels[0], own, -own)
        bound = slopes(rules_of(name, 0.0), scores, logs, labels, N_CLASSES, 5.0, 0.5, out)
        assert np.isfinite(out).all()
        assert np.isfinite(bound)
        assert np.abs(out).max() <= len(out)


def problem(n_rows=11, n_features=5, n=3, seed=0):
    """Rows, visits of them, labels with log-probabilities, and a model that knows something."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)).astype(np.float32)
    rows = random.permutation(n_rows).astype(np.int32)
    labels = random.integers(0, N_CLASSES, (n_rows, 1 + n)).astype(np.int32)
    logs = np.log(random.dirichlet(np.ones(N_CLASSES), n_rows)).astype(np.float32)
    logs = np.take_along_axis(logs, labels.astype(int), axis=1)
    model = DenseScores.zeros(N_CLASSES, n_features)
    model.weights[:] = random.normal(size=model.weights.shape) / 2
    model.biases[:] = random.normal(size=N_CLASSES) / 2
    return X, rows, labels, logs, model


class LiteralAdagrad:
    """Dense gradients of whole batches; float64."""

    def __init__(self, model, learning_rate):
        self.weights, self.biases = model.weights.astype(float), model.biases.astype(float)
        self.weight_squares = model.weight_squares.astype(float)
        self.bias_squares = model.bias_squares.astype(float)
        self.learning_rate = learning_rate

    def step(self, weight_gradient, bias_gradient):
        self.weight_squares += weight_gradient**2
        self.bias_squares += bias_gradient**2
        self.weights -= self.learning_rate * weight_gradient / np.sqrt(self.weight_squares)
        self.biases -= self.learning_rate * bias_gradient / np.sqrt(self.bias_squares)

    def train(self, rules, X, rows, labels, logs, bounds, share, support=1):
        for first in range(0, len(rows), rules.batch_size):
            weight_gradient, bias_gradient = np.zeros_like(self.weights), np.zeros(N_CLASSES)
            for visit in range(first, min(first + rules.batch_size, len(rows))):
                row, own = rows[visit], labels[visit]
                scores = self.weights[own] @ X[row].astype(float) + self.biases[own]
                out = np.empty(len(own))
                bounds[row] = slopes(
                    rules, scores, logs[visit], own, N_CLASSES, bounds[row], share, out
                )
                np.add.at(weight_gradient, own, out[:, None] * X[row])
                np.add.at(bias_gradient, own, out)
            self.step(weight_gradient * support, bias_gradient)


def as_sparse(model, support):
    """The same model with weights at `support` only."""
    weights = csr_matrix(support.astype(np.float32))
    at = np.nonzero(support)
    weights.data = model.weights[at]
    biases, bias_squares = model.biases.copy(), model.bias_squares.copy()
    return SparseScores(weights, biases, model.weight_squares[at], bias_squares)


def assert_same(model, literal, weights):
    np.testing.assert_allclose(weights, literal.weights, atol=1e-4)
    np.testing.assert_allclose(model.biases, literal.biases, atol=1e-4)
    np.testing.assert_allclose(model.bias_squares, literal.bias_squares, atol=1e-4)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_pass_over_dense_rows_is_literal_adagrad(name):
    X, rows, labels, logs, model = problem()
    literal, rules = LiteralAdagrad(model, 0.3), rules_of(name)
    bounds, literal_bounds = np.full(len(X), 6.0), np.full(len(X), 6.0)
    model.train(rules, X, rows, labels, logs, bounds, 0.5)
    literal.train(rules, X, rows, labels, logs, literal_bounds, 0.5)
    assert_same(model, literal, model.weights)
    np.testing.assert_allclose(bounds, literal_bounds, rtol=1e-4)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_pass_over_sparse_rows_is_literal_adagrad_at_the_own_features(name):
    X, rows, labels, logs, model = problem()
    random = np.random.default_rng(3)
    X *= random.random(X.shape) < 0.5
    support = random.random((N_CLASSES, X.shape[1])) < 0.6
    support[4] = False  # a class without features
    model.weights *= support
    sparse, literal = as_sparse(model, support), LiteralAdagrad(model, 0.3)
    bounds, literal_bounds = np.full(len(X), 6.0), np.full(len(X), 6.0)
    sparse.train(rules_of(name), csr_matrix(X), rows, labels, logs, bounds, 0.5)
    literal.train(rules_of(name), X, rows, labels, logs, literal_bounds, 0.5, support)
    assert_same(sparse, literal, sparse.weights.toarray())
    np.testing.assert_allclose(bounds, literal_bounds, rtol=1e-4)
    assert sparse.weights.nnz == support.sum()


def test_dense_and_sparse_agree_where_the_support_is_everything():
    X, rows, labels, logs, model = problem()
    sparse = as_sparse(model, np.ones((N_CLASSES, X.shape[1]), bool))
    for scores, features in ((model, X), (sparse, csr_matrix(X))):
        rules = rules_of("negative_sampling")
        scores.train(rules, features, rows, labels, logs, np.ones(len(X)), 0.5)
    np.testing.assert_allclose(sparse.weights.toarray(), model.weights, atol=1e-5)
    np.testing.assert_allclose(sparse.table(X), model.table(X), atol=1e-4)
    np.testing.assert_allclose(sparse.of_pairs(X, labels), model.of_pairs(X, labels), atol=1e-4)


def test_gradients_that_cancel_out_leave_nothing_for_the_next_class():
    """Feature 0 comes to exactly 0 and back; feature 1 then still belongs to class 0."""
    X = csr_matrix(np.array([[1, 0], [-1, 0], [1, 0], [0, 1], [1, 1]], np.float32))
    labels = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [1, 1]], np.int32)
    logs, rows = np.zeros(labels.shape, np.float32), np.arange(5, dtype=np.int32)
    model = DenseScores.zeros(2, 2)
    model.biases[:] = 1
    sparse = as_sparse(model, np.ones((2, 2), bool))
    rules = rules_of("negative_sampling", 0.0, batch_size=5)
    sparse.train(rules, X, rows, labels, logs, np.ones(5), 0.5)
    model.train(rules, X.toarray(), rows, labels, logs, np.ones(5), 0.5)
    assert (model.weights != 0).all()
    np.testing.assert_allclose(sparse.weights.toarray(), model.weights, rtol=1e-5)


def literal_softmax_pass(literal, rules, X, rows, labels):
    for first in range(0, len(rows), rules.batch_size):
        batch = X[rows[first : first + rules.batch_size]].astype(float)
        own = labels[first : first + rules.batch_size]
        scores = batch @ literal.weights.T + literal.biases
        out = np.exp(log_softmax(scores, axis=1)) - np.eye(N_CLASSES)[own]
        out += 2 * rules.regularizer * (scores / N_CLASSES + scores * np.eye(N_CLASSES)[own])
        literal.step(out.T @ batch, out.sum(axis=0))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_pass_of_full_softmax_is_literal_adagrad(sparse):
    X, rows, labels, _, model = problem()
    literal, rules = LiteralAdagrad(model, 0.3), rules_of("sampled_softmax")
    literal_softmax_pass(literal, rules, X, rows, labels[:, 0])
    if sparse:
        model = as_sparse(model, np.ones(model.weights.shape, bool))
    train_on_all_classes(model, rules, csr_matrix(X) if sparse else X, rows, labels[:, 0])
    assert_same(model, literal, model.weights.toarray() if sparse else model.weights)


def test_a_class_has_weights_at_the_features_of_its_own_samples():
    X = csr_matrix(np.array([[1, 0, 2, 0], [0, 3, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0]]))
    Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]))
    scores = SparseScores.zeros(X, Y)
    own = [scores.weights[label].indices.tolist() for label in range(3)]
    assert own == [[0, 1, 2], [1], []]


def test_more_samples_widen_the_support_and_leave_the_weights():
    random = np.random.default_rng(0)
    X, more = (csr_matrix(random.random((20, 9)) * (random.random((20, 9)) < 0.2)) for _ in "ab")
    Y, more_Y = (csr_matrix(np.eye(5)[random.integers(0, 5, 20)]) for _ in "ab")
    scores = SparseScores.zeros(X, Y)
    scores.weights.data[:] = random.random(scores.weights.nnz) + 1
    scores.weight_squares[:] = scores.weights.data * 2
    wide = scores.widened(more, more_Y)
    np.testing.assert_array_equal(wide.weights.toarray(), scores.weights.toarray())
    old = wide.weights.data > 0
    np.testing.assert_array_equal(wide.weight_squares[old], wide.weights.data[old] * 2)
    assert (wide.weight_squares[~old] == np.float32(1e-8)).all()
    both = (Y.T @ X).toarray() + (more_Y.T @ more).toarray() != 0
    assert wide.weights.nnz == both.sum() > scores.weights.nnz


@pytest.mark.parametrize("sparse", [False, True])
def test_compact_scores_of_each_class_keeps_the_mean_of_its_squares(sparse):
    random = np.random.default_rng(0)
    X = csr_matrix((random.random((30, 6)) < 0.3).astype(np.float32))
    given = random.random((30, 5)) < 0.3
    given[:, 4] = False  # a class without samples, and so without sparse weights
    Y = csr_matrix(given)
    scores = SparseScores.zeros(X, Y) if sparse else DenseScores.zeros(5, 6)
    for part in (scores.weights.data if sparse else scores.weights, scores.weight_squares):
        part[...] = random.random(part.shape) + 0.1
    moved = scores.compact().trainable()
    weights, squares = (
        (scores.weights.toarray(), _filled(scores))
        if sparse
        else (scores.weights, scores.weight_squares)
    )
    np.testing.assert_array_equal(moved.table(X), scores.table(X))
    assert not np.shares_memory(moved.biases, scores.biases)
    for label in range(5):
        own = squares[label][weights[label] != 0]
        new = (_filled(moved) if sparse else moved.weight_squares)[label][weights[label] != 0]
        np.testing.assert_allclose(new, own.mean() if len(own) else [], rtol=1e-5)


def _filled(scores):
    """Squares as a table, like the weights."""
    at = scores.weights
    return csr_matrix((scores.weight_squares, at.indices, at.indptr), shape=at.shape).toarray()
