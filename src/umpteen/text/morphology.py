"""Forms of words: which words are one feature, and which features a word has besides its own.

`"stems"` counts words of one stem as one word, named by the shortest of them. `"both"` keeps words
as they are, and each also has the feature of its stem. `"characters"` adds sequences of four and
five characters of a word, its ends included: they find the members of compounds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from umpteen.kernels.hashing import places
from umpteen.kernels.morphology import base_forms, hash_lines, number_words, salted
from umpteen.kernels.tokens import hash_ngrams, plan_ngrams
from umpteen.storage import Shape, Sizes, storable
from umpteen.text.languages import CODES, languages_of, stemmer_name
from umpteen.text.letters import letters
from umpteen.text.ngrams import (
    EMPTY,
    Table,
    hash_words,
    named_ngrams,
    table,
    table_faults,
    utf8,
)

FORMS = ("stems", "both", "characters")
_LENGTHS = (4, 5)  # of sequences of characters
_MOST_CHARACTERS = 40  # of a word that sequences are taken from
_MOST_EXTRAS = sum(_MOST_CHARACTERS + 3 - length for length in _LENGTHS)  # of a word
_NONE = np.uint64(0)
_STEM, _SEQUENCE = np.uint64(0x452821E638D01377), np.uint64(0xBE5466CF34E90C6C)  # digits of pi

Hashes = npt.NDArray[np.uint64]
Forms = tuple[Hashes, npt.NDArray[np.int64], Hashes]  # bases, where extras begin, extras


def _no_hashes() -> Hashes:
    return np.zeros(0, np.uint64)


_NO_FORMS: Forms = _no_hashes(), np.zeros(1, np.int64), _no_hashes()


@storable
@dataclass(frozen=True, eq=False)
class Morphology:
    """What each word of the training texts stands for, and how new words are treated.

    Word i, whose hash is `words[1][i]`, stands for `bases[i]` in n-grams, and has the features
    `extras[starts[i]:starts[i + 1]]` besides. The stem whose hash is `stems[1][j]` has the base
    form `stem_bases[j]`.
    """

    forms: str
    languages: list[str]
    words: Table = EMPTY
    bases: Annotated[Hashes, Shape("forms")] = field(default_factory=_no_hashes)
    starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    extras: Hashes = field(default_factory=_no_hashes)
    stems: Table = EMPTY
    stem_bases: Annotated[Hashes, Shape("stems")] = field(default_factory=_no_hashes)

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: tables that do not fit together."""
        yield from table_faults(self.words)
        yield from table_faults(self.stems)
        if self.forms not in FORMS or not set(self.languages) <= set(CODES) or not self.languages:
            yield f"has forms={self.forms!r} of the languages {self.languages}"
        if len(self.words[1]) != len(self.bases) or len(self.stems[1]) != len(self.stem_bases):
            yield "has tables of words and of base forms of different lengths"
        starts, n = self.starts, len(self.bases)
        if self.extras.ndim != 1:
            yield f"has further features in {self.extras.ndim} dimensions, expected 1"
        if starts.shape != (n + 1,) or starts[0] != 0 or starts[-1] != len(self.extras):
            yield f"has no {len(self.extras)} further features for {n} words"
        elif (np.diff(starts) < 0).any() or (np.diff(starts) > _MOST_EXTRAS).any():
            yield f"has words with fewer than 0 or more than {_MOST_EXTRAS} further features"

    def of_words(self, words: list[str], hashes: Hashes, numbers: npt.NDArray[np.int64]) -> Forms:
        """Return what words stand for that are not in the table, by numbers of their languages."""
        if self.forms == "characters":
            found = [_sequences(word) for word in words]
            starts = np.cumsum([0, *map(len, found)])
            return hashes, starts, _hashes_of_sequences(list(chain.from_iterable(found)))
        stems = self._stem_hashes(words, numbers)
        bases = base_forms(hashes, stems, self.stems, self.stem_bases)
        if self.forms == "stems":
            return bases, np.zeros(len(words) + 1, np.int64), _NO_FORMS[2]
        return hashes, np.arange(len(words) + 1), salted(bases, _STEM)

    def extended(self, languages: dict[str, str]) -> Self:
        """Return the same with new words, given with their languages."""
        words = sorted(languages, key=lambda word: (len(word), word))  # the shortest names a stem
        of_each = np.array([self.languages.index(languages[word]) for word in words], np.int64)
        made = self._with_stems(words, of_each)
        hashes = hash_words(words)
        bases, starts, extras = made.of_words(words, hashes, of_each)
        return replace(
            made,
            words=table(np.append(self.words[1], hashes)),
            bases=np.append(self.bases, bases),
            starts=np.append(self.starts, self.starts[-1] + starts[1:]),
            extras=np.append(self.extras, extras),
        )

    def names(self, words: Sequence[str]) -> dict[int, str]:
        """Return the name of each feature of words that are in the table.

        >>> made = Morphology("both", ["en"]).extended({"flies": "en", "fly": "en"})
        >>> sorted(made.names(["flies", "fly"]).values())
        ['flies', 'fly', 'fly*']
        """
        hashes = hash_words(words)
        named = dict(zip(hashes.tolist(), words, strict=True))
        if self.forms == "characters":
            every = list({piece: None for word in words for piece in _sequences(word)})
            keys = _hashes_of_sequences(every).tolist()
            return named | {key: f"*{piece}*" for key, piece in zip(keys, every, strict=True)}
        if self.forms == "both":
            bases = self.stem_bases[np.isin(self.stem_bases, hashes)]
            stems = zip(salted(bases, _STEM).tolist(), bases.tolist(), strict=True)
            return named | {key: f"{named[base]}*" for key, base in stems}
        return named

    def read(self, texts: list[str], stop_words: Table) -> tuple[Any, ...]:
        """Return texts as `kernels.morphology` takes them: numbers of words, and their forms."""
        encoded, ends = utf8(texts)
        languages = np.zeros(len(texts), np.int64)  # a new word may occur in several
        if len(self.languages) > 1:
            languages[:] = [self._number(code) for code in languages_of(texts)]
        numbers, word_ends, (lines, hashes, of_words) = number_words(
            encoded, ends, letters(), stop_words, self.words, languages
        )
        new = _NO_FORMS
        if len(lines):
            new = self.of_words(_spelled(lines), hashes, of_words)
        return numbers, word_ends, (self.bases, self.starts, self.extras), new

    def named_ngrams(
        self, text: str, longest: int, stop_words: Table
    ) -> tuple[list[str], Hashes, npt.NDArray[np.int64]]:
        """Return the n-grams of a text, named by its own words, hashes, and what they extend."""
        words = named_ngrams(text, 1, stop_words)[0]
        (language,) = languages_of([text]) if len(self.languages) > 1 else [None]
        hashes = hash_words(words)
        numbers = places(hashes, *self.words)
        languages = np.full(len(words), self._number(language))
        bases, starts, extras = self.of_words(words, hashes, languages)
        bases = np.where(numbers >= 0, np.append(self.bases, _NONE)[numbers], bases)
        shorter, last, _ = plan_ngrams(np.array([len(words)]), longest)
        names: list[str] = []
        for prefix, word in zip(shorter.tolist(), last.tolist(), strict=True):
            names.append(words[word] if prefix < 0 else f"{names[prefix]} {words[word]}")
        hashes = hash_ngrams(bases, shorter, last)
        further: list[int] = []
        for i, (word, number) in enumerate(zip(words, numbers.tolist(), strict=True)):
            own = self.extras[self.starts[number] : self.starts[number + 1]]
            own = own if number >= 0 else extras[starts[i] : starts[i + 1]]
            if self.forms == "characters":
                pieces = [f"*{piece}*" for piece in _sequences(word)]
            else:
                pieces = [f"{word}*"]
            names += pieces[: len(own)]
            further += own[: len(pieces)].tolist()
        hashes = np.append(hashes, np.array(further, np.uint64))
        return names, hashes, np.append(shorter, np.full(len(further), -1))

    def _number(self, language: str | None) -> int:
        return self.languages.index(language) if language in self.languages else 0

    def _stem_hashes(self, words: list[str], numbers: npt.NDArray[np.int64]) -> Hashes:
        """The hash of each word's stem in its language."""
        from Stemmer import Stemmer

        stemmers = [Stemmer(stemmer_name(language), 0) for language in self.languages]
        if len(stemmers) == 1:
            found = stemmers[0].stemWords(words)
        else:
            each = zip(words, numbers.tolist(), strict=True)
            found = [stemmers[number].stemWord(word) for word, number in each]
        salts = np.array([1 + CODES.index(language) for language in self.languages], np.uint64)
        return _text_hashes(found, salts[numbers])

    def _with_stems(self, words: list[str], languages: npt.NDArray[np.int64]) -> Self:
        if self.forms == "characters":
            return self
        keys, firsts = np.unique(self._stem_hashes(words, languages), return_index=True)
        new = places(keys, *self.stems) < 0
        return replace(
            self,
            stems=table(np.append(self.stems[1], keys[new])),
            stem_bases=np.append(self.stem_bases, hash_words(words)[firsts[new]]),
        )


