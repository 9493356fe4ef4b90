"""Labels that come and go: what a user of a thesaurus does every week."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

import umpteen as um
from umpteen.errors import (
    LabelsError,
    LabelsShapeError,
    ParameterError,
    RebuildDueWarning,
    TextsError,
)
from umpteen.tagger import Tagger, growth
from umpteen.tagger.label_names import LabelNames
from umpteen.tagger.replay import Replay
from umpteen.tagger.vectorizing import Words, learn_words
from umpteen.text import Vectorizer

from .made_up import COMMON, N_LABELS, about, make_up, name_of, words_of

TEXTS, LABELS = make_up(600)
TEST, RELEVANT = make_up(150, seed=1)
HIDDEN = [name_of(4), name_of(11), name_of(17)]
NUMBERS = {name: int(name[-2:]) for name in HIDDEN}
KNOWN = [[name for name in own if name not in HIDDEN] for own in LABELS]
EXAMPLES = {
    name: [text for text, own in zip(TEXTS, LABELS, strict=True) if name in own][:25]
    for name in HIDDEN
}


def small_tree(**parameters):
    return um.LabelTree(max_leaf=6, branching=4).set_params(**parameters)


def fitted(classifier=None, **parameters):
    return Tagger(classifier or small_tree(), **parameters).fit(TEXTS, KNOWN)


@pytest.fixture(scope="module")
def before():
    return fitted()


@pytest.fixture(scope="module")
def grown():
    return fitted().add_labels(HIDDEN, examples=EXAMPLES)


def recall_of(tagger, name, k=3):
    """The share of test texts with a label that get it among their best."""
    found = tagger.predict([t for t, own in zip(TEST, RELEVANT, strict=True) if name in own], k=k)
    return np.mean([name in dict(tags) for tags in found])


def false_alarms(tagger, name, least=0.3):
    """The share of test texts without a label that get it with some certainty."""
    others = [t for t, own in zip(TEST, RELEVANT, strict=True) if name not in own]
    found = tagger.predict(others, threshold=least)
    return np.mean([name in dict(tags) for tags in found])


# --- adding


@pytest.mark.parametrize(
    "classifier",
    [
        small_tree(),
        small_tree(n_trees=3),
        small_tree(recipe__loss="logistic", cost=4.0),
        um.LabelTree(),
        um.NearestCentroid(),
    ],
    ids=["tree", "three trees", "logistic", "one leaf", "centroid"],
)
@pytest.mark.parametrize("calibrate", [True, False])
def test_hidden_labels_are_found_again(classifier, calibrate):
    tagger = fitted(classifier, calibrate=calibrate)
    n_before = len(tagger.label_names_)
    assert tagger.add_labels(HIDDEN, examples=EXAMPLES) is tagger
    assert [tagger.label_names_.id_of(name) for name in HIDDEN] == [*range(n_before, n_before + 3)]
    for name in HIDDEN:
        assert recall_of(tagger, name) > 0.6
    assert tagger.score(TEST, RELEVANT) > 0.8


def test_the_rest_is_what_it_was(before, grown):
    """What reviewers have accepted must not change because a colleague adds a label."""
    X = before.vectorizer_.transform(TEST)
    first_new = len(before.label_names_)
    old, new = (one.classifier_.predict_topk(X, 24, beam_width=100) for one in (before, grown))
    for row in range(len(TEST)):
        was = dict(zip(old.labels[row].tolist(), old.scores[row].tolist(), strict=True))
        now = dict(zip(new.labels[row].tolist(), new.scores[row].tolist(), strict=True))
        assert {k: v for k, v in now.items() if k < first_new} == {
            k: v for k, v in was.items() if k >= 0
        }


@pytest.mark.parametrize("calibrate", [True, False])
def test_answers_change_only_where_a_new_label_is_among_the_best(calibrate):
    """Probabilities depend on all of the best twenty; here it is one newcomer of 24 labels."""
    name = HIDDEN[0]
    known = [[other for other in own if other != name] for own in LABELS]
    before, grown = (Tagger(small_tree(), calibrate=calibrate).fit(TEXTS, known) for _ in range(2))
    grown.add_labels(name, examples={name: EXAMPLES[name]})
    first_new = len(before.label_names_)
    old, new = before.predict_topk(TEST, 20), grown.predict_topk(TEST, 20)
    untouched = 0
    for row in range(len(TEST)):
        is_old = new.labels[row] < first_new
        kept = new.labels[row][is_old]
        assert kept.tolist() == old.labels[row][: len(kept)].tolist(), "never another order"
        if is_old.all():
            untouched += 1
            assert new.scores[row].tobytes() == old.scores[row].tobytes()
        elif not calibrate:
            scores = new.scores[row][is_old]
            assert scores.tobytes() == old.scores[row][: len(kept)].tobytes()
    assert 20 < untouched < 140


@pytest.mark.parametrize("n", [1, 3, 12])
def test_a_label_with_positives_only_does_not_fire_on_everything(n):
    """The complaint of FARM#531: the new label was then on every text."""
    for seed in range(3):
        tagger = fitted().add_labels("new", examples=[about(30 + seed, n)])
        assert false_alarms(tagger, "new") == 0
        tagger = fitted().add_labels(HIDDEN[0], examples=[about(NUMBERS[HIDDEN[0]], n, seed)])
        assert false_alarms(tagger, HIDDEN[0]) < 0.05


