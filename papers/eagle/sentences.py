"""Sentences in documents: each sentence is an instance, and labels are those of the document.

The paper has reviews of four sentences to learn from and of one to test on. Here documents of
EUR-Lex are split into sentences, and the title alone, which is one sentence, is what to test on.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers import sets
from umpteen.text import Vectorizer

SET = "eurlex57k"
_N_LABELS = 50
_FEWEST_WORDS = 4
_ENDS = re.compile(r"(?<=[.!?;])\s+")


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences of training documents in bags, and single sentences to test on."""

    X: csr_matrix
    groups: csr_matrix  # (documents, sentences)
    group_labels: csr_matrix  # (documents, labels)
    X_test: csr_matrix
    Y_test: csr_matrix

    def in_words(self) -> str:
        """Its size in words."""
        n_documents, n_sentences = self.groups.shape
        return (
            f"{n_documents:,} documents with {n_sentences / n_documents:.1f} sentences on average, "
            f"{self.group_labels.shape[1]} labels, {self.X_test.shape[0]:,} titles to test on"
        )


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; those of fewer than four words belong to the one before.

    >>> split_sentences("Rules of the committee. Having regard to it; the Council has met. Done.")
    ['Rules of the committee.', 'Having regard to it;', 'the Council has met. Done.']
    """
    found: list[str] = []
    for part in _ENDS.split(text.strip()):
        if found and len(part.split()) < _FEWEST_WORDS:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def load_sentences(n_documents: int, n_test: int) -> Sentences:
    """Documents with one of the most frequent labels, all at random; features are TF-IDF."""
    train, test = sets.train_and_test(SET)
    frequency = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    labels = np.sort(np.argsort(-frequency, kind="stable")[:_N_LABELS])
    rows, Y = _labelled(train.Y[:, labels], n_documents)
    test_rows, Y_test = _labelled(test.Y[:, labels], n_test)
    texts, test_texts = sets.texts_of(train), sets.texts_of(test)
    bags = [split_sentences(texts[row]) for row in rows]
    words = Vectorizer(ngrams=1, min_df=3)
    X = words.fit_transform([sentence for bag in bags for sentence in bag])
    titles = [split_sentences(test_texts[row])[0] for row in test_rows]
    return Sentences(X, _bags(list(map(len, bags))), Y, words.transform(titles), Y_test)


def _labelled(Y: Any, most: int) -> tuple[npt.NDArray[np.int64], csr_matrix]:
    """Some rows that have a label, at random, in their order."""
    Y = csr_matrix(Y)
    rows = np.flatnonzero(np.diff(Y.indptr))
    chosen = rows[sets.some_rows(len(rows), most)]
    return chosen, csr_matrix(Y[chosen])


def _bags(sizes: list[int]) -> csr_matrix:
    indptr = np.cumsum([0, *sizes])
    ones = np.ones(indptr[-1], np.float32)
    return csr_matrix((ones, np.arange(indptr[-1]), indptr), shape=(len(sizes), indptr[-1]))
