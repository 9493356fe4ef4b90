"""SiameseXML as a user meets it, beyond the contract of every classifier."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from scipy.sparse import csr_matrix, vstack

import umpteen as um
from tests.siamese.settings import siamese
from umpteen.errors import (
    FeaturesError,
    LabelsShapeError,
    ModelCorruptError,
    ModelPathError,
    ParameterError,
)

N_TOPICS = 12
# Words that training never saw keep random vectors: 96 numbers tell 120 words apart, 24 do not.
SMALL = {"dim": 96, "epochs": 4, "refine_epochs": 2, "joint_epochs": 1, "random_state": 0}


def topics(n_samples=120, seed=0):
    """Topic j has ten words of its own; samples have four of them, the label's text seven."""
    random = np.random.default_rng(seed)
    y = np.arange(n_samples) % N_TOPICS
    rows = np.zeros((n_samples + N_TOPICS, 10 * N_TOPICS), np.float32)
    for row, topic in enumerate([*y, *range(N_TOPICS)]):
        n_words = 4 if row < n_samples else 7
        rows[row, 10 * topic + random.permutation(10)[:n_words]] = 1
    Y = csr_matrix(np.eye(N_TOPICS, dtype=np.float32)[y])
    return csr_matrix(rows[:n_samples]), Y, csr_matrix(rows[n_samples:])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "contrastive", "dropout": 0.0, "mine_every": 1, "epochs": 8},
        {"residual": True, "start": "text", "label_power": 0.45},
        {"search": "hnsw"},
        {"modules": ("embed",)},
        {"modules": ("refine",)},
        {"modules": ("embed", "mine", "refine")},
        {"classifier": "cosine"},
        {"n_models": 3, "epochs": 2},
        {"activation": "gelu"},
    ],
)
def test_topics_are_found_by_every_variant(changes):
    X, Y, texts = topics()
    model = siamese(**{**SMALL, **changes}).fit(X[:84], Y[:84], label_features=texts)
    assert model.score(X[84:], Y[84:]) > 0.8
    assert [set(losses) for losses in model.history_] == [
        set(model.recipe.modules) - {"mine"}
    ] * model.n_models


def test_training_makes_labels_and_their_samples_alike():
    X, Y, texts = topics()
    before = siamese(**{**SMALL, "modules": ()}).fit(X, Y, label_features=texts)
    after = siamese(**{**SMALL, "modules": ("embed",), "epochs": 8}).fit(X, Y, texts)
    similarity = [
        np.einsum("ij,ij->i", model.encode(X), model.label_embeddings_[Y.indices]).mean()
        for model in (before, after)
    ]
    assert similarity[1] > similarity[0] + 0.1


def test_refining_begins_at_the_scores_of_the_texts():
    """Lemma 2: what Module III does not learn, it does not spoil."""
    X, Y, texts = topics()
    settings = {**SMALL, "start": "text", "classifier": "cosine", "modules": ("embed", "refine")}
    one = siamese(**{**settings, "modules": ("embed",)}).fit(X, Y, label_features=texts)
    other = siamese(**{**settings, "refine_epochs": 0}).fit(X, Y, label_features=texts)
    np.testing.assert_array_equal(other.classifiers_of_labels_, other.label_embeddings_)
    assert one.predict_topk(X, k=N_TOPICS) == other.predict_topk(X, k=N_TOPICS)
    moved = siamese(**SMALL).fit(X, Y, label_features=texts)
    assert moved.history_[0]["refine"][-1] < moved.history_[0]["refine"][0]


@pytest.mark.parametrize("classifier", ["logistic", "cosine"])
def test_scores_are_the_documented_mixture(classifier):
    X, Y, texts = topics()
    settings = {**SMALL, "alpha": 0.7, "residual": True, "classifier": classifier}
    model = siamese(**settings).fit(X, Y, label_features=texts)
    tower = model.towers_[0]
    bags = tower.encoder.bags(X)
    mean = (bags @ tower.texts.T + bags @ tower.centroids.T) / 2
    own = model.encode(X) @ tower.classifiers.T
    if classifier == "logistic":
        own = 1 / (1 + np.exp(-own - tower.biases))
    expected = 0.7 * own + 0.3 * mean
    scores = model.predict_topk(X, k=N_TOPICS).to_csr(N_TOPICS).toarray()
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_label_without_samples_stays_at_its_text():
    """Refining meets it as a negative only, which must not drive it away."""
    X, Y, texts = topics()
    fewer = Y.toarray()
    fewer[:, 3] = 0
    model = siamese(**SMALL).fit(X, csr_matrix(fewer), label_features=texts)
    own = model.classifiers_of_labels_
    own = own / np.linalg.norm(own, axis=1, keepdims=True)
    text = model.label_embeddings_
    np.testing.assert_allclose(own[3], text[3], atol=1e-6)
    assert np.abs(own[4] - text[4]).max() > 1e-3


