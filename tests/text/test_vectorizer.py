"""The features: the same numbers as scikit-learn's and as a literal version, for any threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from umpteen import storage
from umpteen.centroid import NearestCentroid
from umpteen.errors import FeaturesError, NotFittedError, ParameterError, TextsError
from umpteen.text import Vectorizer

from . import literal
from .test_words import texts as any_text

few_words = st.lists(st.sampled_from(["a", "ab", "b", "B.", "北", "_x", "é", "c d"]), max_size=12)
corpora = st.lists(any_text | few_words.map(" ".join), min_size=1, max_size=8)


def corpus(n_texts=3000, seed=0):
    """Zipf-like words, some of them beyond ASCII, texts of very different lengths, one is long."""
    random = np.random.default_rng(seed)
    lengths = np.append(random.integers(0, 60, n_texts), 150_000)
    words = np.char.add(
        random.choice(["w", "Über", "ΛΟΓΟΣ", "слово"], 2000), np.arange(2000).astype(str)
    )
    return [" ".join(words[random.zipf(1.3, length) % len(words)]) for length in lengths]


def assert_same(ours, theirs):
    assert isinstance(ours, csr_matrix)
    assert ours.dtype == np.float32
    assert ours.indices.dtype == ours.indptr.dtype == np.int32
    fresh = csr_matrix((ours.data, ours.indices, ours.indptr), shape=ours.shape)
    fresh.check_format()
    assert fresh.has_canonical_format
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.toarray(), theirs, rtol=1e-5, atol=1e-7)


def equal_bits(a, b):
    return (
        a.shape == b.shape
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


@pytest.mark.parametrize("ngrams", [1, 2, 3])
@pytest.mark.parametrize("sublinear", [True, False])
def test_numbers_and_columns_are_those_of_scikit_learn(ngrams, sublinear):
    train, test = corpus(300), corpus(200, seed=1)
    theirs = TfidfVectorizer(
        ngram_range=(1, ngrams), min_df=3, sublinear_tf=sublinear, token_pattern=r"\w+"
    )
    ours = Vectorizer(ngrams=ngrams, min_df=3, ngram_weight=1, sublinear=sublinear)
    assert_same(ours.fit_transform(train), theirs.fit_transform(train).toarray())
    assert_same(ours.transform(test), theirs.transform(test).toarray())
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-6)


@given(
    corpora, st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.sampled_from([None, 1, 5]),
    st.sampled_from([0.5, 1, 2]), st.booleans(),
)  # fmt: skip
def test_numbers_are_those_of_the_literal_version(
    texts, ngrams, least, least_ngram, most, ngram_weight, sublinear
):
    stop_words = ["b"]
    names = literal.vocabulary(texts, ngrams, least, least_ngram, most, stop_words)
    vectorizer = Vectorizer(
        ngrams=ngrams, ngram_weight=ngram_weight, min_df=least, min_df_ngrams=least_ngram,
        max_features=most, sublinear=sublinear, stop_words=stop_words,
    )  # fmt: skip
    if not names:
        with pytest.raises(FeaturesError, match="min_df"):
            vectorizer.fit(texts)
        return
    columns = {tuple(name.split(" ")): i for i, name in enumerate(names)}
    expected = literal.tfidf(
        texts, columns.get, len(names), ngrams, ngram_weight, sublinear, stop_words
    )
    assert_same(vectorizer.fit_transform(texts), expected)
    assert vectorizer.get_feature_names_out().tolist() == names
    for text, row in zip(texts, expected, strict=True):
        assert vectorizer.named_features(text) == {i: names[i] for i in np.flatnonzero(row)}


@given(corpora, st.integers(1, 3), st.sampled_from([2, 7, 2**14]))
def test_hashed_columns_are_those_of_the_literal_version(texts, ngrams, n_columns):
    vectorizer = Vectorizer(ngrams=ngrams, hashing=n_columns)

    def column_of(ngram):
        return literal.hashed_column(ngram, n_columns)

    expected = literal.tfidf(texts, column_of, n_columns, ngrams, 0.5)
    assert_same(vectorizer.fit_transform(texts), expected)
    for text, row in zip(texts, expected, strict=True):
        named = vectorizer.named_features(text)
        assert list(named) == np.flatnonzero(row).tolist()
        for column, names in named.items():
            for name in names.split(" | "):
                assert column_of(name.split(" ")) == column


def test_hashing_knows_words_that_come_later():
    vectorizer = Vectorizer(hashing=2**16).fit(["old words"] * 3)
    assert sorted(vectorizer.named_features("new words").values()) == ["new", "new words", "words"]
    row = vectorizer.transform(["new words"])
    new = [
        column for column, name in vectorizer.named_features("new words").items() if "new" in name
    ]
    assert row[0, new[0]] > 1.5 * row.data.min()  # a word that was never seen is the rarest


def test_words_that_are_learned_later_leave_the_others_as_they_are(tmp_path):
    texts = corpus(200)
    vectorizer = Vectorizer(spare=3).fit(texts)
    before = vectorizer.transform(texts)
    word = vectorizer.words(texts[0])[0]
    mixed = [f"quokka {word} wombat {word}", "quokka", "numbat bilby"]
    known_before = vectorizer.transform(mixed)
    vectorizer.learn_words(mixed)
    assert equal_bits(vectorizer.transform(texts), before)
    storage.save(vectorizer, tmp_path / "model")
    for one in (vectorizer, storage.load(tmp_path / "model")):
        known = one.transform(mixed)
        assert equal_bits(known[:, : one.n_first_], known_before[:, : one.n_first_])
        names = one.get_feature_names_out()
        assert names[one.n_first_ :].tolist() == ["quokka", "wombat", "numbat"]  # no more room
        assert [len(row.indices) for row in known] == [3, 1, 1]
        np.testing.assert_allclose(np.sqrt(known[1:].power(2).sum(axis=1)), 1, rtol=1e-6)
    assert vectorizer.learn_words(["thylacine"]).transform(["thylacine"]).nnz == 0


@pytest.mark.parametrize(
    "parameters", [{}, {"max_features": 500}, {"hashing": 2**14}, {"ngrams": 3}]
)
def test_any_number_of_threads_gives_the_same_bits(parameters):
    texts = corpus(20_000)
    one = Vectorizer(n_jobs=1, **parameters).fit(texts)
    many = Vectorizer(n_jobs=4, **parameters).fit(texts)
    assert np.array_equal(one.idf_, many.idf_)
    assert equal_bits(one.transform(texts), many.transform(texts))
    alone = Vectorizer(n_jobs=1, **parameters).fit(texts).transform(texts[7:8])
    assert equal_bits(alone, one.transform(texts)[7:8])


@pytest.mark.parametrize("parameters", [{}, {"hashing": 2**18, "stop_words": ["w1"]}])
def test_a_saved_vectorizer_gives_the_same_bits(parameters, tmp_path):
    texts = corpus(20_000)
    vectorizer = Vectorizer(**parameters).fit(texts)
    storage.save(vectorizer, tmp_path / "model")
    loaded = storage.load(tmp_path / "model")
    large = loaded.vocabulary_.table[1] if loaded.vocabulary_ else loaded.idf_
    assert isinstance(large.base, np.memmap)
    assert equal_bits(loaded.transform(texts), vectorizer.transform(texts))
    assert loaded.named_features(texts[5]) == vectorizer.named_features(texts[5])
    assert loaded.get_params() == vectorizer.get_params()


def test_every_word_is_kept_and_every_pair_that_occurs_in_two_texts():
    assert Vectorizer().fit(["a b", "b c"]).n_features_ == 3
    assert Vectorizer(min_df=2).fit(["a b", "b c"]).n_features_ == 1
    assert Vectorizer(min_df_ngrams=1).fit(["a b", "b c"]).n_features_ == 5
    assert Vectorizer().fit(["a b", "b c"] * 2).n_features_ == 5


def test_a_pair_may_be_kept_without_its_words():
    vectorizer = Vectorizer(max_features=2).fit(["y z", "y z", "y"])
    assert vectorizer.get_feature_names_out().tolist() == ["y", "y z"]


def test_texts_without_known_words_are_empty_rows():
    X = Vectorizer().fit(["a b", "c"]).transform(["", "d e", "... \0", "c"])
    assert np.diff(X.indptr).tolist() == [0, 0, 0, 1]
    assert Vectorizer().fit(["a b"]).transform([]).shape == (0, 2)


@pytest.mark.parametrize("container", [tuple, np.array, lambda x: np.array(x, object), iter])
def test_texts_come_in_any_container(container):
    texts = ["a b", "b c", "b"]
    expected = Vectorizer().fit(texts).transform(texts)
    assert equal_bits(Vectorizer().fit_transform(container(texts)), expected)


def test_it_is_a_transformer_of_scikit_learn():
    texts, labels = ["red apple", "green pear", "red cherry", "pear tree"], [0, 1, 0, 1]
    model = clone(make_pipeline(Vectorizer(ngrams=1), NearestCentroid()))
    model.set_params(vectorizer__ngrams=2).fit(texts, labels)
    assert model.predict(["a red thing", "pears or a pear"]).tolist() == [0, 1]
    assert model[0].get_params()["ngrams"] == 2


BAD_TEXTS = {
    "wrap it": "a single text",
    "wrap": b"a single text",
    r"texts\[1\] is b'bytes'.*decode": ["a", b"bytes"],
    r"texts\[2\] is None": ["a", "b", None],
    r"texts\[1\] is nan, a float": ["a", float("nan")],
    r"texts\[0\] is \['tokens'\]": [["tokens"]],
    "a int": 3,
}


@pytest.mark.parametrize("message", BAD_TEXTS)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_what_is_not_a_list_of_texts_is_named(message, method):
    with pytest.raises(TextsError, match=message):
        getattr(Vectorizer().fit(["a"]), method)(BAD_TEXTS[message])


@pytest.mark.parametrize("method", ["words", "named_features"])
def test_what_is_not_one_text_is_named(method):
    with pytest.raises(TextsError, match="expected a str"):
        getattr(Vectorizer().fit(["a"]), method)(["a"])


@pytest.mark.parametrize("texts", [[], [""], ["..."], ["a", "b"]])
def test_nothing_to_learn_is_an_error(texts):
    with pytest.raises(FeaturesError, match=r"no text|no word"):
        Vectorizer(min_df=2).fit(texts)


BAD_PARAMETERS = [
    {"ngrams": 0}, {"ngrams": 1.5}, {"min_df": 0}, {"min_df_ngrams": 0}, {"min_df": 0.5},
    {"max_features": 0}, {"hashing": 1}, {"hashing": 2**31}, {"sublinear": "yes"},
    {"ngram_weight": 0}, {"n_jobs": 0},
    {"stop_words": "english"}, {"stop_words": {"a"}}, {"hashing": 8, "max_features": 4},
    {"hashing": 8, "min_df": 2},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        Vectorizer(**parameters).fit(["a b", "a b"])


def test_what_needs_a_fit_says_so():
    for question in ("transform", "named_features", "get_feature_names_out"):
        with pytest.raises(NotFittedError, match="fit"):
            getattr(Vectorizer(), question)(["a"])


def test_hashed_columns_have_no_names():
    with pytest.raises(FeaturesError, match="named_features"):
        Vectorizer(hashing=8).fit(["a"]).get_feature_names_out()


def test_a_failed_fit_leaves_the_earlier_one():
    vectorizer = Vectorizer().fit(["a b"])
    with pytest.raises(FeaturesError):
        vectorizer.fit([""])
    assert vectorizer.transform(["a"]).nnz == 1