def test_an_example_that_is_a_training_text_does_not_speak_against_itself():
    """Spelling aside, as features do not see it."""
    tagger = fitted()
    n, counts = len(tagger.replay_), tagger.label_counts_.copy()
    tagger.add_labels(["A", "B"], examples=[[TEXTS[0], TEXTS[1]], [TEXTS[0].upper(), TEXTS[2]]])
    assert len(tagger.replay_) == n
    assert tagger.n_samples_ == 600
    a, b = (tagger.label_names_.id_of(name) for name in "AB")
    own = [set(tagger.replay_.Y[row].indices) & {a, b} for row in range(4)]
    assert own == [{a, b}, {a}, {b}, set()]
    assert tagger.label_counts_.tolist() == [*counts, 2, 2]


def test_examples_of_several_new_labels_do_not_speak_against_each_other():
    text = about(40, 1)[0]
    tagger = Tagger(small_tree(), vectorizer=Vectorizer(hashing=2**16)).fit(TEXTS, KNOWN)
    tagger.add_labels(["A", "B"], examples=[[text], [text.upper()]])
    assert len(tagger.replay_) == 601
    assert {name for name, _ in tagger.predict(text, k=2)} == {"A", "B"}


def test_a_label_is_learned_from_its_text_alone():
    """Nobody has written about it yet."""
    for name, number in NUMBERS.items():
        rows = [row for row, own in enumerate(LABELS) if name not in own]
        texts, labels = ([part[row] for row in rows] for part in (TEXTS, LABELS))
        tagger = Tagger(small_tree(), vectorizer=Vectorizer(hashing=2**16)).fit(texts, labels)
        tagger.add_labels(name, texts=[" ".join(words_of(number))])
        found = tagger.predict(about(number, 30), k=1)
        assert np.mean([tags[0][0] == name for tags in found]) > 0.8
        assert false_alarms(tagger, name) < 0.05


@pytest.mark.parametrize(
    ("texts", "examples"),
    [
        ("word4a word4b", None),
        (["word4a word4b"], None),
        ({"new": "word4a word4b"}, {"new": []}),
        ({"new": None}, {"new": ["word4a word4b"]}),
        ({"new": "  "}, {"new": ["word4a word4b"]}),
        (None, [("word4a word4b",)]),
        (np.array(["word4a word4b"]), None),
        ([""], [["word4a word4b", "word4a word4b"]]),
        (["word4a word4b"], [iter([])]),
        (["word4a word4b"], {"new": iter(())}),
        (None, np.array(["word4a word4b"])),
        (None, np.array([["word4a word4b"]])),
        (None, iter(["word4a word4b"])),
        (None, [np.array(["word4a word4b"])]),
    ],
)
def test_all_ways_to_give_the_same(texts, examples):
    tagger = fitted().add_labels("new", texts=texts, examples=examples)
    assert tagger.predict("word4a word4b", k=1)[0][0] == "new"
    assert tagger.label_counts_[-1] == 1