def test_a_new_label_is_not_sure_of_an_unrelated_text():
    """On a few samples, and where all other labels were removed."""
    X, Y, texts = topics()
    model = siamese(**SMALL).fit(X[:, :110], Y[:, :11], label_features=texts[:11, :110])
    unrelated = np.zeros((1, 110), np.float32)
    unrelated[0, 100:105] = 1
    model.add_labels(label_features=unrelated)
    others = np.flatnonzero(Y.indices < 10)
    asked = X[others][:, :110]
    scores = model.predict_topk(asked, k=12).to_csr(12).toarray()[:, 11]
    assert scores.max() < 0.5
    alone = model.remove_labels(np.arange(11)).predict_topk(asked, k=1)
    np.testing.assert_array_equal(alone.labels, np.full((len(others), 1), 11))
    assert alone.scores.max() < 0.5


def test_tail_says_where_it_has_no_effect():
    X, Y, texts = topics()
    with pytest.warns(UserWarning, match="tail has no effect"):
        siamese(**SMALL, tail=0.5).fit(X, Y, label_features=texts)


def test_new_labels_are_found_without_training():
    """A label that nobody has used yet must be found by its text alone."""
    X, Y, texts = topics()
    known = np.asarray(Y[:, :9].sum(axis=1)).ravel() > 0
    model = siamese(**SMALL).fit(X[known], Y[known][:, :9], label_features=texts[:9])
    before = model.predict_topk(X[known], k=9)
    assert model.add_labels(label_features=texts[9:]) is model
    assert model.n_labels_ == N_TOPICS
    top = model.predict_topk(X[~known], k=1)
    assert np.mean(top.labels.ravel() == Y[~known].indices) > 0.8
    again = model.predict_topk(X[known], k=N_TOPICS).to_csr(N_TOPICS)[:, :9].toarray()
    np.testing.assert_array_equal(again, before.to_csr(9).toarray())  # old scores stay


def test_new_labels_survive_saving(tmp_path):
    X, Y, texts = topics()
    model = siamese(**SMALL).fit(X, Y, label_features=texts).add_labels(label_features=texts[:2])
    model.save(tmp_path / "model")
    assert um.load(tmp_path / "model").predict_topk(X) == model.predict_topk(X)


def test_new_labels_without_text_are_found_by_their_samples():
    X, Y, texts = topics()
    model = siamese(**SMALL).fit(X[:60], Y[:60], label_features=texts)
    empty = csr_matrix((1, X.shape[1]), dtype=np.float32)
    unlike = csr_matrix(np.eye(X.shape[1], dtype=np.float32)[:3].sum(axis=0, keepdims=True))
    model.add_labels(unlike, [[0]], empty)
    assert model.predict_topk(unlike, k=1).labels.tolist() == [[N_TOPICS]]


def test_the_taggers_label_texts_survive_learning_more():
    texts = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 10
    labels = [["fruit"], ["fruit"], ["metal"], ["metal"]] * 10
    described = {"fruit": "apple pear fruit", "metal": "iron copper ore", "sea": "water ocean"}
    tagger = um.Tagger(siamese(**SMALL), calibrate=False)
    tagger.fit(texts, labels, label_texts=described)
    tagger.partial_fit(["ripe apple"], [["fruit"]])
    assert tagger.predict("ocean water", k=1)[0][0] == "sea"


def test_removed_labels_are_not_answered():
    X, Y, texts = topics()
    model = siamese(**SMALL).fit(X, Y, label_features=texts).remove_labels([0, 3])
    assert not np.isin(model.predict_topk(X, k=N_TOPICS).labels, [0, 3]).any()


def test_scores_do_not_change_when_other_labels_are_removed(monkeypatch):
    """Numbers add up in the order of features, also for labels that are found by a centroid."""
    monkeypatch.setattr("umpteen.siamese.siamese_xml.FEWEST_SAMPLES", 100)
    X, Y, texts = topics()
    X.data[:] = np.random.default_rng(0).random(X.nnz) + 0.1
    texts = vstack([csr_matrix((3, X.shape[1])), texts[3:]], format="csr")
    model = siamese(**SMALL).fit(X, Y, label_features=texts)
    assert model.ranker_ is not None
    before = model.predict_topk(X, k=N_TOPICS).to_csr(N_TOPICS)[:, :-1]
    assert model.label_features_.has_sorted_indices
    after = model.remove_labels([N_TOPICS - 1]).predict_topk(X, k=N_TOPICS).to_csr(N_TOPICS)
    assert model.label_features_.has_sorted_indices
    np.testing.assert_array_equal(after[:, :-1].toarray(), before.toarray())


