"""Adversarial softmax as the last layer of a network."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
import torch
from scipy.special import logsumexp

import umpteen as um
from umpteen.errors import ModelCorruptError, ParameterError
from umpteen.softmax import AdversarialHead, NoiseTree
from umpteen.softmax.frequency_tree import frequency_tree
from umpteen.softmax.noise_operator import log_noise_table, noise_visits

DIM, N_LABELS = 5, 11


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    y = random.integers(N_LABELS, size=300)
    x = random.standard_normal((N_LABELS, DIM))[y] + 0.3 * random.standard_normal((300, DIM))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


@pytest.fixture
def head(data):
    torch.manual_seed(0)
    head = AdversarialHead(DIM, N_LABELS, noise_dim=3, frequency_share=0.25)
    return head.init_bias(np.arange(1, N_LABELS + 1)).fit_noise(*data)


def table_of(head, x):
    return log_noise_table(head._reduced(x), head._noise(), head.frequency_share)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 8, 13])
def test_a_tree_without_features_draws_by_frequency(n_classes):
    """Before the first fit, rare classes would be drawn as often as frequent ones."""
    frequencies = np.random.default_rng(0).dirichlet(np.ones(n_classes))
    weights, biases, label_of, leaf_of = frequency_tree(frequencies, dim=2)
    np.testing.assert_array_equal(label_of[leaf_of], np.arange(n_classes))
    assert not weights.any()
    for label, leaf in enumerate(leaf_of):
        node, probability = leaf + len(label_of), 1.0
        while node > 1:
            right = 1 / (1 + np.exp(-np.float64(biases[node // 2])))
            probability *= right if node % 2 else 1 - right
            node //= 2
        assert probability == pytest.approx(frequencies[label], rel=1e-5)


def test_noise_is_the_tree_and_frequencies(head, data):
    x, y = data
    tree = NoiseTree(dim=3, verbose=False).fit(x.numpy(), y.numpy(), n_classes=N_LABELS)
    trees = np.concatenate([np.exp(table) for _, table in tree.log_prob_all(x.numpy())])
    frequencies = (np.arange(1, N_LABELS + 1) + 0.5) / (np.arange(1, N_LABELS + 1) + 0.5).sum()
    expected = np.log(0.75 * trees + 0.25 * frequencies)
    np.testing.assert_allclose(table_of(head, x).numpy(), expected, atol=2e-5)


def test_draws_have_the_probabilities_that_they_are_said_to_have(head, data):
    """A wrong probability makes the loss that of another model."""
    x, y = data[0][:1].expand(20_000, -1), data[1][:1].expand(20_000)
    labels, logs = noise_visits(
        head._reduced(x), y, torch.tensor(3), head._noise(), head.frequency_share, 2
    )
    table = table_of(head, x[:1])[0]
    assert (labels[:, 0] == y).all()
    torch.testing.assert_close(logs, table[labels], atol=2e-5, rtol=0)
    shares = np.bincount(labels[:, 1:].ravel(), minlength=N_LABELS) / 40_000
    np.testing.assert_allclose(shares, table.exp(), atol=0.01)


def literal_loss(head, x, y, objective, seed):
    """One sample and one negative at a time."""
    labels, logs = noise_visits(
        head._reduced(x), y, seed, head._noise(), head.frequency_share, head.n_negatives
    )
    weights, biases = head.table.weight.detach(), head.bias.weight[:, 0].detach()
    losses = []
    for row in range(len(x)):
        scores = [float(x[row] @ weights[label] + biases[label]) for label in labels[row]]
        if objective == "negative_sampling":
            others = [np.log1p(np.exp(score)) for score in scores[1:]]
            loss, final = np.log1p(np.exp(-scores[0])) + np.mean(others), scores + logs[row].numpy()
        else:
            terms = [scores[0]] + [
                score - float(log) - np.log(head.n_negatives)
                for score, log, label in zip(scores[1:], logs[row, 1:], labels[row, 1:],
                                             strict=True)
                if label != y[row]
            ]  # fmt: skip
            loss, final = logsumexp(terms) - scores[0], np.array(scores)
        squares = np.square(final)
        losses.append(loss + head.regularizer * (squares[0] + squares[1:].mean()))
    return torch.tensor(losses)


@pytest.mark.parametrize("objective", ["sampled_softmax", "negative_sampling"])
def test_the_loss_is_that_of_the_drawn_classes(data, objective):
    head = AdversarialHead(DIM, N_LABELS, objective=objective, regularizer=0.1, n_negatives=6)
    torch.nn.init.normal_(head.table.weight)
    head.fit_noise(*data)
    x, y = data[0][:20], data[1][:20]
    torch.manual_seed(1)
    seed = torch.randint(2**62, ())
    expected = literal_loss(head, x, y, objective, seed)
    torch.manual_seed(1)
    found = head(x, y, reduction="none").detach()
    torch.testing.assert_close(found.double(), expected.double(), atol=1e-4, rtol=1e-4)


def test_many_negatives_give_the_loss_of_a_full_softmax(data, head):
    head.n_negatives = 20_000
    torch.nn.init.normal_(head.table.weight)
    x, y = data[0][:5], data[1][:5]
    logits = x @ head.table.weight.T + head.bias.weight[:, 0]
    expected = torch.nn.functional.cross_entropy(logits, y)
    torch.testing.assert_close(head(x, y), expected, atol=0.02, rtol=0)


def test_corrected_scores_are_log_probabilities_of_the_data():
    """Eq. 5: without the noise's part, frequent draws look like wrong classes."""
    truth = np.array([0.6, 0.3, 0.1])
    head = AdversarialHead(1, 3, objective="negative_sampling", n_negatives=16)
    head.init_bias([10, 50, 40])
    x, y = torch.ones(1000, 1), torch.from_numpy(np.repeat([0, 1, 2], (1000 * truth).astype(int)))
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for step in range(400):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / 400)
        optimizer.zero_grad()
        head(x, y).backward()
        optimizer.step()
    labels, scores = head.topk(x[:1], 3)
    assert labels.tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(scores[0].softmax(0), truth, atol=0.02)


