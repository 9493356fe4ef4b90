"""Vectorizer: texts in, sparse features out."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen import parallel
from umpteen.errors import FeaturesError, NotFittedError, ParameterError
from umpteen.kernels.compiling import frozen
from umpteen.kernels.hashing import places
from umpteen.kernels.ngrams import count_texts
from umpteen.kernels.tfidf import weigh_texts
from umpteen.scratch import gathered_rows, rows_together
from umpteen.shards import Texts, TextShards, TextSource, check_text_source
from umpteen.storage import Shape, Size, Sizes, Within, storable
from umpteen.text.languages import UNSPACED, check_language, main_languages
from umpteen.text.morphology import (
    FORMS,
    PLAIN,
    Morphology,
    Votes,
    as_lines,
    elected,
    votes_of,
    words_of,
)
from umpteen.text.reading import (
    EMPTY,
    Table,
    blocks,
    blocks_of,
    hash_words,
    stop_table,
    table_faults,
    tasks_of,
)
from umpteen.text.vocabulary import (
    Counts,
    Spelled,
    Vocabulary,
    counts_together,
    gathered,
    spelled_together,
)
from umpteen.validation import N_JOBS, check_parameters, check_texts

_FEWEST_HASHED = 2  # one half for words, one for longer n-grams
_MOST_WORDS = 100  # in a feature of a loaded model
_LONGEST_SEQUENCE = 3  # letters, in languages that do not separate words


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    for old, new in (("run_weight", "ngram_weight"), ("min_df_runs", "min_df_ngrams")):
        if old in parameters:
            parameters[new] = parameters.pop(old)


def _from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    if state:
        state.setdefault("morphology_", None)


@storable(version=3, upgrades={1: _from_1, 2: _from_2})
class Vectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A vectorizer that turns texts of any language into TF-IDF features of words and bigrams.

    The weight of a feature is (1 + ln(occurrences in the text)) times its idf, ln((1 + texts) / (1
    + texts with it)) + 1; that of a bigram is half of this. Then each row is scaled to length 1. A
    text without any word of the vocabulary is an empty row. Columns are in alphabetical order. With
    `ngram_weight=1`, the result is that of scikit-learn's
    `TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=True)`.

    **Words.** Text is converted to Unicode's normal form NFKC and to lower case. A word is a
    sequence of letters, digits, `_` and their combining marks, in any script and of any length,
    even a single letter. In scripts that do not separate words (Chinese, Thai, Lao, Khmer, Burmese,
    and Japanese except Katakana), every letter is a word, and bigrams of letters do what words do
    elsewhere.

    Words are stored as hashes of 64 bits. Two of a million features share a hash, and so count as
    the same, in one of 37 million vocabularies.

    Parameters
    ----------
    ngrams : longest n-gram, in words; 2 has the bigram "least squares" as well as "least" and
        "squares".
    ngram_weight : weight of n-grams of several words relative to single words; 0.5 was best on
        the validation splits of four data sets, 1 is the usual weight in other libraries.
    min_df, min_df_ngrams : minimum number of texts with a word, and with a longer n-gram.
    max_features : maximum number of features; those in the most texts are kept.
    hashing : number of columns (such as 2**20) that replace the vocabulary. A feature's column is
        its hash modulo this number (words use one half of the columns, longer n-grams the other).
        Use it for endless vocabularies, and for words that come only after `fit`. Features in the
        same column cannot be distinguished.
    language : ISO 639-1 code such as "fi", whose stems are used (see `forms`); "auto" finds the
        language, or the languages of a mixed corpus, by the function words of the texts. Each
        distinct word is stemmed once, so it costs little. None, the default, uses plain words.
    forms : with a language, `"stems"` makes one feature of all words with the same stem, named by
        the shortest of them; `"both"` adds features of stems to those of words; `"characters"` adds
        sequences of four and five characters, for compounds and for any language. Languages that
        do not separate words ("zh", "ja", "th", "lo", "km", "my") have no stems; `"characters"`
        are then sequences of up to three letters, all with the weight of words.
    stop_words : list of words to ignore; bigrams skip them. "don't" ignores "don" and "t". The
        default is None: a list is for one language, while idf lowers the weight of frequent words
        in all languages.
    sublinear : whether a word's tenth occurrence counts less than its first; otherwise the weight
        is occurrences times idf.
    spare : number of free columns for words that `learn_words` adds later.
    n_jobs : number of threads; any number gives the same bits.

    >>> vectorizer = Vectorizer().fit(["Least squares", "The least squares", "The cost"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['cost', 'least', 'least squares', 'squares', 'the']
    >>> vectorizer.transform(["least cost, least squares"]).toarray().round(2)
    array([[0.54, 0.7 , 0.21, 0.41, 0.  ]], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ngrams": [Interval(Integral, 1, None, closed="left")],
        "ngram_weight": [Interval(Real, 0, None, closed="neither")],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "min_df_ngrams": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "hashing": [Interval(Integral, 2, 2**31 - 1, closed="both"), None],
        "language": [str, None],
        "forms": [StrOptions(set(FORMS))],
        "stop_words": [list, tuple, None],  # a set could not be saved
        "sublinear": ["boolean"],
        "spare": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": N_JOBS,
    }

    n_features_: Annotated[int, Size("features")]
    n_first_: int  # columns that `fit` filled
    idf_: Annotated[npt.NDArray[np.float32], Shape("features"), Within(1e-15, 1e15)]
    vocabulary_: Vocabulary | None  # None if hashing
    stop_table_: Table
    morphology_: Morphology | None

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: words that have no column."""
        n_features_used = (
            self.n_features_ if self.vocabulary_ is None else len(self.vocabulary_.ngrams)
        )
        if (
            not 0 < n_features_used <= self.n_features_
            or not 0 <= self.n_first_ <= self.n_features_
        ):
            yield f"has {n_features_used} features in {self.n_features_} columns"
        most = _MOST_WORDS if self.vocabulary_ is None else self.vocabulary_.ngrams.shape[1]
        if not 1 <= self._longest <= most:
            yield f"has ngrams={self._longest}, and no feature has more than {most} words"
        if self.vocabulary_ is None and self.n_features_ < _FEWEST_HASHED:
            yield f"has {self.n_features_} columns for hashes, expected {_FEWEST_HASHED} or more"
        yield from table_faults(self.stop_table_)

    def __init__(
        self,
        *,
        ngrams: int = 2,
        ngram_weight: float = 0.5,
        min_df: int = 1,
        min_df_ngrams: int = 2,
        max_features: int | None = None,
        hashing: int | None = None,
        language: str | None = None,
        forms: str = "stems",
        stop_words: Sequence[str] | None = None,
        sublinear: bool = True,
        spare: int = 0,
        n_jobs: int | None = -1,
    ) -> None:
        self.ngrams = ngrams
        self.ngram_weight = ngram_weight
        self.min_df = min_df
        self.min_df_ngrams = min_df_ngrams
        self.max_features = max_features
        self.hashing = hashing
        self.language = language
        self.forms = forms
        self.stop_words = stop_words
        self.sublinear = sublinear
        self.spare = spare
        self.n_jobs = n_jobs

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the vocabulary and the idf of each feature; `y` is ignored."""
        self._check_parameters()
        texts = check_text_source(texts)
        if len(texts) == 0:
            raise FeaturesError("there are no texts to learn words from: the list is empty")
        stops = stop_table(self.stop_words)
        morphology, names = self._learn_forms(texts, stops)
        shared = (morphology or PLAIN, stops, self._longest, self.hashing or 0)
        found = parallel.stream(_counted, tasks_of(texts), shared, n_jobs=self.n_jobs)
        counts, spelled = gathered(found, together=isinstance(texts, TextShards))
        vocabulary, n_texts = self._learn(counts, [*spelled, *names], len(texts))
        self.vocabulary_, self.stop_table_, self.morphology_ = vocabulary, stops, morphology
        idf = np.log((1 + len(texts)) / (1 + n_texts)) + 1
        ngram_weight = 1 if self._of_characters else self.ngram_weight
        weights = idf * np.where(self._is_multiword(len(idf)), ngram_weight, 1)
        of_new_words = np.full(self.spare, np.log(1 + len(texts)) + 1)
        self.idf_ = np.append(weights, of_new_words).astype(np.float32)
        self.n_first_, self.n_features_ = len(weights), len(self.idf_)
        return self

    def learn_words(self, texts: Any) -> Self:
        """Add words of these texts to the vocabulary while there are spare columns.

        Each new word gets a column and the idf of a word that no text had. The features of other
        words stay the same to the bit: new words do not count for the length of a row.

        >>> vectorizer = Vectorizer(spare=2).fit(["a cat", "a dog"])
        >>> vectorizer.learn_words(["a quokka"]).transform(["a quokka"]).indices
        array([0, 3], dtype=int32)
        """
        self._check_fitted()
        if self.vocabulary_ is None:
            return self  # hashing knows all words
        self.morphology_, new = self._new_words(check_texts(texts))
        kept = list(new)[: self.n_features_ - len(self.vocabulary_.ngrams)]
        self.vocabulary_ = self.vocabulary_.extended(
            [new[key] for key in kept], np.array(kept, np.uint64)
        )
        return self

    def transform(self, texts: Any) -> csr_matrix:
        """Return a row of features for each text: float32, of length 1, columns in order."""
        self._check_fitted()
        texts = check_text_source(texts)
        weights = (self._longest, *self._table(), self._columns_of_words(), self.idf_,
                   self.n_first_, self.sublinear)  # fmt: skip
        shared = (self._reader, self.stop_table_, weights)
        rows = parallel.stream(_weighed, tasks_of(texts), shared, n_jobs=self.n_jobs)
        with closing(rows):
            return gathered_rows(rows, self.n_features_)

    @property
    def n_features_used(self) -> int:
        """The number of features, without spare columns."""
        self._check_fitted()
        return self.n_features_ if self.vocabulary_ is None else len(self.vocabulary_.ngrams)

    def fit_transform(self, texts: Any, y: Any = None) -> csr_matrix:
        """Learn from texts, then return their features."""
        texts = check_text_source(texts)
        return self.fit(texts).transform(texts)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the n-gram of each column, "" if it is spare; hashed columns have none."""
        self._check_fitted()
        if self.vocabulary_ is None:
            raise FeaturesError(
                f"with hashing={self.hashing}, columns are hashes and have no names; "
                "named_features(text) returns the columns of a text with their words"
            )
        names = self.vocabulary_.names()
        return np.array(names + [""] * (self.n_features_ - len(names)), object)

    def words(self, text: str) -> list[str]:
        """Return the words of a text after normalisation, without stop words.

        >>> Vectorizer(stop_words=["the"]).words("The naïve Bayes-classifier: ２０２６, 北京")
        ['naïve', 'bayes', 'classifier', '2026', '北', '京']
        """
        return PLAIN.named_ngrams(text, 1, stop_table(self.stop_words))[0]

    def named_features(self, text: str) -> dict[int, str]:
        """Return the columns of a text and their n-grams, joined by " | " if there are several.

        >>> Vectorizer(hashing=2**20).fit(["a"]).named_features("Least squares")
        {220259: 'squares', 374776: 'least', 677892: 'least squares'}
        """
        self._check_fitted()
        names, keys, n_words = self._reader.named_ngrams(text, self._longest, self.stop_table_)
        columns = places(keys, *self._table())
        if self.vocabulary_ is None:
            n_first = self.n_features_ // 2
            columns = np.append(
                keys[:n_words] % n_first, n_first + keys[n_words:] % (self.n_features_ - n_first)
            )
        named: dict[int, dict[str, None]] = {}  # a dict keeps each name once, in order
        for column, name in zip(columns.tolist(), names, strict=True):
            named.setdefault(column, {})[name] = None
        return {column: " | ".join(named[column]) for column in sorted(named) if column >= 0}

    def _learn_forms(
        self, texts: Texts, stop_words: Table
    ) -> tuple[Morphology | None, list[Spelled]]:
        """What words stand for, if a language is given or found, and names of all features."""
        if self.language is None or self.language in UNSPACED:
            return None, []
        languages = main_languages(texts) if self.language == "auto" else [self.language]
        if not languages:
            return None, []
        if isinstance(texts, TextShards):
            shared = (languages, stop_words)
            votes = parallel.map(_voted, texts.sources, shared, n_jobs=self.n_jobs)
            words = elected(votes, languages)
        else:
            words = words_of(blocks(texts), languages, stop_words)
        morphology = Morphology(self.forms, languages).extended(words)
        return morphology, [as_lines(morphology.names(list(words)))]

    @property
    def _of_characters(self) -> bool:
        """Whether features are sequences of letters that are words themselves."""
        return self.language in UNSPACED and self.forms == "characters"

    @property
    def _longest(self) -> int:
        return max(self.ngrams, _LONGEST_SEQUENCE) if self._of_characters else self.ngrams

    @property
    def _reader(self) -> Morphology:
        """What words stand for."""
        return PLAIN if self.morphology_ is None else self.morphology_

    def _columns_of_words(self) -> npt.NDArray[np.int32]:
        """The columns of learned words, so that transform looks each up in one table, not two."""
        made_of = self._reader, self.vocabulary_
        last = self.__dict__.get("_word_columns")
        if last is None or last[0] is not made_of[0] or last[1] is not made_of[1]:
            last = self._word_columns = (*made_of, places(self._reader.bases, *self._table()))
        return last[2]  # type: ignore[no-any-return]

    def _new_words(self, texts: list[str]) -> tuple[Morphology | None, dict[int, str]]:
        """What words stand for, those of these texts included, and those without a column."""
        morphology = self.morphology_
        languages = words_of(blocks(texts), self._reader.languages, self.stop_table_)
        words = list(languages)
        keys = hash_words(words)
        named = dict(zip(keys.tolist(), words, strict=True))
        if morphology is not None:
            is_new = places(keys, *morphology.words) < 0
            new = [word for word, new in zip(words, is_new.tolist(), strict=True) if new]
            morphology = morphology.extended({word: languages[word] for word in new})
            keys = morphology.bases[places(keys, *morphology.words)]
        unknown = np.flatnonzero(places(keys, *self._table()) < 0).tolist()
        return morphology, {int(keys[i]): named.get(int(keys[i]), words[i]) for i in unknown}

    def _learn(
        self, counts: list[Counts], spelled: list[Spelled], n_texts: int
    ) -> tuple[Vocabulary | None, npt.NDArray[np.int32]]:
        """The vocabulary, if there is one, and in how many texts each feature occurs."""
        if self.hashing is not None:
            totals = np.zeros(self.hashing, np.int32)
            for (columns, found, _, _), _ in counts:
                totals[columns] += found
            return None, totals
        least = self.min_df, max(self.min_df, self.min_df_ngrams)
        vocabulary, totals = Vocabulary.learn(
            counts, spelled, self._longest, least, self.max_features, self.n_jobs
        )
        if len(totals) == 0:
            raise FeaturesError(
                f"no word occurs in {self.min_df:,} or more of {n_texts:,} texts: are they empty? "
                "Otherwise lower min_df"
            )
        return vocabulary, totals

    def _is_multiword(self, n_features: int) -> npt.NDArray[np.bool_]:
        """Which columns are n-grams of several words."""
        if self.vocabulary_ is None:
            return np.arange(n_features) >= n_features // 2
        return self.vocabulary_.is_multiword

    def _table(self) -> Table:
        """Where hashes are found in the vocabulary."""
        return EMPTY if self.vocabulary_ is None else self.vocabulary_.table

    def _check_parameters(self) -> None:
        check_parameters(self)
        others: dict[str, Any] = {"max_features": None, "min_df": 1, "spare": 0}
        given = [name for name, usual in others.items() if getattr(self, name) != usual]
        check_language(self.language)
        if self.hashing is not None and self.language is not None:
            given.append("language")
        if self.hashing is not None and given:
            raise ParameterError(
                f"hashing={self.hashing} has no vocabulary, so it cannot be combined with "
                f"{' and '.join(given)}: use one of them"
            )

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                "this Vectorizer is not fitted yet: call fit(texts) first, or umpteen.load a "
                "saved one"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _counted(
    task: Any, reader: Morphology, stops: Table, longest: int, n_columns: int
) -> tuple[Counts, Spelled]:
    counts, spelled = [], []
    for block in blocks_of(task):
        words, names = reader.read(block, stops, spell=n_columns == 0)
        counts.append(count_texts(*frozen(words), longest, n_columns))
        spelled.append(names)
    return counts_together(counts), spelled_together(spelled)


def _voted(source: TextSource, languages: list[str], stops: Table) -> Votes:
    return votes_of(blocks_of(source), languages, stops)


def _weighed(
    task: Any, reader: Morphology, stops: Table, weights: tuple[Any, ...]
) -> tuple[Any, Any, Any]:
    return rows_together(
        [
            weigh_texts(*frozen((*reader.read(block, stops)[0], *weights)))
            for block in blocks_of(task)
        ]
    )
