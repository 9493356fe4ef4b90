"""Modules I to IV against their literal versions: a wrong constant would train something else.

Models here train Module III with a learning rate of next to nothing: the loss that they report is
that of vectors which the fitted model still has, and can be computed anew by plain loops.
"""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_matrix
from scipy.special import expit

from tests.siamese.settings import siamese
from umpteen.neural import SparseRows
from umpteen.siamese.embedding import LabelBatches, PairNetwork
from umpteen.siamese.encoder import Encoder
from umpteen.siamese.loss import PairLoss
from umpteen.siamese.refining import Refiner, SampleBatch, SampleBatches, Starts
from umpteen.siamese.tower import SCALE

CPU = torch.device("cpu")
N_SAMPLES, N_FEATURES, N_LABELS = 64, 40, 15
STILL = {
    "dim": 8, "epochs": 3, "dropout": 0.0, "refine_epochs": 1, "refine_learning_rate": 1e-30,
    "n_hard": 4, "n_random": 0, "modules": ("embed", "mine", "refine"), "random_state": 0,
    "verbose": False, "batch_size": 8,
}  # fmt: skip
PAPER = {"classifier": "cosine", "residual": True, "activation": "relu", "loss": "contrastive"}


def units(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@pytest.fixture(scope="module")
def data():
    X = random_matrix(N_SAMPLES, N_FEATURES, 0.2, "csr", np.float32, 0)
    Z = random_matrix(N_LABELS, N_FEATURES, 0.3, "csr", np.float32, 1)
    random = np.random.default_rng(2)
    Y = random.random((N_SAMPLES, N_LABELS)) < random.random(N_LABELS) * 0.4
    Y[np.arange(N_SAMPLES), random.integers(N_LABELS, size=N_SAMPLES)] = True
    return X, Z, csr_matrix(Y.astype(np.float32))


class Literal:
    """The vectors of a fitted model, by the formulas of the paper in plain numpy."""

    def __init__(self, model, data):
        self.X, self.Z, Y = data
        self.Y = Y.toarray() > 0
        encoder = model.towers_[0].encoder
        self.table = encoder.table.astype(np.float64)
        self.matrix = encoder.matrix
        self.is_relu = encoder.activation == "relu"
        self.samples, self.texts = self.f(self.X), self.f(self.Z)
        self.centroids = units(self.Y.T @ self.samples)

    def f(self, rows):
        sums = units(rows.toarray()) @ self.table
        if self.is_relu:
            return units(np.maximum(sums, 0))
        return units(torch.nn.functional.gelu(torch.from_numpy(sums)).numpy())

    def lift(self, bags):
        if self.matrix is None:
            return bags
        return units(bags + np.maximum(bags @ self.matrix.T.astype(np.float64), 0))

    def negatives(self, n_each):
        """The nearest labels by text and by centroid that are not relevant, as sets."""
        found = [set() for _ in range(N_SAMPLES)]
        for vectors in (self.texts, self.centroids):
            cosines = np.where(self.Y, -np.inf, self.samples @ vectors.T)
            for row, order in enumerate(np.argsort(-cosines, axis=1)[:, :n_each]):
                found[row] |= {label for label in order if not self.Y[row, label]}
        return found

    def mean_loss(self, scores, hard, of_own, of_other):
        """Over batches of eight samples, as large as all others."""
        total = sum(
            sum(of_own(score) for score in scores[row][self.Y[row]])
            + sum(of_other(scores[row, label]) for label in hard[row])
            for row in range(N_SAMPLES)
        )
        return total / N_SAMPLES


@pytest.mark.parametrize("start", ["text", "centroid"])
@pytest.mark.parametrize(("c", "d"), [(0.75, 3.0), (0.9, 1.5)])
def test_module_3_of_the_paper_is_its_literal_version(data, start, c, d):
    settings = {**STILL, **PAPER, "start": start, "refine_likelihood": (c, d)}
    model = siamese(**settings).fit(*data[::2], label_features=data[1])
    literal = Literal(model, data)
    own = literal.lift(literal.texts)
    assert np.abs(own - literal.texts).max() > 0.01  # R was trained, and counts
    if start == "centroid":
        own = units(own + units(literal.Y.T @ literal.lift(literal.samples)))
    scores = literal.lift(literal.samples) @ own.T
    expected = literal.mean_loss(
        scores, literal.negatives(2),
        lambda v: -np.log(c * np.exp(d * (v - 1))), lambda v: -np.log(1 - c * np.exp(d * (v - 1))),
    )  # fmt: skip
    assert model.history_[0]["refine"][0] == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(model.classifiers_of_labels_, own, atol=1e-5)


def test_the_papers_constants_are_those_of_the_supplement():
    recipe = siamese().paper().recipe
    assert recipe.likelihood == (0.9, 1.5)
    assert recipe.refine_likelihood == (0.75, 3.0)
    assert (recipe.classifier, recipe.start, recipe.activation) == ("cosine", "text", "relu")


def log_odds_of(literal):
    counts = literal.Y.sum(axis=0)
    return np.log((counts + 0.5) / (N_SAMPLES - counts + 0.5))


@pytest.mark.parametrize("start", ["text", "centroid"])
def test_module_3_with_hard_negatives_alone_is_logistic_regression_on_them(data, start):
    model = siamese(**STILL, start=start).fit(*data[::2], label_features=data[1])
    literal = Literal(model, data)
    middle = (literal.texts + literal.centroids) / 2
    own = SCALE * (middle if start == "centroid" else literal.texts)
    scores = literal.samples @ own.T + log_odds_of(literal)
    expected = literal.mean_loss(
        scores, literal.negatives(2), lambda s: np.log1p(np.exp(-s)), lambda s: np.log1p(np.exp(s))
    )
    assert model.history_[0]["refine"][0] == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(model.towers_[0].biases, log_odds_of(literal), atol=1e-5)


def test_what_module_3_learns_is_what_answers(data):
    """The loss of the vectors and biases that the model has is below that of the first ones."""
    losses = []
    for changes in ({}, {"refine_learning_rate": 1e-2, "refine_epochs": 5}):
        model = siamese(**{**STILL, **changes}).fit(*data[::2], label_features=data[1])
        literal, tower = Literal(model, data), model.towers_[0]
        scores = literal.samples @ tower.classifiers.T + tower.biases
        hard = literal.negatives(2)
        losses.append(
            literal.mean_loss(
                scores, hard, lambda s: np.log1p(np.exp(-s)), lambda s: np.log1p(np.exp(s))
            )
        )
    assert losses[1] < 0.9 * losses[0]
    assert losses[1] < model.history_[0]["refine"][-1]


def test_where_all_labels_are_drawn_module_3_is_one_vs_all_over_all_of_them(data):
    model = siamese(**{**STILL, "n_random": 10**6}).fit(*data[::2], label_features=data[1])
    literal = Literal(model, data)
    own = SCALE * (literal.texts + literal.centroids) / 2
    chances = expit(literal.samples @ own.T + log_odds_of(literal))
    expected = -np.log(np.where(literal.Y, chances, 1 - chances)).sum() / N_SAMPLES
    assert model.history_[0]["refine"][0] == pytest.approx(expected, rel=1e-4)


def test_random_negatives_stand_for_all_labels_on_average(data):
    """Each pair that is not compared anyway has an expected weight of 1, and is drawn once."""
    Y = data[2]
    random = np.random.default_rng(0)
    hard = np.full((N_SAMPLES, 2), -1, np.int32)
    for row in range(N_SAMPLES):
        others = np.setdiff1d(np.arange(N_LABELS), Y[row].indices)
        hard[row] = random.permutation(others)[:2]
    batches = SampleBatches(Y, hard, n_random=4, corrected=True, device=CPU)
    assert batches.chances.min() < 0.3
    assert np.isclose(batches.chances.sum(), 4)
    weights, n_draws = np.zeros((N_SAMPLES, N_LABELS)), 800
    rows = np.arange(N_SAMPLES)
    for number in range(n_draws):
        batch, _ = batches.batch((rows, [number]))
        drawn = batch.labels[batch.drawn.numpy()]
        assert len(set(drawn)) == len(drawn)
        weights[:, drawn] += batch.drawn_weights.numpy()
    expected = (Y.toarray() == 0).astype(float)
    expected[rows[:, None], hard] = 0
    assert (weights[expected == 0] == 0).all()
    # A label of chance p has a standard error of sqrt((1 - p) / (p n)), at most 0.1 here.
    np.testing.assert_allclose((weights / n_draws)[expected == 1], 1, atol=0.4)


def test_few_random_negatives_have_the_loss_of_all_labels_on_average(data):
    settings = {**STILL, "n_random": 4, "n_hard": 0, "refine_epochs": 30, "epochs": 1}
    model = siamese(**settings).fit(*data[::2], label_features=data[1])
    literal = Literal(model, data)
    own = SCALE * (literal.texts + literal.centroids) / 2
    chances = expit(literal.samples @ own.T + log_odds_of(literal))
    expected = -np.log(np.where(literal.Y, chances, 1 - chances)).sum() / N_SAMPLES
    assert np.mean(model.history_[0]["refine"]) == pytest.approx(expected, rel=0.05)


def test_of_very_many_labels_some_stand_for_all():
    Y = csr_matrix(np.ones((4, 50), np.float32))
    none = np.zeros((4, 0), np.int32)
    batch, _ = SampleBatches(Y, none, n_random=0, corrected=True, device=CPU).batch(
        (np.arange(4), [0])
    )
    assert batch.own.shape == (4, 20)
    assert batch.own_weights.sum().item() == pytest.approx(200)


def _pairs_batch(random, data):
    """Twelve samples and all labels, with weights of any size."""
    samples = random.permutation(N_SAMPLES)[:12]
    places = [torch.from_numpy(random.integers(N_LABELS, size=(12, n))) for n in (3, 4)]
    drawn = torch.from_numpy(random.permutation(N_LABELS)[:5])
    weights = [torch.from_numpy(random.random((12, n)).astype(np.float32)) for n in (3, 4, 5)]
    return SampleBatch(
        samples,
        np.arange(N_LABELS),
        places[0],
        weights[0],
        places[1],
        weights[1],
        drawn,
        weights[2],
    )


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_slopes_of_modules_3_and_4_are_those_of_the_literal_loss(data, logistic, joint):
    """In Module IV words move by what samples are, with cosines by label texts as well."""
    X, Z, _ = (csr_matrix(units(part.toarray())) for part in data)
    random = np.random.default_rng(3)
    torch.manual_seed(0)
    encoder = Encoder(N_FEATURES, 8, activation="relu")
    encoder.matrix.weight.data.normal_()
    table = encoder.table.weight.detach().clone().double().requires_grad_(joint)
    matrix = encoder.matrix.weight.detach().clone().double().requires_grad_()
    vectors, biases = torch.rand(N_LABELS, 8), torch.rand(N_LABELS, 1)
    own, bias = vectors.double().requires_grad_(), biases.double().requires_grad_(logistic)
    with torch.no_grad():
        bags = [encoder.bags(SparseRows.of(part)) for part in (X, Z)]
    starts = Starts(vectors.clone(), biases.clone() if logistic else None)
    network = Refiner(encoder, *bags, starts, PairLoss(0.75, 3.0), (X, Z) if joint else None)
    batch = _pairs_batch(random, data)
    found = network.loss(batch)
    found.backward()

    def f(rows):
        sums = torch.from_numpy(rows.toarray()).double() @ table
        return torch.nn.functional.normalize(torch.relu(sums))

    def lift(bags):
        return torch.nn.functional.normalize(bags + torch.relu(bags @ matrix.T))

    samples = lift(f(X)[batch.samples])
    if logistic:
        scores = SCALE * (samples @ own.T + bias[:, 0])
        of_own, of_other = (
            torch.nn.functional.softplus(-scores),
            torch.nn.functional.softplus(scores),
        )
    else:
        scores = samples @ torch.nn.functional.normalize(lift(f(Z)) + own).T
        chances = 0.75 * torch.exp(3.0 * (scores - 1))
        of_own, of_other = -torch.log(chances), -torch.log(1 - chances)
    expected = 0
    for row in range(12):
        for place, weight in zip(batch.own[row], batch.own_weights[row], strict=True):
            expected = expected + of_own[row, place] * weight
        for place, weight in zip(batch.hard[row], batch.hard_weights[row], strict=True):
            expected = expected + of_other[row, place] * weight
        for place, weight in zip(batch.drawn, batch.drawn_weights[row], strict=True):
            expected = expected + of_other[row, place] * weight
    expected = expected / 12
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-4)
    pairs = [(network.vectors.weight, own), (encoder.matrix.weight, matrix)]
    pairs += [(network.biases.weight, bias)] if logistic else []
    pairs += [(encoder.table.weight, table)] if joint else []
    for weights, literal in pairs:
        slope = weights.grad.to_dense() if weights.grad.is_sparse else weights.grad
        torch.testing.assert_close(slope.double(), literal.grad, rtol=1e-3, atol=1e-4)
    assert joint or encoder.table.weight.grad is None