def test_texts_of_new_labels_count_where_texts_of_labels_were_learned():
    texts = {name_of(i): " ".join(words_of(i)) for i in range(N_LABELS) if name_of(i) not in HIDDEN}
    tagger = Tagger(small_tree(recipe__label_text_weight=0.3)).fit(TEXTS, KNOWN, label_texts=texts)
    name = HIDDEN[0]
    tagger.add_labels(name, texts=[" ".join(words_of(4))], examples=[EXAMPLES[name]])
    why = tagger.classifier_.explain(
        tagger.vectorizer_.transform([" ".join(words_of(4))]), tagger.label_names_.id_of(name)
    )
    assert why.cosine > 0.6  # its name is part of its text, too
    assert recall_of(tagger, name) > 0.7


def test_new_words_are_learned_with_new_labels():
    """A new product has a name that no old text has."""
    tagger = fitted().add_labels("new", examples=[["zyzzyva quux", "quux frobnicator"]])
    assert tagger.predict("a quux", k=1)[0][0] == "new"
    assert tagger.predict("something else entirely unheard of") == []


def test_without_room_for_new_words_a_label_of_nothing_else_is_refused():
    tagger = Tagger(small_tree(), vectorizer=Vectorizer()).fit(TEXTS, KNOWN)
    with pytest.raises(LabelsError, match=r"'new' cannot be learned, as no word.*spare"):
        tagger.add_labels("new", examples=[["zyzzyva quux"]])


def test_tuned_thresholds_have_room_for_new_labels():
    tagger = fitted()
    tagger.tune_thresholds("macro_f1")
    tagger.add_labels(HIDDEN, examples=EXAMPLES)
    assert len(tagger.thresholds_.per_label) == len(tagger.label_names_)
    least = tagger.thresholds_.least
    assert (tagger.thresholds_.per_label[-len(HIDDEN) :] == np.float32(least)).all()
    assert any(tagger.predict(TEST, threshold="tuned"))
    assert len(tagger.tune_thresholds("macro_f1").per_label) == len(tagger.label_names_)


@pytest.mark.parametrize(
    ("names", "texts", "examples", "error", "match"),
    [
        (name_of(0), None, [["common1"]], LabelsError, "'label00' is a label already.*partial_fit"),
        ("new", None, None, LabelsError, "neither examples nor a text"),
        ("new", None, {"new": []}, LabelsError, "neither examples nor a text"),
        ("new", None, [iter([])], LabelsError, "neither examples nor a text"),
        ("new", ["  "], None, LabelsError, "neither examples nor a text"),
        (["a", "b"], None, [["common1"]], LabelsShapeError, "2 names but examples for 1"),
        (["a", "b"], "common1", None, LabelsShapeError, "2 names but texts for 1"),
        (["a", "b"], None, 7, LabelsShapeError, "2 names but examples for 1"),
        ("new", None, {"old": ["common1"]}, LabelsError, "'old', which is not among the names"),
        ("new", None, {"new": [None]}, TextsError, "None"),
        ("new", {"new": 7}, None, TextsError, "7"),
        ([], None, None, LabelsError, "names is empty"),
        ([None], None, [["common1"]], LabelsError, "None"),
    ],
)
def test_what_cannot_be_added_is_refused(names, texts, examples, error, match):
    tagger = fitted()
    first = tagger.predict_topk(TEST[:20])
    with pytest.raises(error, match=match):
        tagger.add_labels(names, texts=texts, examples=examples)
    assert tagger.predict_topk(TEST[:20]) == first
    assert len(tagger.label_names_) == len(tagger.label_counts_) == N_LABELS - 3


def test_a_tagger_that_kept_nothing_says_what_to_do():
    tagger = fitted(replay=0)
    assert tagger.predict(TEST[0])
    with pytest.raises(ParameterError, match=r"replay=0.*such as replay="):
        tagger.add_labels("new", examples=[["common1 common2"]])


def test_many_newcomers_make_a_rebuild_due():
    tagger = fitted()
    assert tagger.rebuild_due is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.add_labels(HIDDEN, examples=EXAMPLES)
    with pytest.warns(RebuildDueWarning, match="6 of 27 labels") as caught:
        tagger.add_labels(["a", "b", "c"], examples=[["common1"], ["common2"], ["common3"]])
    assert caught[0].filename == __file__
    assert "6 of 27" in tagger.rebuild_due
    with pytest.warns(RebuildDueWarning) as caught:
        tagger.partial_fit(["common4"], [["d"]])
    assert caught[0].filename == __file__
    tagger.remove_labels(["a", "b", "d"])
    assert tagger.rebuild_due is None
    assert tagger.fit(TEXTS, LABELS).rebuild_due is None