def test_labels_without_text_or_without_samples():
    """Label 0 has no text, label 1 no sample, label 2 neither: the last is never answered."""
    X, Y, texts = topics()
    texts = vstack([csr_matrix((1, X.shape[1])), texts[1:2], csr_matrix((1, X.shape[1])),
                    texts[3:]], format="csr")  # fmt: skip
    kept = ~np.isin(Y.indices, [1, 2])
    model = siamese(**SMALL).fit(X[kept], Y[kept], label_features=texts)
    top = model.predict_topk(X, k=N_TOPICS)
    assert not (top.labels == 2).any()
    for label in (0, 1):
        assert np.mean(top.labels[Y.indices == label, 0] == label) > 0.7


def test_pretrained_vectors_are_where_features_begin():
    X, Y, texts = topics()
    vectors = np.random.default_rng(0).random((X.shape[1], 96)).astype(np.float32)
    model = siamese(**{**SMALL, "modules": ()}).fit(X, Y, texts, token_vectors=vectors)
    np.testing.assert_array_equal(model.towers_[0].encoder.table, vectors)


def test_other_vectors_of_words_are_another_training(tmp_path):
    X, Y, texts = topics()
    settings = {**SMALL, "dim": 8, "epochs": 1, "checkpoint": str(tmp_path)}
    vectors = np.random.default_rng(0).standard_normal((2, X.shape[1], 8)).astype(np.float32)
    siamese(**settings).fit(X, Y, label_features=texts, token_vectors=vectors[0])
    with pytest.raises(ModelPathError, match="another training"):
        siamese(**settings).fit(X, Y, label_features=texts, token_vectors=vectors[1])


def test_another_search_is_another_training(tmp_path):
    """A graph misses some hard negatives, from which Module III learns."""
    X, Y, texts = topics()
    settings = {**SMALL, "dim": 8, "epochs": 1, "checkpoint": str(tmp_path)}
    siamese(**settings).fit(X, Y, label_features=texts)
    with pytest.raises(ModelPathError, match="another training"):
        siamese(**settings, search="exact").fit(X, Y, label_features=texts)


def test_a_training_is_continued_to_the_same_bits(tmp_path):
    X, Y, texts = topics()
    folder = str(tmp_path / "run")
    settings = {**SMALL, "mine_every": 1, "dropout": 0.2}
    whole = siamese(**settings).fit(X, Y, label_features=texts)

    class StoppedError(Exception):
        pass

    from umpteen.neural import checkpoint

    saves, original = [], checkpoint.Keeper.save

    def save(keeper, run):
        original(keeper, run)
        saves.append(1)
        if len(saves) in (7, 19):
            raise StoppedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint.Keeper, "save", save)
        model = siamese(**settings, checkpoint=folder, checkpoint_every=0)
        for _ in range(2):
            with pytest.raises(StoppedError):
                model.fit(X, Y, label_features=texts)
        model.fit(X, Y, label_features=texts)
    assert model.predict_topk(X) == whole.predict_topk(X)
    with pytest.raises(ModelPathError, match="another training"):
        model.fit(X, Y, label_features=2 * texts[::-1])


KILLED = """
import sys
sys.path[:0] = {here!r}
from test_siamese_xml import SMALL, siamese, topics
from umpteen.neural.checkpoint import Keeper
save, count = Keeper.save, [0]
def telling(keeper, run):
    save(keeper, run)
    count[0] += 1
    if count[0] == {stop}:
        print("written", flush=True)
Keeper.save = telling
X, Y, texts = topics()
model = siamese(**SMALL, checkpoint={folder!r}, checkpoint_every=0)
model.fit(X, Y, label_features=texts)
"""