@pytest.mark.parametrize("classifier", ["cosine", "logistic"])
def test_module_4_moves_words_and_module_3_does_not(data, classifier):
    changes = {"classifier": classifier, "refine_learning_rate": 1e-2, "joint_epochs": 3}
    made = [
        siamese(**{**STILL, **changes, "modules": ("embed", "mine", *more)}).fit(
            *data[::2], label_features=data[1]
        )
        for more in ((), ("refine",), ("refine", "joint"))
    ]
    alone, refined, joint = (model.towers_[0].encoder.table for model in made)
    np.testing.assert_array_equal(alone, refined)
    assert np.abs(joint - alone).max() > 1e-3
    assert made[2].history_[0]["joint"][-1] < made[2].history_[0]["refine"][0]
    assert [len(made[2].history_[0][name]) for name in ("refine", "joint")] == [1, 3]


def _vectors(rows, seed):
    random = np.random.default_rng(seed)
    return random_matrix(rows, N_FEATURES, 0.3, "csr", np.float32, random)


@pytest.mark.parametrize("kind", ["softmax", "contrastive"])
def test_module_1_is_its_literal_version(kind):
    """Four labels, their samples, and samples mined for two of the labels."""
    torch.manual_seed(0)
    encoder = Encoder(N_FEATURES, 6)
    loss = PairLoss(0.9, 1.5)
    network = PairNetwork(encoder, 4, 2, kind=kind, likelihood=loss, n_hardest=2)
    rows = SparseRows.of(_vectors(10, 5))
    relevant = np.eye(4, 6, dtype=bool)
    relevant[0, 2] = True  # another label's sample that is relevant as well
    owners = [1, 3]
    found = network.loss(rows, torch.from_numpy(relevant), torch.tensor(owners))
    vectors = encoder(rows).detach().double().numpy()
    v = vectors[:4] @ vectors[4:].T  # (4, 6)
    total = 0.0
    if kind == "softmax":
        for label in range(4):
            own = v[label, label] / 0.05
            others = [v[label, j] / 0.05 for j in range(6) if not relevant[label, j]]
            total -= own - np.log(np.exp([own, *others]).sum())
            others = [v[j, label] / 0.05 for j in range(4) if not relevant[j, label]]
            total -= own - np.log(np.exp([own, *others]).sum())
        expected = total / 8
    else:
        for label in range(4):
            own = [-np.log(0.9 * np.exp(1.5 * (v[label, j] - 1))) for j in range(4)
                   if relevant[label, j]]  # fmt: skip
            others = sorted(
                (-np.log(1 - 0.9 * np.exp(1.5 * (v[label, j] - 1))) for j in range(4)
                 if not relevant[label, j]), reverse=True,
            )  # fmt: skip
            if label in owners:  # one online, and its own mined one
                place = 4 + owners.index(label)
                mined = -np.log(1 - 0.9 * np.exp(1.5 * (v[label, place] - 1)))
                others = [others[0], mined]
            total += sum(own) + sum(others[:2])
        expected = total / 4
    assert found.item() == pytest.approx(expected, rel=1e-4)