# --- removing


@pytest.mark.parametrize("classifier", [small_tree(), um.NearestCentroid()], ids=["tree", "c"])
def test_removed_labels_are_never_answered_again(classifier):
    tagger = fitted(classifier)
    ids, gone = tagger.label_names_.ids, [name_of(0), name_of(5)]
    scored = tagger.classifier_.predict_topk(tagger.vectorizer_.transform(TEST), 24)
    assert tagger.remove_labels(gone) is tagger
    assert tagger.label_names_.ids == {n: i for n, i in ids.items() if n not in gone}
    assert not set(gone) & {name for tags in tagger.predict(TEST, k=24) for name, _ in tags}
    assert (tagger.label_counts_ == np.bincount(tagger.replay_.Y.indices, minlength=21)).all()
    if isinstance(classifier, um.LabelTree):
        again = tagger.classifier_.predict_topk(tagger.vectorizer_.transform(TEST), 24)
        for row in range(len(TEST)):
            left = [i for i in scored.labels[row] if i not in (ids[gone[0]], ids[gone[1]], -1)]
            assert again.labels[row][: len(left)].tolist() == left
    with pytest.raises(LabelsError, match="'label00' is not among the 19 labels"):
        tagger.explain(TEST[0], name_of(0))
    with pytest.raises(LabelsError, match="is not among"):
        tagger.remove_labels(name_of(0))


@pytest.mark.parametrize("classifier", [small_tree(), um.NearestCentroid()], ids=["tree", "c"])
def test_a_removed_name_may_come_back_as_another_label(classifier):
    tagger = fitted(classifier).remove_labels(name_of(0))
    examples = [text for text, own in zip(TEXTS, LABELS, strict=True) if name_of(0) in own]
    tagger.add_labels(name_of(0), examples=[examples])
    assert tagger.label_names_.id_of(name_of(0)) == N_LABELS - 3
    assert recall_of(tagger, name_of(0)) > 0.7
    tagger.partial_fit([TEST[0]], [[name_of(0)]])
    assert tagger.label_names_.id_of(name_of(0)) == N_LABELS - 3


def test_the_last_label_stays():
    tagger = Tagger().fit(["apple", "pear", "ore"], ["fruit", "fruit", "metal"])
    with pytest.raises(LabelsError, match="at least one must stay"):
        tagger.remove_labels(["fruit", "metal"])
    assert tagger.remove_labels("metal").predict("apple")[0][0] == "fruit"


def test_a_typing_error_is_recognised():
    with pytest.raises(LabelsError, match="did you mean 'label00'"):
        fitted().remove_labels("lable00")


# --- more samples


@pytest.mark.parametrize("classifier", [small_tree(), um.NearestCentroid()], ids=["tree", "c"])
def test_new_samples_change_the_answer(classifier):
    tagger = fitted(classifier)
    text = f"{COMMON[0]} {COMMON[1]} {COMMON[2]}"
    assert tagger.predict(text, k=1)[0][0] != name_of(3)
    more = [f"{COMMON[0]} {COMMON[1]} {word}" for word in COMMON[2:14]]
    assert tagger.partial_fit(more, [[name_of(3)]] * 12) is tagger
    assert tagger.predict(text, k=1)[0][0] == name_of(3)
    assert tagger.score(TEST, RELEVANT) > 0.75
    assert tagger.n_samples_ == 612


def test_new_names_become_labels():
    tagger = fitted()
    tagger.partial_fit(*_labelled_with(HIDDEN))
    for name in HIDDEN:
        assert recall_of(tagger, name) > 0.7
    assert len(tagger.label_names_) == N_LABELS
    assert tagger.n_samples_ == 600, "all of these texts were known"
    counts = dict(zip(tagger.label_names_.names, tagger.label_counts_, strict=True))
    for name, number in counts.items():
        assert number == sum(name in own for own in LABELS)


def _labelled_with(names):
    rows = [row for row, own in enumerate(LABELS) if set(own) & set(names)]
    return [TEXTS[row] for row in rows], [LABELS[row] for row in rows]


