"""Encoder, batches and shortlists: what is learned from must be what the data says."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_matrix

from umpteen.neural import SparseRows
from umpteen.search import LabelIndex
from umpteen.siamese.embedding import LabelBatches, PairNetwork
from umpteen.siamese.encoder import Encoder
from umpteen.siamese.loss import PairLoss
from umpteen.siamese.refining import SampleBatches
from umpteen.siamese.shortlist import hard_negatives
from umpteen.siamese.tower import Tower, TrainedEncoder
from umpteen.siamese.training import _trained

CPU = torch.device("cpu")


@pytest.fixture
def data():
    X = random_matrix(60, 30, 0.2, "csr", np.float32, 0)
    Z = random_matrix(20, 30, 0.2, "csr", np.float32, 1)
    Y = csr_matrix((np.random.default_rng(2).random((60, 20)) < 0.15).astype(np.float32))
    return X, Z, Y


def _batches(data, n_mined=3, **options):
    X, Z, Y = data
    torch.manual_seed(0)
    network = PairNetwork(
        Encoder(30, 8), 20, n_mined, kind="contrastive", likelihood=PairLoss(0.9, 1.5), n_hardest=2
    )
    settings = {"power": 0.45, "mine_every": 1, "device": CPU, "n_jobs": 1, **options}
    return LabelBatches(X, Z, Y, network, **settings)


def test_gradients_of_the_table_are_pytorchs_own(data):
    encoder = Encoder(30, 8)
    rows = SparseRows.of(data[0])
    weights = torch.rand(60, 8)
    (encoder(rows) * weights).sum().backward()
    found = encoder.table.weight.grad.to_dense()
    encoder.table.weight.grad = None
    sums = encoder.table(rows.columns, rows.offsets, per_sample_weights=rows.values)
    bags = torch.nn.functional.normalize(torch.relu(sums))
    (encoder.lift(bags) * weights).sum().backward()
    torch.testing.assert_close(found, encoder.table.weight.grad.to_dense())


@pytest.mark.parametrize("activation", ["relu", "gelu", "linear"])
def test_the_trained_encoder_computes_the_same_without_pytorch(data, activation):
    torch.manual_seed(0)
    encoder = Encoder(30, 8, activation=activation).eval()
    encoder.matrix.weight.data.normal_()
    fixed = _trained(encoder)
    X = csr_matrix(data[0] / np.maximum(1e-9, np.sqrt(data[0].multiply(data[0]).sum(1))))
    expected = encoder(SparseRows.of(X)).detach().numpy()
    np.testing.assert_allclose(fixed.lift(fixed.bags(data[0])), expected, atol=1e-5)


def test_before_training_the_residual_block_changes_nothing(data):
    encoder = Encoder(30, 8)
    bags = encoder.bags(SparseRows.of(data[0]))
    torch.testing.assert_close(encoder.lift(bags), bags)


def test_no_relevant_sample_is_ever_a_negative(data):
    """In-batch or mined: it would be pushed away from its own label."""
    relevant = data[2].T.toarray() > 0  # (labels, samples)
    batches, settings = _batches(data), SimpleNamespace(seed=0, batch_size=7)
    n_mined = 0
    for epoch in range(4):
        for drawn in batches.batches(epoch, settings):
            rows, marked, owners = batches.batch(drawn)
            mined = drawn.mined[drawn.mined >= 0]
            np.testing.assert_array_equal(drawn.mined[owners.numpy()], mined)
            samples = np.concatenate([drawn.samples, mined])
            n_mined += len(mined)
            np.testing.assert_array_equal(marked.numpy(), relevant[drawn.labels][:, samples])
            assert marked.diagonal().all()
            assert not relevant[drawn.labels[drawn.mined >= 0], mined].any()
            assert len(rows) == len(drawn.labels) + len(samples)
    assert n_mined > 0


def test_mined_samples_are_the_nearest_that_are_not_relevant(data):
    batches = _batches(data, n_mined=3)
    batches.batches(1, SimpleNamespace(seed=0, batch_size=7))
    labels, samples = batches._encode(data[1]), batches._encode(data[0])
    cosines = np.where(data[2].T.toarray() > 0, -np.inf, labels @ samples.T)
    chosen = np.take_along_axis(cosines, batches.network.mined.numpy(), axis=1)
    np.testing.assert_allclose(chosen, -np.sort(-cosines, axis=1)[:, :3], atol=1e-6)


def test_an_epoch_that_is_continued_mines_nothing_anew(data):
    """Its weights have moved on: other negatives would mean other bits than without a break."""
    batches, settings = _batches(data), SimpleNamespace(seed=0, batch_size=7)
    before = batches.batches(1, settings)
    batches.network.encoder.table.weight.data.normal_()
    after = batches.batches(1, settings)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.mined, other.mined)
        np.testing.assert_array_equal(one.samples, other.samples)


def test_labels_are_drawn_by_a_power_of_their_frequency(data):
    batches = _batches(data, power=0.45)
    counts = np.asarray(data[2].sum(axis=0), np.float64).ravel()
    np.testing.assert_allclose(batches.chances, counts**0.45 / (counts**0.45).sum())


def test_shortlists_are_the_nearest_labels_that_are_not_relevant(data):
    Y, random = data[2], np.random.default_rng(0)
    vectors, bags = random.random((20, 5)), random.random((60, 5)).astype(np.float32)
    found = hard_negatives([LabelIndex(vectors)], bags, Y, 4)
    units = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (bags, vectors)]
    cosines = np.where(Y.toarray() > 0, -np.inf, units[0] @ units[1].T)
    expected = np.sort(np.argsort(-cosines, axis=1)[:, :4], axis=1)
    np.testing.assert_array_equal(np.sort(found, axis=1), expected)


@pytest.mark.parametrize("residual", [True, False])
def test_one_search_goes_by_the_direction_of_the_sum(residual):
    random = np.random.default_rng(0)
    vectors = random.standard_normal((4, 30, 6)).astype(np.float32)
    texts, centroids, own, _ = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    centroids[5] = 0  # has no samples
    matrix = random.random((6, 6)).astype(np.float32) if residual else None
    encoder = TrainedEncoder(random.standard_normal((9, 6)).astype(np.float32), matrix, "relu")
    tower = Tower.of(encoder, texts, centroids, own, method="exact")
    bags = encoder.bags(random.random((8, 9)).astype(np.float32))
    lifted = encoder.lift(bags)
    centroids[5] = texts[5]
    sums = lifted @ own.T + bags @ (texts + centroids).T
    together = np.linalg.norm(own + texts + centroids, axis=1)
    apart = np.sqrt(1 + np.linalg.norm(texts + centroids, axis=1) ** 2)
    expected = np.argsort(-sums / (apart if residual else together), axis=1)[:, :4]
    np.testing.assert_array_equal(np.sort(tower.nearest(bags, lifted, 4, 8)), np.sort(expected))


def test_what_a_sample_is_asked_about_is_told_apart(data):
    Y = data[2]
    hard = hard_negatives([LabelIndex(np.random.default_rng(0).random((20, 5)))],
                          np.ones((60, 5), np.float32), Y, 4)  # fmt: skip
    batches = SampleBatches(Y, hard, n_random=5, corrected=True, device=CPU)
    seen = np.zeros(Y.shape, bool)
    for drawn in batches.batches(0, SimpleNamespace(seed=0, batch_size=16)):
        asked, _ = batches.batch(drawn)
        compared = np.zeros((len(asked.samples), Y.shape[1]), int)
        relevant = Y.toarray()[asked.samples] > 0
        for places, weights, own in (
            (asked.own, asked.own_weights, True),
            (asked.hard, asked.hard_weights, False),
            (asked.drawn.expand(asked.drawn_weights.shape), asked.drawn_weights, False),
        ):
            rows, columns = np.nonzero(weights.numpy())
            labels = asked.labels[places.numpy()[rows, columns]]
            assert (relevant[rows, labels] == own).all()
            np.add.at(compared, (rows, labels), 1)
            if own:
                seen[asked.samples[rows], labels] = True
        assert compared.max() == 1  # no negative twice
    np.testing.assert_array_equal(seen, Y.toarray() > 0)


@pytest.mark.parametrize("power", [0.0, 0.7, 300.0, 1e300])
def test_labels_are_drawn_by_any_power_of_their_frequency(data, power):
    counts = data[2].getnnz(axis=0)
    shares = [float(count / counts.max()) ** power if count else 0.0 for count in counts]
    np.testing.assert_allclose(_batches(data, power=power).chances, shares / np.sum(shares))