@pytest.fixture
def drawn_batches(monkeypatch):
    """All batches of Module I."""
    made, draw = [], LabelBatches._draw

    def telling(*arguments):
        made.append(draw(*arguments))
        return made[-1]

    monkeypatch.setattr(LabelBatches, "_draw", telling)
    return made


MODULE_1 = {**STILL, **PAPER, "modules": ("embed",), "learning_rate": 1e-30, "epochs": 2,
            "likelihood": (0.8, 2.0), "n_negatives": 3, "mine_every": 1}  # fmt: skip


def test_module_1_learns_from_the_hardest_and_from_mined_samples(data, drawn_batches):
    """Its settings are those of the recipe; samples are mined before the second epoch."""
    model = siamese(**MODULE_1).fit(*data[::2], label_features=data[1])
    literal = Literal(model, data)
    cosines = literal.lift(literal.texts) @ literal.lift(literal.samples).T  # (labels, samples)
    chances = 0.8 * np.exp(2.0 * (cosines - 1))
    losses = []
    for batch in drawn_batches:
        total = 0.0
        for label, mined in zip(batch.labels, batch.mined, strict=True):
            own = literal.Y[batch.samples, label]
            total -= np.log(chances[label, batch.samples[own]]).sum()
            others = np.sort(-np.log(1 - chances[label, batch.samples[~own]]))[::-1]
            total += others[: 3 if mined < 0 else 2].sum()
            total -= 0 if mined < 0 else np.log(1 - chances[label, mined])
        losses.append(total / len(batch.labels))
    half = len(losses) // 2
    assert all((batch.mined < 0).all() for batch in drawn_batches[:half])
    assert all((batch.mined >= 0).any() for batch in drawn_batches[half:])
    expected = [np.mean(losses[:half]), np.mean(losses[half:])]
    np.testing.assert_allclose(model.history_[0]["embed"], expected, rtol=1e-3)