def words_of(
    blocks: Iterable[list[str]], languages: list[str], stop_words: Table
) -> dict[str, str]:
    """Return the different words of texts, and the language of each.

    In a corpus of several languages, it is the language of most texts that have the word; texts in
    none of them count only for words that no others have.
    """
    if len(languages) == 1:
        return {
            word: languages[0] for texts in blocks for word in _words_in_texts(texts, stop_words)
        }
    votes: dict[str, Counter[str]] = {}
    for texts in blocks:
        of_texts = languages_of(texts)
        for code in sorted(set(of_texts), key=str):
            chosen = [
                text for text, of_text in zip(texts, of_texts, strict=True) if of_text == code
            ]
            vote, weight = (code, 1) if code in languages else (languages[0], 0)
            for word, n_texts in _words_in_texts(chosen, stop_words).items():
                votes.setdefault(word, Counter())[vote] += n_texts * weight
    return {word: max(sorted(found), key=found.__getitem__) for word, found in votes.items()}


def as_spelled(names: dict[int, str]) -> tuple[Hashes, npt.NDArray[np.uint8], Any]:
    """Return names by their hashes as `kernels.ngrams.count_texts` returns words."""
    encoded = [name.encode() for name in names.values()]
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    return (
        np.array(list(names), np.uint64),
        letters,
        np.cumsum([*map(len, encoded)], dtype=np.int64),
    )


