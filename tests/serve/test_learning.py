"""A model learns what people teach it, and nothing that makes it worse."""

import random
import time
from dataclasses import replace

import numpy as np
import pytest

import umpteen as um
from tests.serve.conftest import WORDS, made_up
from umpteen.data import Samples
from umpteen.serve.evaluating import (
    Check,
    compare_on_kept,
    compare_on_texts,
    ndcg_of_each,
    without_kept,
)
from umpteen.serve.exporting import latest
from umpteen.serve.journal import Correction
from umpteen.serve.learning import Outcome, learn
from umpteen.serve.state import State, state_folder


@pytest.fixture
def state(model):
    opened = State(state_folder(model, None))
    yield opened
    opened.close()


def teach(state, model, corrections, **more):
    current = state.versions.current(model)
    state.journal.append(corrections, current.version)
    return learn(state.folder, current, state.journal.last_number, **more)


def juggling(n=12):
    return [Correction(f"juggling clubs and rings {i}", ["juggling"]) for i in range(n)]


def test_a_new_label_is_learned_and_the_old_model_stays(state, model, tagger):
    outcome = teach(state, model, juggling())
    assert outcome.applied
    learned = um.load(state.versions.path(outcome.version.version))
    assert learned.predict("rings and clubs", k=1)[0][0] == "juggling"
    before = um.load(state.versions.path(outcome.version.parent))
    assert before.predict("dough flour") == tagger.predict("dough flour")


def test_learning_twice_is_the_same_model(state, model):
    """Same corrections, same bits: also after a kill in between."""
    first = teach(state, model, juggling())
    again = learn(state.folder, state.versions.current(model), state.journal.last_number)
    assert again.version.version == first.version.version


def test_what_was_rejected_is_suggested_less(state, model, tagger):
    text = "kettle of broth with leaves"
    assert "tea" in [name for name, _ in tagger.predict(text, k=2)]
    wrong = [Correction(f"{text} {word}", ["soup"], ["soup", "tea"]) for word in "abcdefgh"]
    outcome = teach(state, model, wrong)
    learned = um.load(state.versions.path(outcome.version.version))
    assert dict(learned.predict(text, k=8)).get("tea", 0) < dict(tagger.predict(text, k=8))["tea"]


def test_a_tenth_is_never_learned(state, model, monkeypatch):
    """The score on these texts would say nothing if the model had seen them."""
    seen = []
    real = um.Tagger.partial_fit

    def partial_fit(self, texts, *others):
        seen.extend(texts)
        return real(self, texts, *others)

    monkeypatch.setattr(um.Tagger, "partial_fit", partial_fit)
    given = juggling(40)
    aside = {one.text for one in given if one.is_for_validation}
    outcome = teach(state, model, given)
    assert aside
    assert set(seen) - {""} == {one.text for one in given} - aside
    assert outcome.unseen.n_texts == len(aside)
    assert outcome.corrections == len(given) - len(aside)


def vandalism(n=150, seed=0):
    """Texts of one label that somebody calls another."""
    draw, names = random.Random(seed), sorted(WORDS)
    for i in range(n):
        right, wrong = draw.sample(names, 2)
        words = draw.sample(WORDS[right].split(), 3)
        yield Correction(f"how about {' '.join(words)} again {i}", [wrong], [right])


def test_corrections_that_make_it_worse_are_kept_but_not_applied(state, model):
    outcome = teach(state, model, list(vandalism()))
    assert not outcome.applied
    assert "worse on" in outcome.reason
    assert outcome.version.version == state.versions.current(model).version
    assert outcome.version.refused == outcome.corrections > 100
    assert outcome.version.position == state.journal.last_number == 150


def test_texts_of_the_operator_decide_too(state, model, tmp_path):
    texts, labels = made_up(100, seed=5)
    file = tmp_path / "validation.jsonl"
    um.data.write(Samples(texts=texts, labels=labels), file)
    outcome = teach(state, model, juggling(), validation=file)
    assert outcome.applied
    assert outcome.unseen.n_texts >= 100


