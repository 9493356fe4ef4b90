"""The vectorizer as its documentation says it, one character and one Python object at a time."""

import math
import unicodedata
from collections import Counter

import numpy as np

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
    text = words(text, stop_words)
    return [
        tuple(text[i : i + length])
        for length in range(1, longest + 1)
        for i in range(len(text) - length + 1)
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


def vocabulary(texts, longest, least, least_ngram, most=None, stop_words=()):
    """Feature names in order."""
    n_texts = Counter(ngram for text in texts for ngram in set(ngrams(text, longest, stop_words)))
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


def tfidf(texts, column_of, n_columns, longest, ngram_weight, sublinear=True, stop_words=()):
    """The matrix of the texts that it learns from, dense."""
    rows, multiword = [], set()
    for text in texts:
        every = list(ngrams(text, longest, stop_words))
        columns = [column_of(ngram) for ngram in every]
        multiword |= {column_of(ngram) for ngram in every if len(ngram) > 1}
        rows.append(Counter(column for column in columns if column is not None))
    n_texts = Counter(column for row in rows for column in row)
    matrix = np.zeros((len(texts), n_columns))
    for i, row in enumerate(rows):
        for column, count in row.items():
            weight = 1 + math.log(count) if sublinear else count
            idf = math.log((1 + len(texts)) / (1 + n_texts[column])) + 1
            matrix[i, column] = weight * idf * (ngram_weight if column in multiword else 1)
        matrix[i] /= np.linalg.norm(matrix[i]) or 1
    return matrix