def _spelled(lines: npt.NDArray[np.uint8]) -> list[str]:
    """The words on these lines, in lower case; `utf8` has left no Σ, which depends on its place."""
    return lines.tobytes().decode().lower().split("\n")[:-1]


def _words_in_texts(texts: list[str], stop_words: Table) -> dict[str, int]:
    """The different words, and in how many texts each occurs."""
    encoded, ends = utf8(texts)
    no_languages = np.zeros(len(texts), np.int64)
    numbers, word_ends, (lines, hashes, _) = number_words(
        encoded, ends, letters(), stop_words, EMPTY, no_languages
    )
    of_text = np.repeat(np.arange(len(texts)), np.diff(word_ends, prepend=0))
    once = np.unique(of_text * len(hashes) + numbers) % max(len(hashes), 1)
    n_texts = np.bincount(once, minlength=len(hashes)).tolist()
    return dict(zip(_spelled(lines), n_texts, strict=True))


def _sequences(word: str) -> list[str]:
    """Sequences of characters of a word, each once; `_` stands for its beginning and end.

    >>> _sequences("hiiri")
    ['_hii', 'hiir', 'iiri', 'iri_', '_hiir', 'hiiri', 'iiri_']
    """
    if len(word) < _LENGTHS[0]:
        return []
    whole = f"_{word[:_MOST_CHARACTERS]}_"
    pieces = (whole[i : i + n] for n in _LENGTHS for i in range(len(whole) - n + 1))
    return list(dict.fromkeys(pieces))


def _hashes_of_sequences(pieces: list[str]) -> Hashes:
    return _text_hashes(pieces, np.full(len(pieces), _SEQUENCE))


def _text_hashes(texts: Sequence[str], salts: Hashes) -> Hashes:
    """Hashes of texts that are no words of their own, each with its salt."""
    lines = "\n".join([*texts, ""]).encode()
    return np.asarray(hash_lines(np.frombuffer(lines, np.uint8), salts))