def test_a_killed_process_is_continued_to_the_same_answers(tmp_path):
    """It dies in Module III."""
    folder = str(tmp_path / "run")
    code = KILLED.format(
        here=[str(Path(__file__).parent), str(Path(__file__).parents[2])], folder=folder, stop=26
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    X, Y, texts = topics()
    whole = siamese(**SMALL).fit(X, Y, label_features=texts)
    continued = siamese(**SMALL, checkpoint=folder).fit(X, Y, label_features=texts)
    assert continued.predict_topk(X) == whole.predict_topk(X)
    assert continued.history_ == whole.history_


@pytest.mark.parametrize(
    ("label_features", "error", "message"),
    [
        (np.ones((N_TOPICS, 3)), FeaturesError, "label_features has 3 features"),
        (np.ones((5, 10 * N_TOPICS)), LabelsShapeError, "has 5 rows but Y has 12 columns"),
        (np.full((N_TOPICS, 10 * N_TOPICS), np.nan), FeaturesError, "NaN"),
    ],
)
def test_wrong_label_features_are_refused(label_features, error, message):
    X, Y, _ = topics()
    with pytest.raises(error, match=message):
        siamese(**SMALL).fit(X, Y, label_features=label_features)


def test_other_bad_input_is_refused():
    X, Y, texts = topics()
    with pytest.raises(FeaturesError, match="token_vectors has shape"):
        siamese(**SMALL).fit(X, Y, token_vectors=np.ones((3, 96)))
    with pytest.raises(ParameterError, match="modules"):
        siamese(modules=("embed", "embed"))
    model = siamese(**SMALL).fit(X, Y, label_features=texts)
    with pytest.raises(FeaturesError, match="label_features has 3 features"):
        model.add_labels(label_features=np.ones((1, 3)))
    with pytest.raises(LabelsShapeError, match="2 rows but Y has 1"):
        model.add_labels(X[:1], [[0]], texts[:2])


@pytest.mark.parametrize(
    "constants",
    [(1.0, 3), (1.5, 3), (0, 1.5), (-0.1, 1), (0.9, 0.99), (0.9,), (), (0.9, 1.5, 2), ("0.9", 1.5),
     (0.9, np.inf), (np.nan, 1.5), (0.9, np.nan), (0.9, None), (True, 1.5)],
)  # fmt: skip
@pytest.mark.parametrize("name", ["likelihood", "refine_likelihood"])
def test_constants_that_give_no_finite_loss_are_refused(name, constants):
    """(1, d) makes the loss of a cosine of one infinite, and more than 1 the log of a negative."""
    with pytest.raises(ParameterError, match=f"^{name}=.*0 < c < 1 and d >= 1"):
        um.SiameseXML().set_params(**{f"recipe__{name}": constants})
    possible = um.SiameseXML().set_params(**{f"recipe__{name}": [np.float32(0.5), 1]})
    assert possible.get_params()[f"recipe__{name}"] == (0.5, 1)


def test_a_saved_model_with_impossible_constants_is_refused(tmp_path):
    X, Y, texts = topics()
    model = siamese(**{**SMALL, "epochs": 0, "modules": ()}).fit(X, Y, label_features=texts)
    object.__setattr__(model.recipe, "refine_likelihood", (1.75, 3.0))
    um.storage.save(model, tmp_path / "model")
    with pytest.raises(ModelCorruptError, match=r"refine_likelihood.*0 < c < 1"):
        um.load(tmp_path / "model")


def test_more_answers_than_the_shortlist_has():
    X, Y, texts = topics()
    model = siamese(**SMALL, shortlist=2).fit(X, Y, label_features=texts)
    assert (np.sort(model.predict_topk(X, k=N_TOPICS).labels, axis=1) == np.arange(N_TOPICS)).all()


def test_through_the_tagger_texts_of_labels_reach_it():
    texts = ["red apple pie", "green apple", "iron ore", "copper ore mine"] * 15
    labels = [["fruit"], ["fruit"], ["metal"], ["metal"]] * 15
    described = {"fruit": "apple pear fruit", "metal": "iron copper ore", "sea": "water ocean"}
    tagger = um.Tagger(siamese(**SMALL), calibrate=False).fit(texts, labels, described)
    assert tagger.predict("ocean water", k=1)[0][0] == "sea"
    assert tagger.predict("a pear", k=1)[0][0] == "fruit"
    tagger.add_labels(["sky"], texts={"sky": "clouds sun sky"})
    assert tagger.predict("sun and clouds", k=1)[0][0] == "sky"
    assert "fruit" not in dict(tagger.remove_labels(["fruit"]).predict("apple", k=3))


def test_the_papers_settings_do_not_follow_our_defaults():
    """What the supplement and the released code say, whatever is better here."""
    printed = {
        "dim": 300, "learning_rate": 0.005, "tail": 0.0,
        "recipe__batch_size": 4096, "recipe__loss": "contrastive", "recipe__label_power": 0.45,
        "recipe__residual": True, "recipe__activation": "relu", "recipe__start": "text",
        "recipe__weights": "fixed", "recipe__shortlist": 500, "recipe__dropout": 0.0,
        "recipe__classifier": "cosine", "recipe__modules": ("embed", "mine", "refine"),
        "recipe__likelihood": (0.9, 1.5), "recipe__refine_likelihood": (0.75, 3.0),
    }  # fmt: skip
    paper, code = um.SiameseXML.paper().get_params(), um.SiameseXML.released().get_params()
    assert {name: paper[name] for name in printed} == printed
    assert paper["recipe__mine_every"] > 0
    changed = {
        "recipe__residual": False, "recipe__activation": "gelu", "recipe__n_negatives": 1,
        "recipe__mine_every": 0, "recipe__n_random": 0, "recipe__weights": "fixed",
        "learning_rate": 0.01,
    }  # fmt: skip
    assert {name: code[name] for name in changed} == changed
    assert um.SiameseXML.paper(dim=8, recipe__shortlist=3).get_params()["recipe__shortlist"] == 3
