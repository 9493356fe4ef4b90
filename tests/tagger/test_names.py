"""What labels are called: word forms that are tried, names, vocabularies and broader labels."""

import numpy as np
import pytest

import umpteen as um
from umpteen.data import Concept, LabelVocabulary
from umpteen.errors import LabelsError, ParameterError, RebuildDueWarning
from umpteen.linear import LabelTree
from umpteen.metrics import ndcg_at_k
from umpteen.splitting import validation_split
from umpteen.tagger import Tagger
from umpteen.tagger.described_labels import FEWEST_TEXTS, names_in, text_with_name
from umpteen.tagger.trials import _drawn
from umpteen.text import Vectorizer

N, N_UNSEEN = 300, 10  # the last labels have no text
COMMON = [f"common{i}" for i in range(60)]
ENDINGS = ["", "s", "ing", "ed"]


def uri(label):
    return f"http://example.org/onto#c{label}"


def names_of(label):
    return [f"alpha{label}x beta{label}x", f"gamma{label}x"]


def concepts():
    """Labels 0, 5, 10, ... are broader than the four after them; 0 is broader than all others."""
    return [
        Concept(
            uri(label), names_of(label)[0], (names_of(label)[1],), uri=uri(label),
            broader=() if label == 0 else (uri(0),) if label % 5 == 0 else (uri(label // 5 * 5),),
        )
        for label in range(N)
    ]  # fmt: skip


def made_up(n, seed=0):
    """Texts with a word of the topic of each label and nine times in ten one of its names.

    They also have words of the names of four other labels.
    """
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        own = random.choice(N - N_UNSEEN, 2, replace=False)
        words = [f"topic{label // 4}y" for label in own]
        words += [str(random.choice(names_of(label))) for label in own if random.random() < 0.9]
        for label in random.choice(N - N_UNSEEN, 4):
            words.append(str(random.choice(names_of(label))).split()[0])
        words += random.choice(COMMON, 6).tolist()
        random.shuffle(words)
        texts.append(" ".join(words))
        labels.append([uri(label) for label in own])
    return texts, labels


TEXTS, LABELS = made_up(1200)
TEST, RELEVANT = made_up(150, seed=1)
VOCABULARY = LabelVocabulary.of(concepts())


@pytest.fixture(scope="module")
def tagger():
    found = Tagger(language=None).fit(TEXTS, LABELS, vocabulary=VOCABULARY)
    assert found.classifier_.label_texts_.ranker is not None
    return found


def same(one, other):
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.scores, other.scores)


# --- the language


def test_without_language_and_names_it_is_a_tree_of_plain_words():
    tagger = Tagger(language=None, calibrate=False).fit(TEXTS, LABELS, label_texts=None)
    vectorizer = Vectorizer(spare=10_000)
    X = vectorizer.fit_transform(TEXTS)
    tree = LabelTree.for_texts(random_state=0).fit(X, tagger.label_names_.matrix(LABELS))
    same(tagger.predict_topk(TEST, 9), tree.predict_topk(vectorizer.transform(TEST), 9))
    assert tagger.trials_ == {}


def test_nothing_is_tried_on_few_texts():
    few = FEWEST_TEXTS - 1
    tagger = Tagger().fit(TEXTS[:few], LABELS[:few])
    plain = Tagger(language=None).fit(TEXTS[:few], LABELS[:few], label_texts=None)
    assert tagger.trials_ == {}
    same(tagger.predict_topk(TEST), plain.predict_topk(TEST))


def test_nothing_is_tried_on_texts_without_words():
    texts = ["red apple", "green pear"] * 20 + [""] * 8_160
    labels = [["apple"], ["pear"]] * 20 + [[]] * 8_160
    seed = next(i for i in range(1_000) if _drawn(np.array([len(t) for t in texts]), i).min() >= 40)
    tagger = Tagger(language="en", random_state=seed, calibrate=False).fit(texts, labels)
    assert tagger.trials_ == {}
    assert tagger.predict("apples", k=1)[0][0] == "apple"


def test_a_language_that_is_named_is_used_for_few_texts_as_well():
    tagger = Tagger(language="en").fit(["old houses", "grey cats"] * 3, [["home"], ["pet"]] * 3)
    assert (tagger.vectorizer_.language, tagger.vectorizer_.forms) == ("en", "stems")
    assert tagger.predict("a house", k=1)[0][0] == "home"


def inflected(n, seed):
    """Every word has one of four endings, so that stems gather what plain words scatter."""
    random = np.random.default_rng(seed)
    stems = [a + b for a in ["walk", "jump", "paint", "wash", "boil"] for b in ["er", "on", "ist"]]
    texts, labels = [], []
    for _ in range(n):
        own = random.choice(150, 2, replace=False)
        words = [
            f"{'bdfghklmnp'[label % 10]}a{'bdfghklmnprstvz'[label // 10]}ort"
            + random.choice(ENDINGS)
            for label in own
        ]
        words += [stems[i] for i in random.choice(len(stems), 3)]
        texts.append(" ".join(words))
        labels.append([f"{label}" for label in own])
    return texts, labels


@pytest.mark.parametrize("texts_and_labels", [(TEXTS, LABELS), inflected(700, 0)])
def test_the_best_forms_of_words_are_used(texts_and_labels):
    tagger = Tagger(language="en").fit(*texts_and_labels)
    trials = tagger.trials_
    forms, costs = ["words", "stems", "both"], {"cost 1": (1.0, 1.0), "cost 0.25": (0.25, 2.0)}
    assert list(trials) == [*forms, *costs]
    chosen = costs[max(costs, key=trials.get)]
    assert (tagger.classifier_.cost, tagger.classifier_.positive_weight) == chosen
    worth = {each: trials[each] - (0.005 if each == "both" else 0) for each in forms}
    best = max(worth, key=worth.get)
    assert tagger.chosen["forms"] == best
    assert tagger.chosen["cost"] == tagger.classifier_.cost
    used = tagger.vectorizer_
    assert (used.language, used.forms) == (
        (None, Vectorizer().forms) if best == "words" else ("en", best)
    )


def test_costs_that_are_given_are_used():
    tree = LabelTree.for_texts(cost=0.7)
    tagger = Tagger(tree, language="en").fit(*inflected(700, 0))
    assert tagger.classifier_.cost == 0.7
    assert list(tagger.trials_) == ["words", "stems", "both"]
    assert list(tagger.chosen) == ["forms", "language"]


@pytest.mark.parametrize("language", [None, "en"])
def test_without_trials_the_cost_is_that_for_texts(language):
    few = inflected(60, 0)
    auto = Tagger(LabelTree.for_texts(cost="auto"), language=language).fit(*few)
    given = Tagger(LabelTree.for_texts(), language=language).fit(*few)
    same(auto.predict_topk(few[0]), given.predict_topk(few[0]))
    assert auto.chosen == {}


def test_stems_are_chosen_where_they_help():
    tagger = Tagger(language="en").fit(*inflected(700, 0))
    plain = Tagger(language=None).fit(*inflected(700, 0))
    assert tagger.trials_["stems"] > tagger.trials_["words"]
    assert tagger.vectorizer_.language == "en"
    texts, labels = inflected(300, 1)
    assert tagger.score(texts, labels) > plain.score(texts, labels)


def without_spaces(n, seed):
    """Labels are three letters in a row; every pair of letters is also elsewhere."""
    random = np.random.default_rng(seed)
    letters = list("的一是不了人")
    labels = ["".join(random.permutation(letters)[:3]) for _ in range(n)]
    texts = [
        "".join(random.choice(letters, 9)) + own + "".join(random.choice(letters, 9))
        for own in labels
    ]
    return texts, [[own] for own in labels]


def test_sequences_of_letters_are_chosen_where_words_are_not_separated():
    tagger = Tagger().fit(*without_spaces(1_200, 0))
    assert list(tagger.trials_)[:2] == ["words", "characters"]
    assert tagger.chosen["forms"] == "characters"
    assert tagger.chosen["language"] == "zh"
    plain = Tagger(language=None).fit(*without_spaces(1_200, 0))
    test = without_spaces(200, 1)
    assert tagger.score(*test) > plain.score(*test)


def test_an_unknown_language_is_refused():
    with pytest.raises(ParameterError, match="xx"):
        Tagger(language="xx").fit(TEXTS, LABELS)


# --- errors


def test_wrong_label_texts_and_vocabularies_are_refused():
    with pytest.raises(ParameterError, match="label_texts='x' is not possible"):
        Tagger().fit(TEXTS, LABELS, label_texts="x")
    with pytest.raises(ParameterError, match=r"vocabulary is a dict; expected the LabelVocabulary"):
        Tagger().fit(TEXTS, LABELS, vocabulary={"a": "b"})
    with pytest.raises(LabelsError, match="nothing"):
        Tagger().fit(TEXTS, [["nothing"]] * len(TEXTS), vocabulary=VOCABULARY)


def test_broader_labels_need_a_vocabulary(tagger):
    plain = Tagger(language=None).fit(TEXTS[:100], LABELS[:100])
    for broader in ("drop", "add"):
        with pytest.raises(ParameterError, match="no hierarchy of labels"):
            plain.predict(TEST[0], broader=broader)
    assert plain.predict(TEST[0], broader="keep") == plain.predict(TEST[0])
    with pytest.raises(ParameterError, match="broader='up' is not possible"):
        tagger.predict(TEST[0], broader="up")


# --- names


def named(labels):
    return [[names_of(int(label.split("#c")[1]))[0] for label in own] for own in labels]


def test_names_of_labels_are_tried_by_default():
    tagger = Tagger(language=None).fit(TEXTS, named(LABELS))
    plain = Tagger(language=None).fit(TEXTS, named(LABELS), label_texts=None)
    assert tagger.classifier_.label_texts_.is_used
    assert plain.classifier_.label_texts_ is None
    texts, labels = made_up(600, seed=2)
    expected = tagger.label_names_.matrix(named(labels))
    with_names, without = (
        float(ndcg_at_k(expected, one.predict_topk(texts), 5)) for one in (tagger, plain)
    )
    assert with_names > without


@pytest.mark.parametrize("name", ["हिन्दी", "माँ", "தமிழ்", "犬", "น้ำ", "cafe\u0301"])
def test_names_in_any_script_have_the_features_of_the_same_words_in_texts(name):
    vectorizer = Vectorizer().fit([name, "other"])
    assert vectorizer.words(text_with_name(name, "")) == vectorizer.words(name)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("re.split", ["re split", "split"]),
        ("uses::printing", ["uses printing", "printing"]),
        ("Food/RyeBread", ["Food Rye Bread", "Rye Bread"]),
        ("split", ["split"]),
        ("v1.2", ["text"]),
        ("lib3.0", ["lib 3 0"]),
        ("http://example.org/onto/Rye.Bread", ["Rye Bread"]),
        ("St. Louis", ["St Louis"]),
        ("...", ["text"]),
    ],
)
def test_the_last_part_of_a_path_is_a_name_as_well(name, names):
    assert names_in(name, "text") == names


