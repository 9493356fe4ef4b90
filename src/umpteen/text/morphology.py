"""Forms of words: which words are one feature, and which features a word has besides its own.

`"stems"` counts words of one stem as one word, named by the shortest of them. `"both"` keeps words
as they are, and each also has the feature of its stem. `"characters"` adds sequences of four and
five characters of a word, its ends included: they find the members of compounds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from Stemmer import Stemmer

from umpteen.kernels.hashing import join, places
from umpteen.kernels.tokens import base_forms, hash_lines
from umpteen.storage import Shape, Sizes, storable
from umpteen.text.languages import CODES, languages_of, stemmer_name
from umpteen.text.reading import (
    EMPTY,
    NO_HASHES,
    Encoded,
    Hashes,
    Table,
    different_words,
    hash_words,
    read,
    spelled,
    table,
    table_faults,
    utf8,
)
from umpteen.validation import check_texts

FORMS = ("stems", "both", "characters")
_LENGTHS = (4, 5)  # of sequences of characters
_MOST_CHARACTERS = 40  # of a word that sequences are taken from
_LONGEST_STEMMED = 1_000  # characters of a word: some stemmers take time by the square of it
_MOST_KNOWN = 100_000  # new words whose stems are remembered
_MOST_EXTRAS = sum(_MOST_CHARACTERS + 3 - length for length in _LENGTHS)  # of a word
_STEM, _SEQUENCE = np.array([[0x452821E638D01377], [0xBE5466CF34E90C6C]], np.uint64)  # digits of pi

Numbers = npt.NDArray[np.int64]
Forms = tuple[Hashes, Numbers, Hashes]  # bases, where extras begin, extras
Spelled = tuple[Hashes, npt.NDArray[np.uint8]]  # hashes of words, and a line for each

_NO_STARTS = np.zeros(1, np.int64)
_NO_FORMS: Forms = NO_HASHES, _NO_STARTS, NO_HASHES
_NO_WORDS: Spelled = NO_HASHES, np.zeros(0, np.uint8)


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
    bases: Annotated[Hashes, Shape("forms")] = field(default_factory=lambda: NO_HASHES)
    starts: Numbers = field(default_factory=lambda: _NO_STARTS)
    extras: Hashes = field(default_factory=lambda: NO_HASHES)
    stems: Table = EMPTY
    stem_bases: Annotated[Hashes, Shape("stems")] = field(default_factory=lambda: NO_HASHES)

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

    def of_words(self, words: list[str], hashes: Hashes, languages: Numbers) -> Forms:
        """Return what words stand for that are not in the table, by numbers of their languages."""
        no_extras = np.zeros(len(hashes) + 1, np.int64), NO_HASHES
        if self.forms == "words":
            return hashes, *no_extras
        if self.forms == "characters":
            found = [sequences(word) for word in words]
            starts = np.cumsum([0, *map(len, found)])
            return hashes, starts, _hashes_of_sequences(list(chain.from_iterable(found)))
        stems = self._stems(words, languages)
        bases = base_forms(hashes, *stems, self.stems, self.stem_bases)
        if self.forms == "stems":
            return bases, *no_extras
        return hashes, np.arange(len(words) + 1), join(_STEM, bases)

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
            every = list({piece: None for word in words for piece in sequences(word)})
            keys = _hashes_of_sequences(every).tolist()
            return named | {key: f"*{piece}*" for key, piece in zip(keys, every, strict=True)}
        if self.forms == "both":
            bases = self.stem_bases[np.isin(self.stem_bases, hashes)]
            stems = zip(join(_STEM, bases).tolist(), bases.tolist(), strict=True)
            return named | {key: f"{named[base]}*" for key, base in stems}
        return named

    def read(
        self, texts: list[str], stop_words: Table, spell: bool = False
    ) -> tuple[tuple[Any, ...], Spelled]:
        """Return texts as `kernels.ngrams` takes them, and the new words.

        Plain words have forms only if they are to be spelled.
        """
        encoded = utf8(texts)
        found = read(encoded, stop_words, self._known)
        words, _, numbers, n_new, word_ends = found
        new, new_words = _NO_FORMS, _NO_WORDS
        if n_new > 0 and self.forms == "stems" and not spell:
            self._put_bases(texts, encoded, found)
        elif n_new > 0 and (spell or self is not PLAIN):
            of_texts = self._languages_of(texts)
            lines, hashes, languages = different_words(encoded, found, of_texts, len(self.bases))
            names = [] if self is PLAIN else spelled(lines)
            new, new_words = self.of_words(names, hashes, languages), (hashes, lines)
        return (words, numbers, word_ends, (self.starts, self.extras), new), new_words

    def named_ngrams(
        self, text: str, longest: int, stop_words: Table
    ) -> tuple[list[str], Hashes, int]:
        """Return the n-grams of a text, named by its own words, hashes, and the number of words."""
        encoded = utf8(check_texts([text]))
        bases, spans, numbers, _, _ = read(encoded, stop_words, self._known)
        content = encoded[0].tobytes()
        words = [content[start:end].decode().lower() for start, end in spans.tolist()]
        of_words = self._languages_of([text])[np.zeros(len(words), np.int64)]
        new, new_starts, new_extras = self.of_words(words, bases, of_words)
        bases = np.where(numbers < 0, new, bases)
        names, keys = list(words), [bases]
        for length in range(1, min(longest, len(words))):
            keys.append(join(keys[-1][:-1], bases[length:]))
            starts = range(len(words) - length)
            names += [" ".join(words[start : start + length + 1]) for start in starts]
        for i, (word, number) in enumerate(zip(words, numbers.tolist(), strict=True)):
            extras = new_extras[new_starts[i] : new_starts[i + 1]]
            if number >= 0:
                extras = self.extras[self.starts[number] : self.starts[number + 1]]
            pieces = self._pieces(word)[: len(extras)]
            names += pieces
            keys.append(extras[: len(pieces)])
        return names, np.concatenate(keys), len(words)

    def _put_bases(self, texts: list[str], encoded: Encoded, found: tuple[Any, ...]) -> None:
        """Write base forms over the hashes of new words; those of words seen before are known."""
        words, spans, numbers, _, word_ends = found
        new, remembered = np.flatnonzero(numbers < 0), self._known_bases
        hashes, languages = words[new], np.zeros(len(new), np.int64)
        if len(self.languages) > 1:
            of_texts = self._languages_of(texts)
            languages = of_texts[np.searchsorted(word_ends, new, side="right")]
            hashes = join(languages.astype(np.uint64), hashes)
        keys = hashes.tolist()
        first = {key: i for i, key in enumerate(keys) if key not in remembered}
        if first:
            content, some = encoded[0].tobytes(), list(first.values())
            names = [
                content[start:end].decode().lower() for start, end in spans[new[some]].tolist()
            ]
            bases, _, _ = self.of_words(names, words[new[some]], languages[some])
            remembered.update(zip(first, bases.tolist(), strict=True))
        words[new] = list(map(remembered.__getitem__, keys))
        if len(remembered) > _MOST_KNOWN:
            self.__dict__["_known_bases"] = {}  # other threads may still use the old one

    @cached_property
    def _known(self) -> Hashes:
        """The words as `kernels.tokens.read_words` looks them up."""
        slots, hashes = self.words
        lexicon, numbers = np.zeros((len(slots), 3), np.uint64), slots[slots > 0] - 1
        lexicon[slots > 0, 0], lexicon[slots > 0, 1] = hashes[numbers], self.bases[numbers]
        lexicon[:, 2] = slots
        return lexicon

    @cached_property
    def _known_bases(self) -> dict[int, int]:
        """The base forms of words that came after `fit`, by their hashes (and their language)."""
        return {}

    def _pieces(self, word: str) -> list[str]:
        """The names of a word's extra features."""
        return [f"{word}*"] if self.forms == "both" else [f"*{part}*" for part in sequences(word)]

    def _languages_of(self, texts: list[str]) -> Numbers:
        """The number of each text's language; a new word may occur in several."""
        if len(self.languages) == 1:
            return np.zeros(len(texts), np.int64)
        number_of = {code: number for number, code in enumerate(self.languages)}
        return np.array([number_of.get(str(code), 0) for code in languages_of(texts)], np.int64)

    def _stems(self, words: list[str], languages: Numbers) -> tuple[npt.NDArray[np.uint8], Hashes]:
        """A line for each word's stem, and the salt of its language."""
        stemmers = [Stemmer(stemmer_name(language), 0) for language in self.languages]
        if len(stemmers) == 1:
            found = stemmers[0].stemWords([word[:_LONGEST_STEMMED] for word in words])
        else:
            each = zip(words, languages.tolist(), strict=True)
            found = [stemmers[number].stemWord(word[:_LONGEST_STEMMED]) for word, number in each]
        for i, word in enumerate(words):
            if len(word) > _LONGEST_STEMMED:
                found[i] = word
        return _lines(found), self._salts[languages]

    @cached_property
    def _salts(self) -> Hashes:
        return np.array([1 + CODES.index(language) for language in self.languages], np.uint64)

    def _with_stems(self, words: list[str], languages: npt.NDArray[np.int64]) -> Self:
        if self.forms == "characters":
            return self
        keys, firsts = np.unique(hash_lines(*self._stems(words, languages)), return_index=True)
        new = places(keys, *self.stems) < 0
        return replace(
            self,
            stems=table(np.append(self.stems[1], keys[new])),
            stem_bases=np.append(self.stem_bases, hash_words(words)[firsts[new]]),
        )


