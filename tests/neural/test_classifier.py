"""NeuralClassifier beyond the contract: kinds of input, blueprints, folders."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix
from sklearn.base import clone

import umpteen as um
from umpteen.errors import FeaturesError, ParameterError
from umpteen.neural import MLP, Bag, Blueprint, Conv, FullHead, NetworkRecipe, blueprint


def images(n=120, side=12, channels=1):
    """Class 0 has a bright left half, class 1 right, class 2 upper."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = random.normal(size=(n, channels, side, side)).astype(np.float32)
    X[y == 0, :, :, : side // 2] += 2
    X[y == 1, :, :, side // 2 :] += 2
    X[y == 2, :, : side // 2] += 2
    return X, y


def small(**parameters):
    defaults = {"epochs": 15, "batch_size": 16, "learning_rate": 1e-2, "random_state": 0}
    return um.NeuralClassifier(**{**defaults, **parameters})


@pytest.mark.parametrize("channels", [1, 3])
def test_images(channels, tmp_path):
    X, y = images(channels=channels)
    before = X.copy()
    model = small(encoder=blueprint(Conv, dim=16, width=8), epochs=6).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.9
    assert model.encoder_.options["image_shape"] == (channels, 12, 12)
    model.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert loaded.predict_topk(X, k=2) == model.predict_topk(X, k=2)
    assert loaded.predict_topk(X.reshape(len(X), -1), k=2) == model.predict_topk(X, k=2)
    np.testing.assert_array_equal(X, before)


def test_the_encoder_follows_from_the_input():
    X, y = images(n=30, side=6)
    rows = X.reshape(30, -1)
    few = csr_matrix(np.where(rows > 2.5, rows, 0))
    for given, path in ((X, "Conv"), (rows, "MLP"), (csr_matrix(rows), "MLP"), (few, "Bag"),
                        (few.toarray(), "Bag")):  # fmt: skip
        assert small(epochs=1).fit(given, y).encoder_.path == f"umpteen.neural.encoders.{path}"


@pytest.mark.parametrize("encoder", ["bag", "mlp"])
@pytest.mark.parametrize("sparse", [True, False])
def test_any_encoder_takes_any_rows(encoder, sparse):
    X, y = images(n=60, side=6)
    X = X.reshape(60, -1)
    model = small(encoder=encoder).fit(csr_matrix(X) if sparse else X, y)
    assert model.score(X, y) == 1.0
    assert model.predict_topk(csr_matrix(X)) == model.predict_topk(X)


def test_images_that_do_not_fit_are_refused():
    X, y = images(n=30)
    with pytest.raises(FeaturesError, match=r"reshape\(len\(X\), 1, 28, 28\)"):
        small(encoder="conv").fit(X.reshape(30, -1), y)
    model = small(encoder=blueprint(Conv, dim=8, width=8), epochs=1).fit(X, y)
    with pytest.raises(FeaturesError, match=r"trained on \(1, 12, 12\)"):
        model.predict(X.reshape(30, 1, 6, 24))
    broken = X.copy()
    broken[3, 0, 5, 5] = np.nan
    with pytest.raises(FeaturesError, match="NaN in row 3"):
        model.predict(broken)
    rows = small(encoder=blueprint(Conv, dim=8, width=8, image_shape=(1, 12, 12)), epochs=1)
    assert rows.fit(X.reshape(30, -1), y).predict(X).shape == (30,)


def test_the_loss_follows_from_the_labels():
    X, y = images(n=30, side=4)
    X = X.reshape(30, -1)
    indicator = np.eye(3)[y]
    assert small(epochs=1).fit(X, y).head_.options == {"loss": "softmax"}
    assert small(epochs=1).fit(X, indicator).head_.options == {"loss": "bce"}
    chosen = small(head=blueprint(FullHead, loss="pick_all_labels"), epochs=1)
    assert chosen.fit(X, indicator).head_.options == {"loss": "pick_all_labels"}


def test_blueprints_are_parameters_like_others(tmp_path):
    X, y = images(n=30, side=4)
    X = X.reshape(30, -1)
    model = small(encoder=blueprint(MLP, dim=4), head=blueprint(FullHead, loss="bce"), epochs=1)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    model.fit(X, y).save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    for name, array in model.weights_.items():
        assert loaded.weights_[name].tobytes() == array.tobytes()
    assert bytes(pickle.dumps(loaded)).count(b"torch") == 0
    assert pickle.loads(pickle.dumps(model)).predict_topk(X) == model.predict_topk(X)


def test_blueprints_name_only_our_modules():
    import torch

    with pytest.raises(ParameterError, match="not a class of umpteen"):
        blueprint(torch.nn.Linear)
    for path in ("os.system", "umpteen.neural.__builtins__.eval", "umpteenth.Bag", "Bag"):
        with pytest.raises(ParameterError, match="not a class of umpteen"):
            Blueprint(path).find()
    with pytest.raises(ParameterError, match="not a module of a network"):
        Blueprint("umpteen.neural.blueprints.import_module").find()
    with pytest.raises(ParameterError, match=r"Bag cannot be built.*colour"):
        small(encoder=blueprint(Bag, colour="red")).fit(np.eye(4), [0, 1, 2, 3])


def test_rows_of_a_batch_do_not_depend_on_their_company():
    """Blocks of prediction have one size; within float32's precision the answer is the same."""
    X, y = images(n=60, side=6)
    X = X.reshape(60, -1)
    model = small().fit(X, y)
    alone = np.concatenate([model.predict_topk(row[None], k=3).scores for row in X])
    np.testing.assert_allclose(alone, model.predict_topk(X, k=3).scores, rtol=1e-4, atol=1e-5)


def test_labels_are_numbered_as_in_training():
    X, y = images(n=60, side=6)
    model = small().fit(X.reshape(60, -1), 10 * y + 7)
    assert model.n_labels_ == 28
    np.testing.assert_array_equal(model.seen_labels_, [7, 17, 27])
    assert set(model.predict(X.reshape(60, -1)).tolist()) == {7, 17, 27}


@pytest.mark.parametrize(
    "settings",
    [{"optimizer": "luck"}, {"schedule": "whenever"}, {"warmup": 1.5}, {"averaging": -1},
     {"max_seconds": 0}, {"patience": 0}, {"validation_fraction": 1}],
)  # fmt: skip
def test_bad_settings_of_a_recipe_are_refused_when_it_is_made(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        NetworkRecipe(**settings)


def test_settings_of_the_first_version_become_a_recipe(tmp_path):
    """Models of the first version had them as parameters."""
    golden = Path(__file__).parents[1] / "storage/golden/0.1/NeuralClassifier-code.zip"
    with zipfile.ZipFile(golden) as archive:
        archive.extractall(tmp_path)
    model = um.load(tmp_path)
    assert model.recipe == NetworkRecipe(all_labels=True)
    assert model.get_params()["recipe__all_labels"] is True