def test_labels_that_are_not_in_the_new_samples_stay_as_they_are():
    tagger, fresh = fitted(), fitted()
    fresh.partial_fit([f"{words_of(7)[1]} {COMMON[3]}"], [[name_of(7)]])
    for name in (name_of(0), name_of(20)):
        ours, theirs = (dict(one.label_keywords(name, 50)) for one in (tagger, fresh))
        assert ours.keys() == theirs.keys()
        for word, weight in ours.items():
            assert theirs[word] == pytest.approx(weight, abs=1e-3)
    assert dict(tagger.label_keywords(name_of(7))) != dict(fresh.label_keywords(name_of(7)))


def test_an_unfitted_tagger_is_fitted():
    tagger = Tagger(small_tree()).partial_fit(TEXTS, KNOWN)
    assert tagger.predict_topk(TEST) == fitted().predict_topk(TEST)


def test_the_same_samples_again_count_once():
    """A nightly job that sends everything twice."""
    tagger = fitted()
    for _ in range(3):
        tagger.partial_fit(TEXTS[:200], KNOWN[:200])
    assert tagger.n_samples_ == len(tagger.replay_) == 600
    names = tagger.label_names_.names
    expected = [sum(name in own for own in KNOWN) for name in names]
    assert tagger.label_counts_.tolist() == expected
    assert tagger.evaluate(TEST, RELEVANT).metrics["precision@1"] > 0.7


def test_a_label_that_only_had_a_text_learns_from_its_first_samples():
    tagger = Tagger(small_tree()).fit(TEXTS, KNOWN, label_texts={"7": ""})
    assert "7" not in {name for tags in tagger.predict(TEST, k=24) for name, _ in tags}
    tagger.partial_fit(EXAMPLES[HIDDEN[0]], [["7"]] * len(EXAMPLES[HIDDEN[0]]))
    found = tagger.predict(EXAMPLES[HIDDEN[0]], k=3)
    assert np.mean(["7" in dict(tags) for tags in found]) > 0.8


def test_nothing_new_changes_nothing():
    tagger = fitted()
    first = tagger.predict_topk(TEST)
    assert tagger.partial_fit([], []).predict_topk(TEST) == first


def test_bad_samples_are_refused():
    with pytest.raises(LabelsShapeError):
        fitted().partial_fit(["a"], [])


# --- what was kept


def test_a_smaller_replay_keeps_rare_labels():
    tagger = fitted(replay=100)
    replay = tagger.replay_
    assert len(replay) == 100
    assert tagger.n_samples_ == 600
    full = tagger.label_names_.matrix(KNOWN)
    counts, kept = (np.bincount(Y.indices, minlength=Y.shape[1]) for Y in (full, replay.Y))
    shares = (kept / counts)[np.argsort(counts)]
    assert (shares[:2] == 1).all()
    assert shares[:3].mean() > 2 * shares[-3:].mean()
    unlabelled = np.diff(replay.Y.indptr) == 0
    assert unlabelled.any(), "half of it is drawn at random"
    tagger.add_labels(HIDDEN, examples=EXAMPLES)
    for name in HIDDEN:
        assert recall_of(tagger, name) > 0.6
        assert false_alarms(tagger, name) < 0.1


def test_a_classifier_that_learns_everything_again_needs_everything():
    tagger = fitted(um.NearestCentroid(), replay=100)
    first = tagger.predict_topk(TEST)
    for change in (
        lambda: tagger.add_labels("new", examples=[["common1 common2"]]),
        lambda: tagger.remove_labels(name_of(0)),
        lambda: tagger.partial_fit(TEST[:3], [[name_of(0)]] * 3),
    ):
        with pytest.raises(ParameterError, match=r"only 100 of 600 samples.*LabelTree"):
            change()
    assert tagger.predict_topk(TEST) == first
    assert name_of(0) in tagger.label_names_.ids


def test_learning_again_is_fitting_with_everything():
    tagger = fitted(um.NearestCentroid(), calibrate=False).add_labels(HIDDEN, examples=EXAMPLES)
    names = tagger.label_names_
    lists = [
        own + [name for name in HIDDEN if text in EXAMPLES[name]]
        for text, own in zip(TEXTS, KNOWN, strict=True)
    ]
    X = tagger.vectorizer_.transform(TEXTS)
    anew = um.NearestCentroid().fit(X, names.matrix(lists))
    assert tagger.predict_topk(TEST) == anew.predict_topk(tagger.vectorizer_.transform(TEST))