PLAIN = Morphology("words", [""])  # each word stands for itself


Votes = dict[str, Counter[str]]  # for the language of each word; empty if there is one language


def words_of(
    blocks: Iterable[list[str]], languages: list[str], stop_words: Table
) -> dict[str, str]:
    """Return the different words of texts, and the language of each.

    In a corpus of several languages, it is the language of most texts that have the word; texts in
    none of them count only for words that no others have.
    """
    return elected([votes_of(blocks, languages, stop_words)], languages)


def votes_of(blocks: Iterable[list[str]], languages: list[str], stop_words: Table) -> Votes:
    """Return the different words of texts in order, and how many texts of each language have it."""
    votes: Votes = {}
    if len(languages) == 1:
        none: Counter[str] = Counter()
        for texts in blocks:
            _, lines = PLAIN.read(texts, stop_words, spell=True)[1]
            votes |= dict.fromkeys(spelled(lines), none)
        return votes
    number_of = {code: number for number, code in enumerate(languages)}
    voted = [*((code, 1) for code in languages), (languages[0], 0)]
    for texts in blocks:
        of_texts = [number_of.get(str(code), len(languages)) for code in languages_of(texts)]
        for word, number, n_texts in _words_by_language(texts, np.array(of_texts), stop_words):
            code, weight = voted[number]
            votes.setdefault(word, Counter())[code] += n_texts * weight
    return votes


