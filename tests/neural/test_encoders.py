"""Encoders against what they should compute, written out."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from scipy.sparse import csr_matrix
from torch.nn.functional import conv2d, group_norm, max_pool2d, relu

import umpteen as um
from umpteen.errors import ParameterError
from umpteen.neural import MLP, Bag, Conv, NetworkRecipe, Residual, ResNet, SparseRows
from umpteen.neural.augmentation import Augmentation
from umpteen.neural.inputs import Inputs

CPU = torch.device("cpu")


@pytest.fixture
def random():
    torch.manual_seed(0)
    return np.random.default_rng(0)


def test_bag_is_a_product_with_the_table(random):
    """Rows with no entry among them: first, in the middle, last."""
    dense = random.random((6, 9)).astype(np.float32) * (random.random((6, 9)) < 0.4)
    dense[[0, 3, 5]] = 0
    bag = Bag(9, dim=4)
    expected = relu(torch.from_numpy(dense) @ bag.table.weight)
    torch.testing.assert_close(bag(SparseRows.of(csr_matrix(dense))), expected)


def test_sparse_and_dense_gradients_agree(random):
    rows = SparseRows.of(csr_matrix(random.random((5, 9)) < 0.4, dtype=np.float32))
    gradients = []
    for sparse in (True, False):
        torch.manual_seed(1)
        bag = Bag(9, dim=4, sparse=sparse)
        bag(rows).square().sum().backward()
        gradients.append(bag.table.weight.grad)
    assert gradients[0].is_sparse
    torch.testing.assert_close(gradients[0].to_dense(), gradients[1])


def test_residual_block_doubles_what_is_not_negative_at_first():
    """W is the identity, the radius 1 and the bias 0; without dropout, x + ReLU(x)."""
    x = torch.tensor([[1.0, -2.0, 3.0]])
    torch.testing.assert_close(Residual(3).eval()(x), x + relu(x))


def test_residual_block_has_spectral_norm_1(random):
    block = Residual(6)
    with torch.no_grad():
        block.matrix.parametrizations.weight.original.normal_().mul_(5)
    for _ in range(200):  # a step of the power iteration each
        block(torch.zeros(1, 6))
    block.eval()
    norm = torch.linalg.matrix_norm(block.matrix.weight, 2).item()
    assert norm == pytest.approx(1, abs=1e-3)
    x = torch.randn(2, 6)
    moved = relu(block.radius * x @ block.matrix.weight.T + block.bias)
    torch.testing.assert_close(block(x), x + moved)


def test_bag_with_residual(random):
    rows = SparseRows.of(csr_matrix(random.random((5, 9)) < 0.4, dtype=np.float32))
    bag = Bag(9, dim=4, residual=True).eval()
    plain = relu(bag.table(rows.columns, rows.offsets, per_sample_weights=rows.values))
    torch.testing.assert_close(bag(rows), 2 * plain)


def test_mlp_is_layer_after_layer(random):
    network, x = MLP(5, dim=3, n_layers=2), torch.randn(4, 5)
    first, second = network.layers[0], network.layers[3]
    hidden = relu(x @ first.weight.T + first.bias)
    torch.testing.assert_close(network(x), relu(hidden @ second.weight.T + second.bias))


@pytest.mark.parametrize(("side", "n_stages"), [(1, 1), (5, 1), (28, 2), (56, 3)])
def test_conv_is_stage_after_stage(side, n_stages):
    torch.manual_seed(0)
    network, images = Conv((2, side, side), dim=6, width=8), torch.randn(3, 2, side, side)
    x = images
    for conv in [layer for layer in network.stages if isinstance(layer, torch.nn.Conv2d)]:
        x = relu(group_norm(conv2d(x, conv.weight, conv.bias, padding=1), 8))
        x = max_pool2d(x, 2) if x.shape[-1] > 1 else x
        n_stages -= 1
    assert n_stages == 0
    expected = relu(x.flatten(1) @ network.last.weight.T + network.last.bias)
    torch.testing.assert_close(network(images), expected)
    torch.testing.assert_close(network(images.flatten(1)), expected)


def test_hidden_layers_and_a_linear_end():
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    mlp = MLP(5, dim=3, n_layers=2, hidden=7, linear=True)
    first, last = (layer for layer in mlp.layers if isinstance(layer, torch.nn.Linear))
    hidden = relu(x @ first.weight.T + first.bias)
    assert hidden.shape == (4, 7)
    torch.testing.assert_close(mlp(x), hidden @ last.weight.T + last.bias)
    images = torch.randn(4, 1, 8, 8)
    conv = Conv((1, 8, 8), dim=3, width=8, hidden=7, linear=True)
    inner = next(layer for layer in conv.stages if isinstance(layer, torch.nn.Linear))
    assert (inner.in_features, inner.out_features) == (8 * 4 * 4, 7)
    plain = Conv((1, 8, 8), dim=7, width=8)
    plain.load_state_dict({
        name.replace("stages.5", "last"): value
        for name, value in conv.state_dict().items()
        if not name.startswith("last")
    })  # fmt: skip
    expected = plain(images) @ conv.last.weight.T + conv.last.bias
    torch.testing.assert_close(conv(images), expected)
    assert (conv(images) < 0).any()


def test_wrong_sizes_are_refused():
    with pytest.raises(ParameterError, match="n_layers=0"):
        MLP(5, n_layers=0)
    with pytest.raises(ParameterError, match="multiple of 8"):
        Conv((1, 28, 28), width=12)


def test_dense_rows_are_standardised(random):
    X = (random.normal(3, 2, (200, 4)) * [1, 1e30, 1e-30, 0]).astype(np.float32)
    batch = Inputs.learn(X, "dense").batch(X, CPU).numpy()
    np.testing.assert_allclose(batch.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(batch.std(0), [1, 1, 1, 0], atol=1e-5)
    sparse = Inputs.learn(csr_matrix(X), "dense").batch(csr_matrix(X), CPU).numpy()
    np.testing.assert_array_equal(sparse, batch)


def test_images_are_standardised_by_channel(random):
    X = random.normal([[[5.0]], [[100.0]]], [[[1.0]], [[20.0]]], (50, 2, 6, 6)).astype(np.float32)
    rows = X.reshape(50, -1)
    batch = Inputs.learn(rows, "images", 2).batch(rows, CPU).numpy().reshape(X.shape)
    np.testing.assert_allclose(batch.mean((0, 2, 3)), 0, atol=1e-4)
    np.testing.assert_allclose(batch.std((0, 2, 3)), 1, atol=1e-4)
    assert not np.allclose(batch.mean(0), 0, atol=1e-3)  # pixels keep their own means


def test_a_wild_value_stays_within_reach():
    inputs = Inputs.learn(np.array([[0.0], [1.0]], np.float32), "dense")
    assert inputs.batch(np.array([[3e38]], np.float32), CPU).item() == 100


def test_sparse_rows_have_length_one():
    rows = Inputs.learn(csr_matrix((1, 3)), "sparse").batch(csr_matrix([[3.0, 0, 4.0]]), CPU)
    torch.testing.assert_close(rows.values, torch.tensor([0.6, 0.8]))
    assert len(rows) == 1


def literal_resnet(network, images, linear):
    """Layer by layer, by the published description."""

    def normed(layer, x):
        conv, norm = layer
        x = conv2d(x, conv.weight, stride=conv.stride, padding=conv.padding)
        mean, var = (each[None, :, None, None] for each in (norm.running_mean, norm.running_var))
        scaled = (x - mean) / (var + norm.eps).sqrt()
        return scaled * norm.weight[None, :, None, None] + norm.bias[None, :, None, None]

    x = relu(normed(network.first, images))
    for block in network.blocks:
        moved = normed(block.two, relu(normed(block.one, x)))
        x = x if isinstance(block.shortcut, torch.nn.Identity) else normed(block.shortcut, x)
        x = x + moved if linear and block is network.blocks[-1] else relu(x + moved)
    return x.mean((2, 3))


@pytest.mark.parametrize(
    ("depth", "dim", "linear"), [(20, None, False), (8, 10, False), (8, 10, True)]
)
def test_resnet_is_block_after_block(depth, dim, linear):
    torch.manual_seed(0)
    network = ResNet((3, 16, 16), dim, depth=depth, width=4, linear=linear)
    images = torch.randn(3, 3, 16, 16)
    network(images)  # so that batch norm has seen something
    network.eval()
    convolutions = [each for each in network.modules() if isinstance(each, torch.nn.Conv2d)]
    assert sum(each.kernel_size == (3, 3) for each in convolutions) == depth - 1
    expected = literal_resnet(network, images, linear)
    assert expected.shape == (3, dim or 16)
    assert (expected.min() < 0) == linear
    torch.testing.assert_close(network(images), expected)
    torch.testing.assert_close(network(images.flatten(1)), expected)


def test_resnet_of_20_layers_is_as_large_as_published():
    n_weights = sum(each.numel() for each in ResNet((3, 32, 32)).parameters())
    assert 0.26e6 < n_weights < 0.28e6  # 0.27 million in Table 6 of He et al. (2016)


@pytest.mark.parametrize(
    ("shape", "options"),
    [((3, 32, 32), {"depth": 19}), ((3, 7, 32), {}), ((3, 32, 32), {"dim": 0})],
)
def test_resnets_that_cannot_be_are_refused(shape, options):
    with pytest.raises(ParameterError, match=r"depth=19|too small|dim=0"):
        ResNet(shape, **options)


# Augmentation


def test_flips_are_flips_of_half_of_the_images():
    torch.manual_seed(0)
    images = torch.randn(400, 2, 3, 5)
    found = Augmentation("flip", (2, 3, 5))(images.flatten(1)).view_as(images)
    same = (found == images).flatten(1).all(1)
    mirrored = (found == images.flip(3)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 150 < int(same.sum()) < 250


def test_crops_move_images_by_up_to_an_eighth():
    torch.manual_seed(0)
    images = torch.randn(300, 1, 16, 8) + 5
    found = Augmentation("crop", (1, 16, 8))(images.flatten(1)).view_as(images)
    seen = set()
    for before, after in zip(images, found, strict=True):
        moves = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-1, 2)
            if torch.equal(after, moved(before, down, right))
        ]
        assert len(moves) == 1
        seen.add(moves[0])
    assert len(seen) == 15


def moved(image, down, right):
    """Slowly: pixel by pixel, 0 from outside."""
    out = torch.zeros_like(image)
    for row in range(image.shape[1]):
        for column in range(image.shape[2]):
            if 0 <= row + down < image.shape[1] and 0 <= column + right < image.shape[2]:
                out[:, row, column] = image[:, row + down, column + right]
    return out


def test_a_classifier_augments_what_it_trains_on_only(random):
    X = random.standard_normal((80, 1, 8, 8)).astype(np.float32)
    y = np.arange(80) % 2
    X[:, 0, :, :4] += 2 * y[:, None, None]
    settings = {"epochs": 2, "verbose": False}
    recipe = NetworkRecipe(augment="flip_crop")
    plain = um.NeuralClassifier("resnet", **settings).fit(X, y)
    model = um.NeuralClassifier("resnet", recipe=recipe, **settings).fit(X, y)
    again = um.NeuralClassifier("resnet", recipe=recipe, **settings).fit(X, y)
    assert model.predict_topk(X) == again.predict_topk(X)
    assert model.history_["loss"] != plain.history_["loss"]
    assert model.predict_topk(X) == model.predict_topk(X)
    with pytest.raises(ParameterError, match="augment='flip'"):
        um.NeuralClassifier(recipe=NetworkRecipe(augment="flip")).fit(X.reshape(80, -1), y)