def test_a_model_that_cannot_learn_says_why(state, model):
    um.Tagger(um.NearestCentroid(), replay=20, calibrate=False).fit(*made_up(60)).save(model)
    outcome = teach(state, model, juggling())
    assert not outcome.applied
    assert "NearestCentroid has to learn everything again" in outcome.reason


def test_corrections_that_were_taken_back_are_not_learned(state, model):
    current = replace(state.versions.current(model), undone=[(1, 100)])
    state.journal.append(juggling(), current.version)
    outcome = learn(state.folder, current, state.journal.last_number)
    assert outcome.corrections == 0
    assert "nothing to learn" in outcome.reason


def test_the_last_word_on_a_text_counts():
    given = [Correction("a", ["x"], number=1), Correction("b", ["y"], number=2),
             Correction("a", ["z"], number=3)]  # fmt: skip
    assert [(one.text, one.labels) for one in latest(given)] == [("b", ["y"]), ("a", ["z"])]


def test_an_outcome_survives_the_way_between_processes(state, model):
    outcome = teach(state, model, juggling())
    assert Outcome.of(outcome.to_dict()) == outcome


def test_scores_are_those_of_the_library(tagger):
    texts, labels = made_up(50, seed=3)
    top = tagger.predict_topk(texts, 5)
    Y = tagger.label_names_.matrix(labels)
    assert ndcg_of_each(Y, top).mean() == pytest.approx(um.metrics.ndcg_at_k(Y, top, 5))


def test_the_same_model_is_not_worse(tagger):
    texts, labels = made_up(50, seed=3)
    unknown = [[*some, "never heard of"] for some in labels]
    check = compare_on_texts(tagger, tagger, texts, unknown)
    assert check.before == check.after
    assert not check.is_worse
    assert not compare_on_texts(tagger, tagger, [], []).is_worse


def test_kept_texts_are_left_out_of_both_models(tagger):
    """What a model has learned by heart says nothing about what corrections do to others."""
    given = [Correction(text, labels) for text, labels in zip(*made_up(30, seed=9), strict=True)]
    check = compare_on_kept(tagger, given)
    assert check.n_texts == 40
    assert not check.is_worse
    less = without_kept(tagger, np.arange(50))
    assert less.n_samples_ == 150
    assert less.label_counts_.sum() == tagger.replay_.Y[50:].nnz
    assert less.replay_.texts == tagger.replay_.texts[50:]


@pytest.mark.parametrize(
    ("n", "after", "error", "is_worse"),
    [(100, 0.7, 0.01, True), (100, 0.7, 0.1, False), (100, 0.799, 0, False), (100, 0.9, 0, False),
     (3, 0.2, 0, False)],
)  # fmt: skip
def test_a_fall_counts_if_chance_does_not_explain_it(n, after, error, is_worse):
    assert Check(n, 0.8, after, error).is_worse is is_worse


def test_a_result_that_cannot_be_kept_is_told_and_not_tried_again_at_once(
    serving, model, monkeypatch
):
    client = serving(model, learns=True, learn_after=1000)
    server = client.app.state.server
    served, started = server.models["kitchen"], []

    async def learned(one):
        started.append(one)
        return Outcome("", served.current, 1, applied=True)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server.teacher, "_in_child", learned)
    monkeypatch.setattr(served, "adopt", full)
    client.post("/v1/kitchen/learn", json={"items": [{"text": "a", "labels": ["tea"]}]})
    answer = client.post("/v1/kitchen/apply")
    assert (answer.status_code, len(started)) == (500, 1)
    assert "learning failed" in answer.json()["detail"]
    assert not server.teacher._is_due(served)
    assert server.teacher._waiting_since["kitchen"] > time.monotonic()