def test_topk_of_corrected_scores_is_exact(data):
    head = AdversarialHead(DIM, N_LABELS, objective="negative_sampling").fit_noise(*data)
    torch.nn.init.normal_(head.table.weight)
    x = data[0][:9]
    with torch.no_grad():
        scores = x @ head.table.weight.T + head.bias.weight[:, 0] + table_of(head, x)
    labels, found = head.topk(x, N_LABELS)
    torch.testing.assert_close(found, scores.sort(dim=1, descending=True).values)
    torch.testing.assert_close(scores.gather(1, labels), found)


def test_an_encoder_below_learns_and_the_tree_follows(tmp_path):
    random = np.random.default_rng(0)
    y = random.integers(30, size=1500)
    X = np.sin(3 * random.standard_normal((30, 12)))[y] + 0.3 * random.standard_normal((1500, 12))
    model = um.NeuralClassifier("mlp", "adversarial", epochs=6, verbose=False)
    model.fit(X[:1200].astype(np.float32), y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.9
    head = model._ready_network(torch.device("cpu")).head
    assert head.tree_weights.any()  # no longer by frequency
    model.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(X) == model.predict_topk(X)


def test_a_continued_training_has_the_same_bits(tmp_path, data):
    X, y = (each.numpy() for each in data)
    settings = {"epochs": 4, "verbose": False, "checkpoint": str(tmp_path / "run")}
    recipe = um.neural.NetworkRecipe(checkpoint_every=0, patience=9)
    whole = um.NeuralClassifier("mlp", "adversarial", epochs=4, recipe=recipe, verbose=False)
    whole.fit(X, y)

    def stop(model):
        if len(model.history_["loss"]) == 3:
            raise KeyboardInterrupt

    cut = um.NeuralClassifier("mlp", "adversarial", recipe=recipe, **settings)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, y, watch=stop)
    cut.fit(X, y)
    assert cut.predict_topk(X) == whole.predict_topk(X)


def test_damaged_trees_are_refused(head):
    """The kernel does not check its indices."""
    for name, value in (("label_of", N_LABELS), ("leaf_of", -1), ("alias", N_LABELS)):
        weights = {key: each.clone() for key, each in head.state_dict().items()}
        weights[name][1] = value
        with pytest.raises(ModelCorruptError, match=name):
            AdversarialHead(DIM, N_LABELS, noise_dim=3, frequency_share=0.25).load_state_dict(
                weights
            )


@pytest.mark.parametrize("bias", [0.0, -np.inf, np.nan])
def test_biases_that_lead_to_leaves_without_a_class_are_refused(head, bias):
    """Such a draw has the label -1: training ended in an IndexError, or went on with NaN."""
    weights = {key: each.clone() for key, each in head.state_dict().items()}
    weights["tree_biases"][weights["tree_biases"] == np.inf] = bias
    other = AdversarialHead(DIM, N_LABELS, noise_dim=3, frequency_share=0.25)
    with pytest.raises(ModelCorruptError, match=r"noise tree has biases.*get their file again"):
        other.load_state_dict(weights)


@pytest.mark.parametrize("name", ["tree_weights", "components", "scale", "log_frequencies"])
def test_noise_that_is_not_finite_is_refused(head, name):
    weights = {key: each.clone() for key, each in head.state_dict().items()}
    weights[name][-1] = np.nan
    other = AdversarialHead(DIM, N_LABELS, noise_dim=3, frequency_share=0.25)
    with pytest.raises(ModelCorruptError, match=name):
        other.load_state_dict(weights)


@pytest.mark.parametrize("leaf", ["used", "unused"])
def test_leaves_of_other_classes_are_refused(head, leaf):
    weights = {key: each.clone() for key, each in head.state_dict().items()}
    used = weights["label_of"] >= 0
    at = used.nonzero()[0] if leaf == "used" else (~used).nonzero()[0]
    weights["label_of"][at] = -1 if leaf == "used" else 3
    other = AdversarialHead(DIM, N_LABELS, noise_dim=3, frequency_share=0.25)
    with pytest.raises(ModelCorruptError, match="one for each class"):
        other.load_state_dict(weights)


def test_weights_relative_to_other_noise_are_refused(head):
    other = AdversarialHead(DIM, N_LABELS, noise_dim=3, objective="negative_sampling")
    with pytest.raises(ParameterError, match="objective"):
        other.load_state_dict(head.state_dict())


@pytest.mark.parametrize(
    "wrong", [{"objective": "nce"}, {"frequency_share": 1.0}, {"n_negatives": 0}]
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        AdversarialHead(DIM, N_LABELS, **wrong)