@pytest.mark.parametrize("label_texts", ["auto", "names"])
def test_names_are_not_tried_on_classifiers_that_cannot_use_them(label_texts):
    tagger = Tagger(um.NearestCentroid(), language=None)
    given = tagger.fit(TEXTS, named(LABELS), label_texts=label_texts).predict_topk(TEST)
    same(given, tagger.fit(TEXTS, named(LABELS), label_texts=None).predict_topk(TEST))


def test_a_given_weight_counts_for_names_on_request():
    few = named(LABELS)[:200]
    tree = LabelTree(max_leaf=6, branching=4).set_params(recipe__label_text_weight=0.5)
    for label_texts, weight in ("auto", None), ("names", 0.5):
        tagger = Tagger(tree, language=None).fit(TEXTS[:200], few, label_texts=label_texts)
        texts = tagger.classifier_.label_texts_
        assert (texts if texts is None else texts.weight) == weight


# --- a vocabulary


def test_words_of_uris_are_no_names(tagger):
    words = {"http", "example", "org", "onto"}
    named = set(
        tagger.vectorizer_.named_features("http example org onto " + names_of(1)[0]).values()
    )
    assert not words & named
    assert "alpha1x" in named


def test_labels_without_texts_are_found_by_name(tagger):
    for label in range(N - N_UNSEEN, N):
        for name in names_of(label):
            assert tagger.predict(name, k=1)[0][0] == uri(label)
            assert uri(label) in dict(tagger.predict(f"{name} common1 common2", k=5))
    unseen = {uri(label) for label in range(N - N_UNSEEN, N)}
    for tags in tagger.predict(TEST, k=5):  # that share no word with them
        assert not unseen & dict(tags).keys()
    for tags in tagger.predict(TEST, k=20, threshold=0.02):
        assert not unseen & dict(tags).keys()


