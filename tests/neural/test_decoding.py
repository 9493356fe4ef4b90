"""Decoders on a network: if these fail, `predict` gives other sets than the decoder found."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone

import umpteen as um
from umpteen.collapse import NearestSet, OneVsAll
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.neural import MLP, NetworkRecipe, blueprint

DECODERS = [NearestSet(), NearestSet(unseen=True), OneVsAll(cost=10.0, at_least_one=True)]


def data(n=160, n_labels=5):
    """One to three labels, a bright feature for each; the labels 5 and 6 have no samples."""
    random = np.random.default_rng(0)
    sizes = random.integers(1, 4, n)
    Y = np.zeros((n, n_labels + 2), np.float32)
    for row, size in zip(Y, sizes, strict=True):
        row[random.choice(n_labels, size, replace=False)] = 1
    X = np.concatenate([Y, Y], axis=1) + 0.1 * random.normal(size=(n, 2 * Y.shape[1]))
    return X.astype(np.float32), csr_matrix(Y)


def model(**parameters):
    defaults = {
        "encoder": blueprint(MLP, dim=16), "head": "etf", "epochs": 30, "learning_rate": 1e-2,
        "random_state": 0,
    }  # fmt: skip
    return um.NeuralClassifier(**{**defaults, **parameters})


@pytest.mark.parametrize("decoder", DECODERS)
def test_sets_are_those_of_the_decoder_on_the_features(decoder, tmp_path):
    X, Y = data()
    fitted = model(decoder=decoder).fit(X[:120], Y[:120])
    alone = clone(decoder).fit(fitted.features(X[:120]), Y[:120])
    expected = alone.predict(fitted.features(X[120:]))
    found = fitted.predict(X[120:])
    assert found.dtype == np.int8
    assert found.shape == (40, 7)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    assert um.metrics.subset_accuracy(Y[120:], found) > 0.9
    assert len(np.unique(np.diff(found.indptr))) == 3  # as many labels as each sample needs
    assert not hasattr(decoder, "means_")  # the given one is left as it is
    assert not hasattr(decoder, "weight_")
    fitted.save(tmp_path / "model")
    loaded = um.load(tmp_path / "model")
    assert (loaded.predict(X) != fitted.predict(X)).nnz == 0
    assert loaded.decoder.get_params() == decoder.get_params()


def test_a_decoder_changes_no_ranking():
    X, Y = data()
    plain, decoding = model().fit(X, Y), model(decoder=NearestSet()).fit(X, Y)
    assert plain.predict_topk(X) == decoding.predict_topk(X)
    assert plain.score(X, Y) == decoding.score(X, Y)
    assert plain.decoder_ is None
    np.testing.assert_array_equal(plain.features(X), decoding.features(X))


def test_features_are_what_the_encoder_makes():
    X, Y = data()
    fitted = model(epochs=2).fit(X, Y)
    weight, bias = (fitted.weights_[f"encoder.layers.0.{name}"] for name in ("weight", "bias"))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        fitted.features(X), np.maximum(scaled @ weight.T + bias, 0), atol=1e-4
    )
    assert fitted.features(X[:0]).shape == (0, 16)


def test_samples_without_labels_are_a_set_too():
    X, Y = data()
    none = np.zeros((30, X.shape[1]), np.float32)
    fitted = model(decoder=NearestSet()).fit(np.vstack([X, none]), csr_matrix(
        np.vstack([Y.toarray(), np.zeros((30, 7))])
    ))  # fmt: skip
    assert fitted.predict(none).nnz == 0


def test_decoders_are_parameters_like_others():
    made = model(decoder=NearestSet(unseen=True))
    assert made.get_params()["decoder__unseen"] is True
    made.set_params(decoder__max_steps=7)
    copied = clone(made)
    assert copied.decoder is not made.decoder
    assert copied.decoder.get_params() == {"unseen": True, "max_steps": 7}


def test_a_finished_training_takes_another_decoder(tmp_path):
    X, Y = data()
    folder = str(tmp_path)
    first = model(checkpoint=folder, decoder=NearestSet()).fit(X, Y)
    told = []
    again = model(checkpoint=folder, decoder=OneVsAll()).fit(X, Y, watch=told.append)
    assert not told  # nothing was trained again
    assert first.predict_topk(X) == again.predict_topk(X)
    assert isinstance(again.decoder_, OneVsAll)


class Few(BaseEstimator):
    """Answers with too few columns."""

    def fit(self, features, Y):
        return self

    def predict(self, features):
        return np.ones((len(features), 2))


def test_what_cannot_decode_is_refused():
    X, Y = data()
    with pytest.raises(ParameterError, match=r"is a class: pass an instance, NearestSet\(\)"):
        model(decoder=NearestSet).fit(X, Y)
    with pytest.raises(ParameterError, match=r"needs fit\(features, Y\) and predict"):
        model(decoder="nearest").fit(X, Y)
    with pytest.raises(LabelsError, match="one class per sample"):
        model(decoder=NearestSet()).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(LabelsShapeError, match="the decoder's answer has 2 columns"):
        model(decoder=Few(), epochs=1).fit(X, Y).predict(X)
    with pytest.raises(ParameterError, match="max_steps"):
        model(decoder=NearestSet(max_steps=0), epochs=1).fit(X, Y)


def test_training_can_be_watched_and_goes_the_same_way():
    X, Y = data()
    seen = []

    def watch(now):
        assert now.predict(X[:3]).shape == (3, 7)
        seen.append((len(now.history_["loss"]), now.features(X), now.predict_topk(X)))

    watched = model(epochs=5, decoder=NearestSet(), recipe=NetworkRecipe(validation_fraction=0.0))
    watched.fit(X, Y, watch=watch)
    plain = model(
        epochs=5, decoder=NearestSet(), recipe=NetworkRecipe(validation_fraction=0.0)
    ).fit(X, Y)
    assert [epoch for epoch, _, _ in seen] == [1, 2, 3, 4, 5]
    assert watched.predict_topk(X) == plain.predict_topk(X) == seen[-1][2]
    np.testing.assert_array_equal(seen[-1][1], watched.features(X))
    assert not np.allclose(seen[0][1], seen[1][1])


def test_who_stops_watching_leaves_no_half_trained_model():
    X, Y = data()

    def watch(now):
        raise KeyboardInterrupt

    stopped = model()
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y, watch=watch)
    with pytest.raises(um.errors.NotFittedError):
        stopped.predict(X)