# --- all or nothing


CHANGES = {
    "add_labels": lambda tagger: tagger.add_labels("new", examples=[["quux zyzzyva", TEXTS[0]]]),
    "remove_labels": lambda tagger: tagger.remove_labels(name_of(0)),
    "partial_fit": lambda tagger: tagger.partial_fit(
        [f"quux {TEXTS[1]}", TEXTS[2]], [[name_of(0), "new"], [name_of(2)]]
    ),
}


def steps_of(tagger):
    """What a change goes through: each may fail, or be where a person presses Ctrl-C."""
    places = [(growth, "learn_words"), (growth, "_adopt"), (growth, "_make_room")]
    places += [(Replay, "joined"), (Replay, "redrawn"), (Vectorizer, "transform")]
    names = ("add_labels", "refit_labels", "remove_labels", "fit")
    places += [(type(tagger.classifier_), name) for name in names]
    return [place for place in places if hasattr(*place)]


def state_of(tagger):
    """Everything that an answer, a report or a next change could depend on."""
    return (
        tagger.predict(TEST[:40], k=24),
        tagger.predict("quux", k=24),
        tagger.labels,
        tagger.label_counts_.tolist(),
        (tagger.n_samples_, tagger.n_added_, tagger.n_features, len(tagger.replay_)),
        tagger.replay_.Y.toarray().tolist(),
        tagger.label_keywords(name_of(1)) if hasattr(tagger.classifier_, "trees_") else None,
        tagger.tune_thresholds("macro_f1").per_label.tolist(),
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("classifier", [small_tree, um.NearestCentroid])
def test_a_change_that_fails_leaves_everything_as_it_was(classifier, change, monkeypatch):
    """A night's job that dies half-way must not leave a tagger that answers something else."""
    first = fitted(classifier())
    before, reached = state_of(first), []
    for owner, name in steps_of(first):
        tagger = deepcopy(first)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, _then_interrupted(getattr(owner, name)))
            try:
                CHANGES[change](tagger)
            except KeyboardInterrupt:
                reached.append(name)
            else:
                continue
        assert state_of(tagger) == before, name
    assert len(reached) >= 2
    assert state_of(CHANGES[change](first)) != before


def _then_interrupted(step):
    def interrupted(*given, **named):
        step(*given, **named)
        raise KeyboardInterrupt

    return interrupted


def test_words_of_labels_that_were_refused_are_not_learned():
    """The first label has known words, the second one finds no column left for its own."""
    tagger = Tagger(small_tree(), vectorizer=Vectorizer(spare=1)).fit(TEXTS, KNOWN)
    before = state_of(tagger)
    with pytest.raises(LabelsError, match="'b' cannot be learned"):
        tagger.add_labels(["a", "b"], examples=[["common1 quux"], ["zyzzyva"]])
    assert state_of(tagger) == before
    assert "quux" not in tagger.vectorizer_.get_feature_names_out()


def test_an_interrupted_fit_leaves_the_fit_before(monkeypatch):
    tagger = fitted()
    before = state_of(tagger)
    with monkeypatch.context() as patch:
        patch.setattr(Replay, "redrawn", _then_interrupted(Replay.redrawn))
        with pytest.raises(KeyboardInterrupt):
            tagger.fit(TEXTS[:50], LABELS[:50])
    assert state_of(tagger) == before


# --- words that came late


@pytest.fixture(scope="module")
def taught():
    """An old label and a new one have words that no training text had."""
    tagger = fitted().add_labels("new", examples=[["quux frobnicator", f"quux {COMMON[1]}"]])
    return tagger.partial_fit([f"zyzzyva {word}" for word in COMMON[:8]], [[name_of(3)]] * 8)


def test_late_words_speak_for_the_labels_that_learned_them_only(taught):
    """Other labels would be given for how frequent they are."""
    assert [name for name, _ in taught.predict("quux", k=24)] == ["new"]
    assert [name for name, _ in taught.predict("zyzzyva", k=24)] == [name_of(3)]
    both = {name for name, _ in taught.predict("zyzzyva quux", k=24)}
    assert both == {"new", name_of(3)}
    assert len(taught.predict(f"quux {words_of(5)[1]}", k=24)) == len(taught.labels)
    assert taught.predict_topk(["quux", TEST[0]], 3)[1] == taught.predict_topk([TEST[0]], 3)