@pytest.mark.parametrize("written", ["<{}>", "c{}", "name"])
def test_labels_are_matched_as_they_are_written(written, tagger):
    def write(label):
        if written == "name":
            return names_of(int(label.split("#c")[1]))[0].upper()
        return written.format(label if "<" in written else label.split("#c")[1])

    labels = [[write(label) for label in own] for own in LABELS]
    other = Tagger(language=None).fit(TEXTS, labels, vocabulary=VOCABULARY)
    assert {write(uri(label)) for label in range(N - N_UNSEEN)} <= set(other.vocabulary_)
    assert len(other.labels) == N
    best = other.predict(TEST[0], k=1, broader="add")
    assert len(best) >= 2
    assert write(uri(0)) in dict(best)


def ancestors_of(label):
    number = int(label.split("#c")[1])
    return [] if number == 0 else [uri(0)] if number % 5 == 0 else [uri(number // 5 * 5), uri(0)]


def test_broader_labels_are_added_as_a_literal_version_adds_them(tagger):
    for tags, more in zip(
        tagger.predict(TEST, k=6), tagger.predict(TEST, k=6, broader="add"), strict=True
    ):
        expected = dict(tags)
        for label, probability in tags:
            for above in ancestors_of(label):
                expected[above] = max(probability, expected.get(above, 0))
        assert dict(more) == expected
        assert [p for _, p in more] == sorted(expected.values(), reverse=True)


def test_broader_labels_are_dropped_as_a_literal_version_drops_them(tagger):
    n_dropped = 0
    for row, fewer in zip(
        tagger.predict_topk(TEST, 12).names(tagger.label_names_.names),
        tagger.predict(TEST, k=12, broader="drop"),
        strict=True,
    ):
        kept = [
            label
            for label, score in row
            if not any(label in ancestors_of(other) and p >= score / 2 for other, p in row)
        ]
        n_dropped += len(row) - len(kept)
        assert [label for label, _ in fewer] == kept
    assert n_dropped > 20


def test_a_saved_tagger_keeps_its_vocabulary_and_trials(tmp_path):
    tagger = Tagger(language="en").fit(TEXTS, LABELS, vocabulary=VOCABULARY)
    tagger.save(tmp_path / "m")
    again = um.load(tmp_path / "m")
    assert tagger.trials_
    assert again.trials_ == tagger.trials_
    assert list(again.vocabulary_.values()) == list(tagger.vocabulary_.values())
    same(again.predict_topk(TEST, 9), tagger.predict_topk(TEST, 9))
    for broader in ("drop", "add"):
        assert again.predict(TEST, broader=broader) == tagger.predict(TEST, broader=broader)


def test_labels_and_texts_after_fit():
    tagger = Tagger(language=None).fit(TEXTS, LABELS, vocabulary=VOCABULARY)
    unseen = uri(N - 1)
    more = [f"zebra savanna stripes common{i}" for i in range(12)]
    tagger.partial_fit(more, [[unseen]] * 12)
    assert tagger.predict("zebra savanna", k=1)[0][0] == unseen
    tagger.add_labels(["quokkas"], examples=[["quokka wombat", "quokka common3"]])
    assert tagger.predict("a quokka", k=1)[0][0] == "quokkas"
    assert dict(tagger.predict("a quokka", k=1, broader="add")).keys() == {"quokkas"}
    assert uri(0) in dict(tagger.predict("zebra savanna", k=1, broader="add"))
    tagger.remove_labels([unseen])
    assert unseen not in dict(tagger.predict("zebra savanna " + names_of(N - 1)[0], k=20))


def test_a_removed_label_does_not_come_back_as_a_broader_one():
    concepts = [Concept("root"), Concept("animal", broader=("root",))]
    concepts += [Concept("dog", broader=("animal",)), Concept("cat", broader=("animal",))]
    texts, labels = ["it barks", "it purrs", "a beast"], [["dog"], ["cat"], ["animal"]]
    tagger = Tagger().fit(texts * 5, labels * 5, vocabulary=LabelVocabulary.of(concepts))

    def broader():
        return {label for label, _ in tagger.predict("it barks", k=1, broader="add")}

    assert broader() == {"dog", "animal", "root"}
    tagger.remove_labels(["animal"])
    assert broader() == {"dog", "root"}
    assert tagger.evaluate(texts[:2], labels[:2]).metrics["hierarchical recall@3"] == 1
    assert tagger.evaluate(texts, labels).metrics["recall@3"] < 1
    with pytest.warns(RebuildDueWarning):
        tagger.add_labels(["animal"], examples=[["a beast", "beasts"]])
    assert broader() == {"dog", "animal", "root"}
    assert tagger.evaluate(texts, labels).metrics["hierarchical recall@3"] == 1


def test_evaluate_and_explain(tagger):
    report = tagger.evaluate(TEST, RELEVANT)
    assert f"{len(TEST)}" in str(report)
    for name in names_of(7):
        why = tagger.explain(f"{name} common1 common2", uri(7))
        assert why.text_covered == pytest.approx(1)
        assert "the text names it" in str(why)
    why = tagger.explain("alpha7x common1 common2", uri(7))
    assert 0 < why.text_covered < 1
    assert "the text names it" not in str(why)


def test_probabilities_are_of_answers_without_the_validation_split():
    """With labels drawn at random, no answer may be thought likely."""
    random = np.random.default_rng(0)
    labels = [[uri(label)] for label in random.integers(N - N_UNSEEN, size=len(TEXTS))]
    tagger = Tagger(language=None).fit(TEXTS, labels, vocabulary=VOCABULARY)
    assert validation_split(tagger.replay_.X, tagger.replay_.Y, 0) is not None
    best = [tags[0][1] for tags in tagger.predict(TEST, k=1)]
    assert np.mean(best) < 0.2


def test_a_vocabulary_is_a_hierarchy_for_any_classifier():
    concepts = [um.data.Concept("food"), um.data.Concept("bread", broader=("food",))]
    texts, labels = ["flat bread", "rye loaf", "a spoon"] * 4, [["bread"], ["bread"], []] * 4
    tagger = Tagger(um.NearestCentroid()).fit(
        texts, labels, vocabulary=um.data.LabelVocabulary.of(concepts)
    )
    found = tagger.predict("rye bread", k=1, broader="add")
    assert [name for name, _ in found] == ["bread", "food"]