def test_module_1_draws_labels_by_the_power_and_leaves_out_words(data, drawn_batches):
    frequent = siamese(**MODULE_1, label_power=100.0).fit(*data[::2], label_features=data[1])
    counts = data[2].getnnz(axis=0)
    assert {int(label) for batch in drawn_batches for label in batch.labels} == {counts.argmax()}
    fewer_words = siamese(**{**MODULE_1, "label_power": 100.0, "dropout": 0.5})
    fewer_words.fit(*data[::2], label_features=data[1])
    assert fewer_words.history_[0]["embed"][0] > 1.02 * frequent.history_[0]["embed"][0]


def test_candidates_come_from_every_tower(data):
    """With a shortlist of one label, a tower offers the two that it finds nearest."""
    X, Z, Y = data
    model = siamese(**{**STILL, "epochs": 1, "n_models": 3, "shortlist": 1, "alpha": 0.0})
    model.fit(X, Y, label_features=Z)
    nearest, scores = [], 0
    for tower in model.towers_:
        bags = tower.encoder.bags(X)
        sums = units(tower.classifiers) + tower.texts + tower.centroids
        nearest.append(np.argsort(-(bags @ units(sums).T), axis=1)[:, :2])
        scores = scores + bags @ (tower.texts + tower.centroids).T

    def best(towers):
        offered = np.concatenate(towers, axis=1)
        places = np.take_along_axis(scores, offered, axis=1).argmax(axis=1)
        return offered[np.arange(N_SAMPLES), places]

    answers = model.predict_topk(X, k=1).labels[:, 0]
    np.testing.assert_array_equal(answers, best(nearest))
    assert (answers != best(nearest[:1])).any()


