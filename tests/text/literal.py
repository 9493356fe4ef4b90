"""The vectorizer as its documentation says it, one character and one Python object at a time."""

import math
import unicodedata
from collections import Counter

import numpy as np
from Stemmer import Stemmer

from umpteen.text.languages import _LANGUAGES, stemmer_name

WITHOUT_SPACES = (
    "CJK COMPATIBILITY IDEOGRAPH", "CJK UNIFIED IDEOGRAPH", "HENTAIGANA LETTER", "HIRAGANA ",
    "IDEOGRAPHIC CLOSING MARK", "IDEOGRAPHIC ITERATION MARK", "KHMER ", "LAO ", "MYANMAR ",
    "NEW TAI LUE ", "TAI LE ", "TAI THAM ", "TAI VIET ", "THAI ",
)  # fmt: skip
MASK = 2**64 - 1


def is_letter(character):
    return character == "_" or unicodedata.category(character)[0] in "LN"


def is_mark(character):
    return character in "\u200c\u200d" or unicodedata.category(character)[0] == "M"


def stands_alone(character):
    named = unicodedata.name(character, "").startswith(WITHOUT_SPACES)
    return named and unicodedata.category(character)[0] == "L"


def words(text, stop_words=()):
    found, current = [], ""
    for character in unicodedata.normalize("NFKC", text).lower():
        goes_on = current and (
            is_mark(character)
            or (
                is_letter(character)
                and not stands_alone(character)
                and not stands_alone(current[0])
            )
        )
        if goes_on:
            current += character
            continue
        found.append(current)
        current = character if is_letter(character) else ""
    return [word for word in [*found, current] if word and word not in stop_words]


def ngrams(text, longest, stop_words=()):
    """All n-grams as tuples: single words, then bigrams, ..."""
    return ngrams_of(words(text, stop_words), longest)


def ngrams_of(found, longest):
    return [
        tuple(found[i : i + length])
        for length in range(1, longest + 1)
        for i in range(len(found) - length + 1)
    ]


def stir(key, number):
    key = (key ^ number) * 0x9E3779B97F4A7C15 & MASK
    return key ^ key >> 32


def finish(key):
    return stir(stir(key, 32), 1)


def hash_of(ngram):
    *shorter, word = ngram
    key = 0x243F6A8885A308D3
    for letter in word:
        key = stir(key, ord(letter))
    key = finish(key)
    return finish(stir(hash_of(shorter) * 0xB7E151628AED2A6B & MASK, key)) if shorter else key


def vocabulary(texts, longest, least, least_ngram, most=None, stop_words=(), forms=None):
    """Feature names in order."""
    rows = [forms.ngrams(t, longest) if forms else ngrams(t, longest, stop_words) for t in texts]
    n_texts = Counter(ngram for row in rows for ngram in set(row))
    needed = {True: least, False: max(least, least_ngram)}
    names = sorted(
        " ".join(ngram) for ngram, count in n_texts.items() if count >= needed[len(ngram) == 1]
    )
    by_frequency = sorted(names, key=lambda name: -n_texts[tuple(name.split(" "))])
    return sorted(by_frequency[:most])


def hashed_column(ngram, n_columns):
    """Words fall into the first half of the columns, longer n-grams into the rest."""
    half = n_columns // 2
    key = hash_of(ngram)
    return key % half if len(ngram) == 1 else half + key % (n_columns - half)


def tfidf(
    texts, column_of, n_columns, longest, ngram_weight, sublinear=True, stop_words=(), forms=None,
    new_texts=None,
):  # fmt: skip
    """The matrix of the texts that it learns from, or of new texts, dense."""
    multiword = set()

    def counted(text):
        every = forms.ngrams(text, longest) if forms else ngrams(text, longest, stop_words)
        columns = [column_of(ngram) for ngram in every]
        multiword.update(column_of(ngram) for ngram in every if len(ngram) > 1)
        return Counter(column for column in columns if column is not None)

    rows = [counted(text) for text in texts]
    n_texts = Counter(column for row in rows for column in row)
    asked = rows if new_texts is None else [counted(text) for text in new_texts]
    matrix = np.zeros((len(asked), n_columns))
    for i, row in enumerate(asked):
        for column, count in row.items():
            weight = 1 + math.log(count) if sublinear else count
            idf = math.log((1 + len(texts)) / (1 + n_texts[column])) + 1
            matrix[i, column] = weight * idf * (ngram_weight if column in multiword else 1)
        matrix[i] /= np.linalg.norm(matrix[i]) or 1
    return matrix


# --- languages


def language_of(text):
    """The language with the most function words, if they are enough and no other has as many."""
    found = words(text)
    counts = {
        code: sum(word in function_words.split() for word in found)
        for code, (_, function_words) in _LANGUAGES.items()
    }
    most = max(counts.values())
    best = [code for code, count in counts.items() if count == most]
    return best[0] if len(best) == 1 and most >= 2 and most >= 0.08 * len(found) else None


def language_of_word(word, texts, languages, stop_words=()):
    """That of most texts with the word, in a corpus of several languages; else the main one."""
    counts = Counter(language_of(text) for text in texts if word in words(text, stop_words))
    votes = {code: counts[code] for code in sorted(languages)}
    return max(votes, key=votes.get) if any(votes.values()) else languages[0]


class Forms:
    """What words stand for, learned from the texts: `ngrams` returns all features of a text."""

    def __init__(self, texts, languages, forms, stop_words=()):
        self.languages, self.forms, self.stop_words = languages, forms, stop_words
        every = {word for text in texts for word in words(text, stop_words)}
        self.language = {
            word: language_of_word(word, texts, languages, stop_words) for word in every
        }
        self.first = {}
        for word in sorted(every, key=lambda word: (len(word), word)):
            self.first.setdefault(self.stem(word, self.language[word]), word)

    def stem(self, word, language):
        return language, Stemmer(stemmer_name(language)).stemWord(word)

    def base(self, word, language):
        return self.first.get(self.stem(word, self.language.get(word, language)), word)

    def ngrams(self, text, longest):
        """As `ngrams`, of base forms; then stems or sequences of characters with a `*`."""
        language = language_of(text)
        language = language if language in self.languages else self.languages[0]
        found = words(text, self.stop_words)
        bases = [self.base(word, language) for word in found]
        own = ngrams_of(bases if self.forms == "stems" else found, longest)
        if self.forms == "both":
            own += [(f"{base}*",) for base in bases]
        if self.forms == "characters":
            own += [(f"*{part}*",) for word in found for part in sequences(word)]
        return own


def sequences(word):
    if len(word) < 4:
        return set()
    whole = f"_{word[:40]}_"
    return {whole[i : i + n] for n in (4, 5) for i in range(len(whole) - n + 1)}
