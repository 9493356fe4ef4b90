# ruff: noqa: RUF001 letters of other scripts look like Latin ones
"""Words that share a stem share a column, in every language, for any texts and threads."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import vstack
from sklearn.feature_extraction.text import TfidfVectorizer

from umpteen import storage
from umpteen.errors import FeaturesError, ParameterError
from umpteen.text import Vectorizer, morphology
from umpteen.text.languages import (
    _LANGUAGES,
    CODES,
    UNSPACED,
    check_language,
    languages_of,
    main_languages,
    stemmer_name,
    unspaced_language,
)
from umpteen.text.morphology import FORMS, Morphology
from umpteen.text.names import words_of_name

from . import literal
from .test_vectorizer import assert_same, corpus, equal_bits
from .test_words import texts as any_text

each_form = pytest.mark.parametrize("forms", FORMS)

WORDS = {
    "en": "connect connected connection CONNECTIONS fly flies flying the of is don't x_1 don",
    "de": "Haus Häuser häusern Hauses gehen geht ging der und ist Straße Strasse STRASSE",
    "fi": "kirja kirjat kirjassa kirjoista talo talossa ja on ei että hiiri hiiren",
    "el": "λόγος λόγου ΛΌΓΟΣ ΛΟΓΟΣ και το της",
    "tr": "İstanbul istanbul'da ISPARTA ısparta kitaplar kitap ve bir",
    "ru": "книга книги книгой слово слова и в не",
    "fr": "élève élèves e\u0301le\u0300ve Élèves école les des",
    "ar": "كتاب الكتاب كتابهم في من",
    "hi": "लड़का लड़के लड़कों में है",
}
OTHERS = ["北", "京", "မြို့", "T\u0308x", "ẗx", "a", "aa", "ab", "abab", "", "_", "12", "x" * 45]
real_words = {
    code: st.lists(st.sampled_from([*words.split(), *OTHERS]), max_size=10).map(" ".join)
    for code, words in WORDS.items()
}


@st.composite
def cases(draw):
    """A language, texts to learn from, and new ones."""
    code = draw(st.sampled_from(sorted(WORDS)))
    texts = st.lists(real_words[code] | any_text | st.text("abis ", max_size=20), max_size=6)
    return code, ["first", *draw(texts)], draw(texts)


@each_form
@given(
    case=cases(), ngrams=st.integers(1, 3), least=st.integers(1, 2), least_ngram=st.integers(1, 2),
    most=st.sampled_from([None, 5]), stop_words=st.sampled_from([(), ("connect", "ab", "ja")]),
)  # fmt: skip
@example(("en", ["T\u0308x ẗx"], ["T\u0308x"]), 1, 1, 1, None, ())
@example(("en", ["မြို့ မြို့ကို"], ["မြို့တွင်"]), 2, 1, 1, None, ())
@example(("de", ["北 京 北", ""], ["北京", ""]), 2, 1, 1, None, ())
def test_numbers_are_those_of_the_literal_version(
    forms, case, ngrams, least, least_ngram, most, stop_words
):
    code, texts, new_texts = case
    meant = literal.Forms(texts, [code], forms, stop_words)
    names = literal.vocabulary(texts, ngrams, least, least_ngram, most, forms=meant)
    vectorizer = Vectorizer(
        language=code, forms=forms, ngrams=ngrams, min_df=least, min_df_ngrams=least_ngram,
        max_features=most, stop_words=list(stop_words), n_jobs=1,
    )  # fmt: skip
    if not names:
        with pytest.raises(FeaturesError, match="min_df"):
            vectorizer.fit(texts)
        return
    column_of = {tuple(name.split(" ")): i for i, name in enumerate(names)}.get
    vectorizer.fit(texts)
    assert vectorizer.get_feature_names_out().tolist() == names
    for asked in (texts, new_texts, *[[text] for text in new_texts]):
        expected = literal.tfidf(
            texts, column_of, len(names), ngrams, 0.5, forms=meant, new_texts=asked
        )
        assert_same(vectorizer.transform(asked), expected)
        for text, row in zip(asked, expected, strict=True):
            assert list(vectorizer.named_features(text)) == np.flatnonzero(row).tolist()


SENTENCES = {
    "ca": "És una de les ciutats més grans amb els carrers que són com a rius",
    "cs": "Je to jedno z míst, které se na mapě jako takové při hledání nenajde",
    "da": "Det er ikke en af de bøger, der har været til salg ved havnen",
    "de": "Die Häuser sind nicht so alt wie das Rathaus und auch nicht aus Stein",
    "en": "The houses are not as old as the town hall, and they were built of wood",
    "es": "Las casas no son tan viejas como el ayuntamiento, pero se ven por la calle",
    "fi": "Mistä löytyy tietoa siitä, että talot ovat vanhoja ja mikä niiden ikä on",
    "fr": "Les maisons ne sont pas aussi vieilles que la mairie et il est dans une rue",
    "hu": "A házak nem olyan régiek, mint a városháza, és ez is egy jó hír, hogy van",
    "it": "Le case non sono vecchie come il municipio della città e gli altri nel centro",
    "nl": "De huizen zijn niet zo oud als het stadhuis en ook niet van steen, maar op een heuvel",
    "pl": "Domy nie są tak stare jak ratusz, ale to jest dla mnie piękne i w dobrym stanie",
    "pt": "As casas não são tão velhas como a câmara e os muros da rua em que moro",
    "ru": "Эти дома не так стары, как ратуша, но это и не новые дома из кирпича",
    "sv": "Husen är inte så gamla som rådhuset och det är en av de finaste på ön",
    "tr": "Bu ev çok eski ama belediye kadar eski olan bir yapı için daha ne var",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_tells_its_language(code):
    assert languages_of([SENTENCES[code], SENTENCES[code].upper()]) == [code, code]


@pytest.mark.parametrize(
    "text",
    ["", "pytest", "the", "de la", "to a", "北京大学的学生在图书馆", "1 2 3", "Der", "\ud800 \0"],
)
def test_texts_that_do_not_tell_have_no_language(text):
    assert languages_of([text]) == [None]
    assert main_languages([text]) == []


@given(st.lists(any_text | st.sampled_from([*SENTENCES.values(), "de la", "to a", "in die"])))
def test_languages_are_those_of_the_literal_version(texts):
    assert languages_of(texts) == [literal.language_of(text) for text in texts]


def test_hardly_any_function_word_is_not_enough():
    assert languages_of(["the of " + "noun " * 23]) == ["en"]
    assert languages_of(["the of " + "noun " * 24]) == [None]


def test_the_languages_of_a_corpus_are_those_of_more_than_a_twentieth():
    english, german = SENTENCES["en"], SENTENCES["de"]
    assert main_languages([english] * 95 + [german] * 5) == ["en"]
    assert main_languages([english] * 94 + [german] * 6) == ["en", "de"]
    assert main_languages([german] * 3 + [english] * 2 + [""] * 15) == ["de", "en"]
    assert main_languages([english] * 10_001) == ["en"]
    assert main_languages([]) == []


@pytest.mark.parametrize("code", CODES)
def test_every_language_has_a_stemmer_that_runs_on_anything(code):
    check_language(code)
    texts = [_LANGUAGES[code][1], "ing" * 3333, "é" * 10_000, "북" * 10_000, "a 北 x_1 \u0301"]
    for forms in FORMS:
        vectorizer = Vectorizer(language=code, forms=forms).fit(texts)
        assert (vectorizer.transform(texts).getnnz(axis=1) > 0).all()
        assert vectorizer.transform(["ing" * 3333 + "s", "북" * 9_999]).shape[0] == 2
    assert stemmer_name(code) == _LANGUAGES[code][0]


PAIRS = [
    ("en", "connections", "connect"),
    ("de", "Häusern", "HÄUSER"),
    ("fi", "kirjoista", "kirjojen"),
    ("fr", "e\u0301le\u0300ves", "Élève"),  # accents in two characters and in one
    ("el", "ΛΌΓΟΣ", "λόγος"),
    ("el", "λόγου", "λόγος"),
    ("ru", "книгами", "книга"),
    ("tr", "kitaplar", "KITAP"),
    ("it", "gatti", "gatto"),
]


@pytest.mark.parametrize(("code", "one", "other"), PAIRS)
def test_forms_of_a_word_are_one_feature(code, one, other):
    vectorizer = Vectorizer(language=code).fit([one, "12"])
    assert vectorizer.transform([other]).indices.tolist() == [1]
    both = Vectorizer(language=code).fit([one, f"{other} 12"])
    assert both.n_features_ == 2


def test_capital_i_with_a_dot_is_one_word_in_any_text():
    vectorizer = Vectorizer(language="tr").fit(["İstanbul", "ISPARTA"])
    alone = vectorizer.transform(["İSTANBUL"])
    assert alone.nnz == 1
    assert equal_bits(vectorizer.transform(["ISPARTA", "İSTANBUL"])[1:], alone)


@pytest.mark.parametrize("languages", [["ta"], ["en", "ta"]])
def test_a_word_without_end_is_its_own_stem(languages):
    word = "\u0b95\u0bcd" * 250_000  # by Snowball, minutes
    made = Morphology("stems", languages).extended({word: "ta", f"{word}\u0b95": "ta"})
    assert len(made.stem_bases) == 2


def test_a_new_word_has_the_column_of_its_stem_and_a_new_stem_has_none():
    vectorizer = Vectorizer(language="en").fit(["connections", "flies"])
    assert vectorizer.get_feature_names_out().tolist() == ["connections", "flies"]
    X = vectorizer.transform(["connected connecting", "quokka", "the flying connect"])
    assert [row.indices.tolist() for row in X] == [[0], [], [0, 1]]


def test_features_are_named_by_the_words_of_the_text():
    vectorizer = Vectorizer(language="en").fit(["fly by", "flies by", "fly"])
    assert vectorizer.get_feature_names_out().tolist() == ["by", "fly", "fly by"]
    named = vectorizer.named_features("Flying by; flies")
    assert named == {0: "by", 1: "flying | flies", 2: "flying by"}
    vectorizer = Vectorizer(language="en", forms="both").fit(["fly", "flies"])
    assert vectorizer.named_features("flies flying") == {0: "flies", 2: "flies* | flying*"}
    vectorizer = Vectorizer(language="en", forms="characters").fit(["flies"])
    assert vectorizer.named_features("flier")[0] == "*_fli*"


def test_stop_words_are_words_and_not_stems():
    vectorizer = Vectorizer(language="en", stop_words=["flies", "by"]).fit(["fly by flies me"] * 2)
    assert vectorizer.get_feature_names_out().tolist() == ["fly", "fly me", "me"]
    assert vectorizer.transform(["flies", "flying"]).getnnz(axis=1).tolist() == [0, 1]


def test_new_words_of_a_known_stem_take_no_spare_column():
    texts = ["cats connect", "a dog"]
    vectorizer = Vectorizer(language="en", spare=3).fit(texts)
    before = vectorizer.transform(texts)
    assert vectorizer.learn_words(["connecting connections"]).n_features_used == 4
    vectorizer.learn_words(["a wombat", "wombats quokkas", "the quokkas"])
    names = vectorizer.get_feature_names_out().tolist()
    assert names == ["a", "cats", "connect", "dog", "wombat", "quokkas", "the"]
    X = vectorizer.transform(["wombat", "Wombats", "quokka", "connects", "numbat"])
    assert [row.indices.tolist() for row in X] == [[4], [4], [5], [2], []]
    assert equal_bits(vectorizer.transform(texts), before)


def test_new_words_beside_stems_and_sequences_take_a_column_each():
    for forms in ("both", "characters"):
        vectorizer = Vectorizer(language="en", forms=forms, spare=2).fit(["a connection"])
        used = vectorizer.n_features_used
        vectorizer.learn_words(["connected wombats wombat"])
        names = vectorizer.get_feature_names_out().tolist()
        assert names[used:] == ["connected", "wombats"]
        assert vectorizer.transform(["wombats"]).indices.tolist() == [used + 1]


def mixed_corpus():
    nouns = ["minister", "ministers", "Minister", "Ministern", "Ministers", "Haus", "Häuser"]
    english, german = SENTENCES["en"], SENTENCES["de"]
    return [
        f"{sentence} {noun} word{i} wort{i}s {i}"
        for i, noun in enumerate(nouns * 4)
        for sentence in (english, german, "")
    ]


@each_form
def test_each_text_of_a_mixed_corpus_has_its_language(forms):
    texts = mixed_corpus()
    languages = main_languages(texts)
    assert sorted(languages) == ["de", "en"]
    new_texts = [
        f"{SENTENCES[code]} {word}"
        for word in ("trees", "ministries", "Bäume", "words", "trees")
        for code in ("de", "en", "fr")
    ]
    meant = literal.Forms(texts, languages, forms)
    names = literal.vocabulary(texts, 2, 1, 2, forms=meant)
    column_of = {tuple(name.split(" ")): i for i, name in enumerate(names)}.get
    vectorizer = Vectorizer(language="auto", forms=forms).fit(texts)
    assert vectorizer.get_feature_names_out().tolist() == names
    for asked in (texts, new_texts, new_texts[::-1]):
        expected = literal.tfidf(texts, column_of, len(names), 2, 0.5, forms=meant, new_texts=asked)
        X = vectorizer.transform(asked)
        assert_same(X, expected)
        for i, text in enumerate(asked):
            assert equal_bits(vectorizer.transform([text]), X[i : i + 1])
            assert list(vectorizer.named_features(text)) == X[i].indices.tolist()


def test_a_new_word_in_texts_of_two_languages_has_two_stems():
    english, german = SENTENCES["en"], SENTENCES["de"]
    vectorizer = Vectorizer(language="auto").fit(
        [f"{english} general", f"{german} generalem"] + [english, german] * 5
    )
    asked = [f"{english} generale", f"{german} generale"]
    X = vectorizer.transform(asked)
    assert equal_bits(vectorizer.transform(asked[::-1])[::-1], X)
    assert equal_bits(vectorizer.transform(asked[1:]), X[1:])
    names = vectorizer.get_feature_names_out()
    assert "general" in names[X[0].indices]
    assert "generalem" in names[X[1].indices]


@pytest.mark.parametrize(("n_english", "n_german"), [(3, 2), (2, 3), (1, 3)])
def test_a_word_has_the_language_of_most_texts_that_have_it(n_english, n_german):
    texts = [f"{SENTENCES['en']} meld melding"] * n_english
    texts += [f"{SENTENCES['de']} meld melding"] * n_german + ["meld melding"] * 4
    texts += [SENTENCES["en" if n_german > n_english else "de"]] * 9  # the main language
    names = Vectorizer(language="auto", ngrams=1).fit(texts).get_feature_names_out()
    assert "meld" in names
    assert ("melding" in names) == (n_german > n_english)  # one stem in English, two in German


@pytest.mark.parametrize("texts", [["北京大学", "清华大学"], ["", "a"], ["pytest", "numpy"]])
def test_texts_without_a_language_have_plain_words(texts):
    plain, auto = Vectorizer().fit(texts), Vectorizer(language="auto").fit(texts)
    assert auto.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    assert equal_bits(auto.transform([*texts, ""]), plain.transform([*texts, ""]))
    assert auto.morphology_ is None


@pytest.mark.parametrize("language", ["auto", "en", "fi"])
def test_texts_without_words_are_an_error(language):
    for texts in ([], [""], ["", "..."]):
        with pytest.raises(FeaturesError, match=r"no text|no word"):
            Vectorizer(language=language).fit(texts)


@each_form
@pytest.mark.parametrize("language", ["en", "auto"])
def test_any_number_of_threads_and_a_saved_model_give_the_same_bits(forms, language, tmp_path):
    sentences = list(SENTENCES.values())
    texts = [f"{text} {sentences[i % 3 + 3]}" for i, text in enumerate(corpus(6000))]
    train, test = texts[:4000], texts[3000:]
    one = Vectorizer(language=language, forms=forms, n_jobs=1).fit(train)
    many = Vectorizer(language=language, forms=forms, n_jobs=4).fit(train)
    assert np.array_equal(one.idf_, many.idf_)
    X = one.transform(test)
    assert equal_bits(X, many.transform(test))
    for i in (0, 7, 2000):
        assert equal_bits(one.transform(test[i : i + 1]), X[i : i + 1])
    storage.save(one, tmp_path / "model")
    loaded = storage.load(tmp_path / "model")
    assert equal_bits(loaded.transform(test), X)
    assert loaded.named_features(test[5]) == one.named_features(test[5])
    assert loaded.get_params() == one.get_params()


@each_form
def test_a_saved_vectorizer_learns_words(forms, tmp_path):
    vectorizer = Vectorizer(language="en", forms=forms, spare=4).fit(["a connection", "the flies"])
    storage.save(vectorizer, tmp_path / "model")
    loaded = storage.load(tmp_path / "model")
    new = ["wombats connected", "wombat", "fly"]
    assert equal_bits(
        loaded.learn_words(new).transform(new), vectorizer.learn_words(new).transform(new)
    )
    names = vectorizer.get_feature_names_out().tolist()
    assert loaded.get_feature_names_out().tolist() == names


BAD = [
    ({"language": "xx"}, "language='xx' has no stemmer; expected one of ar, "),
    ({"language": "english"}, "language='english'"),
    ({"language": ""}, "language=''"),
    ({"language": 7}, "language"),
    ({"language": ["en", "de"]}, "language"),
    ({"language": "en", "forms": "lemmas"}, "forms"),
    ({"language": "en", "hashing": 2**10}, "hashing=1024 .* language"),
    ({"language": "auto", "hashing": 2**10}, "hashing=1024 .* language"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=str)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        Vectorizer(**parameters).fit(["a b", "a b"])


NAMES = {
    "sklearn.preprocessing.LabelBinarizer": "sklearn preprocessing Label Binarizer",
    "uses::HTMLParser2": "uses HTML Parser 2",
    "food-safety": "food safety",
    "x86_64": "x 86 64",
    "snake_case__name": "snake case name",
    "camelCase": "camel Case",
    "ÉcoleÉlève": "École Élève",
    "größeÄndern": "größe Ändern",
    "utf8": "utf 8",
    "2nd": "2 nd",
    "Already plain words": "Already plain words",
    "北京大学": "北京大学",
    "हिन्दी-भाषा": "हिन्दी भाषा",
    "தமிழ்_மொழி": "தமிழ் மொழி",
    "น้ำ.ตก2": "น้ำ ตก 2",
    "cafe\u0301-au-lait": "cafe\u0301 au lait",
    "cafe\u0301Bar": "cafe\u0301 Bar",
    "می\u200cشود": "می\u200cشود",
    "": "",
    "...": "",
    "C++": "C",
    "iPhone": "i Phone",
    "URL": "URL",
}


@pytest.mark.parametrize("name", NAMES)
def test_words_of_names(name):
    assert words_of_name(name) == NAMES[name]


@given(any_text)
def test_words_of_any_name_lose_only_what_is_between_words(name):
    letters = [character for character in name if character.isalnum()]
    kept = [character for character in words_of_name(name) if character.isalnum()]
    assert kept == letters


@pytest.mark.parametrize("language", ["en", "auto"])
def test_new_words_are_the_same_however_many_came_before(language, monkeypatch):
    """Their stems are remembered, at most so many."""
    texts = ["the cats are on the mat", "die Katzen sind auf der Matte und im Haus"] * 3
    new = [f"the {a}{b} is connected" for a in "bcd" for b in ("ings", "ing", "ed", "ion")]
    new += [f"die {a}ung und der {a}ungen ist" for a in "bcd"] + new[::-1]
    vectorizer = Vectorizer(language=language).fit([*texts, *new[::5]])
    expected = [vectorizer.transform([text]) for text in new]
    monkeypatch.setattr(morphology, "_MOST_KNOWN", 2)
    for _ in range(2):
        fresh = Vectorizer(language=language).fit([*texts, *new[::5]])
        for text, row in zip(new, expected, strict=True):
            assert equal_bits(fresh.transform([text]), row)
            assert len(fresh.morphology_._known_bases) <= 2
        assert equal_bits(fresh.transform(new), vstack(expected).tocsr())


# --- languages that do not separate words

SCRIPTS = {
    "zh": "的一是不了人我在有他这中大来上", "ja": "あいうえおかきくけこのはにをで",
    "th": "กขคงจฉชซดต", "lo": "ກຂຄງຈຊດຕຖທ", "km": "កខគឃងចឆជឈញ", "my": "ကခဂဃငစဆဇဈည",
}  # fmt: skip


def unspaced(language, n=60):
    random = np.random.default_rng(0)
    letters = list(SCRIPTS[language])
    return ["".join(random.choice(letters, random.integers(1, 12))) for _ in range(n)]


@pytest.mark.parametrize("language", UNSPACED)
def test_sequences_of_letters_are_those_of_scikit_learn(language):
    texts = unspaced(language)
    ours = Vectorizer(language=language, forms="characters", min_df_ngrams=1).fit(texts)
    theirs = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True).fit(texts)
    columns = [name.replace(" ", "") for name in ours.get_feature_names_out()]
    order = [theirs.vocabulary_[name] for name in columns]
    assert sorted(order) == list(range(len(theirs.vocabulary_)))
    expected = theirs.transform(texts)[:, order].toarray()
    np.testing.assert_allclose(ours.transform(texts).toarray(), expected, atol=1e-6)
    assert set(ours.named_features(texts[0])) == set(ours.transform(texts[:1]).indices)


@pytest.mark.parametrize("forms", ["stems", "both"])
def test_without_stems_words_stay_as_they_are(forms):
    texts = unspaced("zh")
    found = Vectorizer(language="zh", forms=forms).fit_transform(texts)
    assert equal_bits(found, Vectorizer().fit_transform(texts))


def test_such_a_vectorizer_is_saved(tmp_path):
    texts = unspaced("th")
    ours = Vectorizer(language="th", forms="characters").fit(texts)
    storage.save(ours, tmp_path / "m")
    assert equal_bits(storage.load(tmp_path / "m").transform(texts), ours.transform(texts))


@pytest.mark.parametrize("language", UNSPACED)
def test_the_script_tells_the_language(language):
    assert unspaced_language(unspaced(language)) == language
    assert unspaced_language([f"{text} ok" for text in unspaced(language)]) == language


def test_a_few_words_in_such_a_script_do_not_make_a_language():
    assert unspaced_language(["Beijing (北京) is large", "x" * 2_000 + "北" * 5_000]) is None
    assert unspaced_language([]) is None
    assert unspaced_language(["", "123 _ \ud800"]) is None
