"""Table 3 and the pictures, on images small enough to wait for."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from papers.eagle import images, losses, miml, pictures, sentences


def dots(n_images, seed):
    """Images of 2 x 2 pixels: each of four kinds has one bright pixel."""
    random = np.random.default_rng(seed)
    labels = np.arange(n_images) % 4
    noise = 0.2 * random.standard_normal((n_images, 4))
    return (np.eye(4)[labels] - 0.25 + noise).astype(np.float32), labels


@pytest.fixture
def small(monkeypatch):
    """Sets of 2 x 2 pixels under the names of the paper's, and little training."""
    made = {name: images.Images(name, *dots(1200, 0), *dots(80, 1)) for name in images.SETS}
    for module in (miml, pictures):
        monkeypatch.setattr(module, "image_sets", lambda _: iter(made.values()))
    training = {4: {"batch_size": 32, "epochs": 12}, 50: {"batch_size": 2, "epochs": 12}}
    monkeypatch.setattr(miml, "FEW_IMAGES", training)
    return made["Fashion-MNIST"]


def measured(title):
    (section,) = [section for section in miml.sections(quick=True) if title in section.title]
    return list(section.measure())


@pytest.mark.parametrize("method", miml.METHODS)
def test_settings_are_chosen_on_the_validation_split_and_not_by_test_images(
    small, method, monkeypatch
):
    asked = []

    def fit(_, size, seed, settings):
        asked.append((seed, settings))
        place = miml.CANDIDATES[method].index(settings)
        validation = [[0.1, 0.5], [0.9, 0.2], [0.6]][place]
        test = [0.99, 0.4, 0.98][place] + seed / 10
        return SimpleNamespace(validation_scores_=validation, score=lambda *_: test)

    monkeypatch.setattr(miml, "fit_bags", fit)
    outcome = miml.measure(small, 4, method, n_seeds=3, n_tried=3)
    first, best, last = miml.CANDIDATES[method]
    assert asked == [(0, first), (0, best), (0, last), (1, best), (2, best)]
    assert outcome.accuracies == pytest.approx([40, 50, 60])
    assert outcome.value().ours == pytest.approx(50)
    assert outcome.value().spread == pytest.approx(np.std([40, 50, 60], ddof=1))
    assert f"loss {best['recipe__loss']}" in outcome.settings_text()


def test_bags_hold_each_image_once_and_its_label(small):
    groups, counts = small.bags(size=50, seed=0)
    assert np.sort(groups.indices).tolist() == list(range(1200))
    assert (np.diff(groups.indptr) == 50).all()
    for members, listed in zip(groups, counts.toarray(), strict=True):
        found = np.bincount(small.labels[members.indices], minlength=4)
        assert found.tolist() == listed.tolist()
    assert (small.bags(50, seed=1)[0] != groups).nnz > 0


@pytest.mark.parametrize("size", [4, 7])
def test_labels_are_found_as_a_literal_loop_finds_them(small, size):
    """7 leaves a smaller bag."""
    embeddings = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    groups, counts = small.bags(size, seed=0)
    hits = 0.0
    for members, listed in zip(groups, counts.toarray(), strict=True):
        for label, count in enumerate(listed):
            nearest = max(
                members.indices,
                key=lambda i: small.X[i] @ embeddings[label] / np.linalg.norm(small.X[i]),
            )
            hits += count * (small.labels[nearest] == label)
    assert pictures.share_found(small, size, embeddings) == pytest.approx(hits / 1200)


def test_every_label_has_its_picture(small):
    pytest.importorskip("matplotlib")
    figure, table, remark = measured("Figures 5")
    embeddings = np.array(figure.numbers["embeddings"])
    assert embeddings.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert "4 of 4 are most like" in figure.says
    assert "T-shirt, trousers" in figure.says
    assert figure.svg.count("<image") == 4
    assert [row[0] for row in table.rows[:2]] == ["MNIST, 4, kept", "MNIST, 4, subtracted"]
    assert len(table.rows) == 8
    assert "length one" in remark


def test_the_mean_cosine_of_labels():
    embeddings = np.float32([[1, 0], [0, 2], [1, 1]])
    assert pictures.mean_cosine(embeddings) == pytest.approx(2 * 0.5**0.5 / 3)


def made_up_sentences(n_documents=60, seed=0):
    """Documents of three sentences; a label has a feature of its own, in one of them."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 4, 3 * n_documents)
    X = csr_matrix(np.eye(4, dtype=np.float32)[kinds] + 0.1 * random.random((len(kinds), 4)))
    groups = sentences._bags([3] * n_documents)
    present = csr_matrix(groups @ np.eye(4, dtype=np.float32)[kinds] > 0, dtype=np.float32)
    return sentences.Sentences(X, groups, present, X[:80], csr_matrix(np.eye(4)[kinds[:80]]))


def test_networks_learn_sentences_from_documents():
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    outcome = miml.measure_sentences(made_up_sentences(), "EAGLE-0", n_seeds=2, n_tried=2)
    assert len(outcome.accuracies) == 2
    assert outcome.settings in miml.SENTENCE_CANDIDATES["EAGLE-0"][:2]


def test_documents_become_bags_of_their_sentences():
    texts = ["Rules of the committee. Having regard to it; done. It has met again today."]
    assert sentences.split_sentences(texts[0]) == [
        "Rules of the committee.", "Having regard to it; done.", "It has met again today.",
    ]  # fmt: skip
    assert sentences.split_sentences("") == [""]
    assert made_up_sentences().in_words().startswith("60 documents with 3.0 sentences")


def test_the_losses_have_a_curve_each(small, monkeypatch):
    pytest.importorskip("torch", reason="needs umpteen[neural]")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(losses, "image_sets", lambda _: iter([small]))
    monkeypatch.setattr(losses, "_accuracy", lambda images, size, seed, settings: 100 - size)
    table, figure, *remarks = measured("Losses")
    assert table.columns == ["size of bags", *losses.LOSSES]
    assert [row[0] for row in table.rows] == ["4", "50"]
    assert figure.numbers["curves"]["list"] == [96, 50]
    assert "opposite" in remarks[-1]