def test_towers_of_an_ensemble_differ_and_all_of_them_answer(data):
    X, Z, Y = data
    settings = {**STILL, "refine_learning_rate": 2e-3, "n_models": 3, "alpha": 0.7}
    model = siamese(**settings).fit(X, Y, label_features=Z)
    tables = [tower.encoder.table for tower in model.towers_]
    assert len(tables) == 3
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(tables[one] - tables[other]).max() > 0.1
    own, text, centroid = np.mean(
        [
            [
                bags @ tower.classifiers.T + tower.biases,
                bags @ tower.texts.T,
                bags @ tower.centroids.T,
            ]
            for tower in model.towers_
            for bags in [tower.encoder.bags(X)]
        ],
        axis=0,
    )
    expected = 0.7 * expit(own) + 0.3 * (text + centroid) / 2
    scores = model.predict_topk(X, k=N_LABELS).to_csr(N_LABELS).toarray()
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_batches_of_all_samples_cover_each_once(data):
    batches = SampleBatches(
        data[2], np.zeros((N_SAMPLES, 0), np.int32), n_random=2, corrected=False, device=CPU
    )
    made = batches.batches(3, SimpleNamespace(seed=0, batch_size=8))
    samples = np.concatenate([part for part, _ in made])
    np.testing.assert_array_equal(np.sort(samples), np.arange(N_SAMPLES))
    batch, _ = batches.batch(made[0])
    assert set(np.unique(batch.drawn_weights.numpy())) <= {0.0, 1.0}  # as printed: no correction