def test_late_words_that_nobody_learned_are_no_known_words():
    """The only label that learned them is gone."""
    tagger = fitted().add_labels("new", examples=[["quux frobnicator"]]).remove_labels("new")
    assert tagger.predict("quux") == []
    with pytest.raises(LabelsError, match="gets no label"):
        tagger.explain("quux")


@pytest.mark.parametrize("vectorizer", [Vectorizer(hashing=2**18), HashingVectorizer()])
def test_hashed_words_that_no_text_had_are_no_known_words(vectorizer):
    tagger = Tagger(small_tree(), vectorizer=vectorizer).fit(TEXTS, KNOWN)
    assert tagger.predict("quux zyzzyva") == []
    tagger.add_labels("new", examples=[["quux frobnicator"]])
    assert [name for name, _ in tagger.predict("quux zyzzyva", k=24)] == ["new"]


def test_a_classifier_that_learned_everything_again_knows_late_words():
    tagger = fitted(um.NearestCentroid()).add_labels("new", examples=[["quux frobnicator"]])
    assert tagger.predict("quux", k=1)[0][0] == "new"
    assert tagger.predict("unheard of") == []


def test_forms_of_a_word_that_has_a_column_need_no_room():
    vectorizer = Vectorizer(language="en").fit(["connected to a net", "a connection fails"])
    assert learn_words(vectorizer, ["connected, connecting"]) is None
    assert "'zebra'" in str(learn_words(vectorizer, ["connected, connecting zebra"]))


def test_an_error_does_not_repeat_a_name_of_a_hundred_kilobytes():
    names = LabelNames.of([["x" * 100_000], ["b"]])
    with pytest.raises(LabelsError) as caught:
        names.id_of("x" * 99_000)
    assert len(str(caught.value)) < 200


def test_a_spare_column_has_a_number_for_a_name():
    words = Words(Vectorizer(spare=2).fit(["a cat"]))
    assert [words.name(feature) for feature in range(4)] == ["a", "cat", "#2", "#3"]


def test_words_without_room_are_warned_of():
    tagger = Tagger(small_tree(), vectorizer=Vectorizer(spare=2)).fit(TEXTS, KNOWN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.add_labels("a", examples=[["common1 quux"]])
        tagger.partial_fit(["common2 zyzzyva quux"], [["a"]])
    match = r"no column left for new words such as 'frobnicator'.*fit again.*spare="
    with pytest.warns(RebuildDueWarning, match=match) as caught:
        tagger.add_labels("b", examples=[["common1 quux", "common3 frobnicator"]])
    assert caught[0].filename == __file__
    with pytest.warns(RebuildDueWarning, match="'wombat'") as caught:
        tagger.partial_fit(["common2 wombat"], [["b"]])
    assert caught[0].filename == __file__


# --- as many samples as were asked for


def test_no_more_samples_are_kept_than_replay_allows():
    tagger = fitted(replay=100, keep_texts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RebuildDueWarning)
        for i in range(5):
            tagger.add_labels(f"new{i}", examples=[about(40 + i, 12)])
            tagger.partial_fit(about(3, 15, seed=i), [[name_of(3)]] * 15)
            assert len(tagger.replay_) == len(tagger.replay_.texts) == 100
            assert tagger.replay_.Y.shape == (100, len(tagger.label_names_))
    assert tagger.n_samples_ == 600 + 5 * 27
    names = dict(zip(tagger.label_names_.names, tagger.label_counts_, strict=True))
    assert [names[f"new{i}"] for i in range(5)] == [12] * 5
    assert names[name_of(3)] == sum(name_of(3) in own for own in KNOWN) + 5 * 15
    for i in range(5):
        assert tagger.predict(about(40 + i, 1, seed=9)[0], k=1)[0][0] == f"new{i}"


def test_new_samples_count_once_though_not_all_are_kept():
    tagger = fitted(replay=100)
    texts = about(50, 150)
    tagger.partial_fit(texts, [["new"]] * 150)
    assert tagger.n_samples_ == 600 + len(set(texts))
    assert tagger.label_counts_[-1] == len(set(texts))