def elected(votes: list[Votes], languages: list[str]) -> dict[str, str]:
    """Return the language of each word that some texts, and then others, voted on."""
    if len(languages) == 1:
        return {word: languages[0] for each in votes for word in each}
    together: Votes = {}
    for each in votes:
        for word, found in each.items():
            total = together.setdefault(word, Counter())
            for code, n in found.items():  # `update` would do, but for counts of zero
                total[code] += n
    return {word: max(sorted(found), key=found.__getitem__) for word, found in together.items()}


def _words_by_language(
    texts: list[str], of_texts: Numbers, stop_words: Table
) -> Iterator[tuple[str, int, int]]:
    """The different words with their languages, and in how many texts of it each occurs."""
    encoded = utf8(texts)
    found = read(encoded, stop_words)
    lines, hashes, languages = different_words(encoded, found, of_texts)
    _, _, numbers, _, word_ends = found
    of_words = np.repeat(np.arange(len(texts)), np.diff(word_ends, prepend=0))
    once = np.unique(of_words * len(hashes) + numbers) % max(len(hashes), 1)
    n_texts = np.bincount(once, minlength=len(hashes)).tolist()
    return zip(spelled(lines), languages.tolist(), n_texts, strict=True)


def as_lines(names: dict[int, str]) -> Spelled:
    """Return names by their hashes as `Morphology.read` returns new words."""
    return np.array(list(names), np.uint64), _lines(names.values())


def _lines(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("\n".join([*texts, ""]).encode(), np.uint8)


def sequences(word: str) -> list[str]:
    """Return the sequences of characters of a word, each once; `_` is its beginning or end.

    >>> sequences("hiiri")
    ['_hii', 'hiir', 'iiri', 'iri_', '_hiir', 'hiiri', 'iiri_']
    """
    if len(word) < _LENGTHS[0]:
        return []
    whole = f"_{word[:_MOST_CHARACTERS]}_"
    pieces = (whole[i : i + n] for n in _LENGTHS for i in range(len(whole) - n + 1))
    return list(dict.fromkeys(pieces))


def unmarked(name: str) -> str:
    """Return the letters of a feature's name, without the marks of stems and of sequences.

    >>> unmarked("fly*"), unmarked("*_hii*"), unmarked("least squares")
    ('fly', 'hii', 'least squares')
    """
    if name.startswith("*"):
        return name.strip("*").removeprefix("_").removesuffix("_")
    return name.removesuffix("*")


def _hashes_of_sequences(pieces: list[str]) -> Hashes:
    return np.asarray(hash_lines(_lines(pieces), np.repeat(_SEQUENCE, len(pieces))))
