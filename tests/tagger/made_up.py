"""Texts whose labels are plain to see: each label has words of its own, among common ones."""

import numpy as np

N_LABELS = 24
COMMON = [f"common{i}" for i in range(40)]


def name_of(label: int) -> str:
    return f"label{label:02d}"


def words_of(label: int) -> list[str]:
    """The first is shared with the neighbour, so that labels are not too easy to tell apart."""
    return [f"shared{label // 2}", *(f"word{label}{letter}" for letter in "abcd")]


def make_up(n: int, n_labels: int = N_LABELS, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts with one to three labels, frequent ones first; a few have none."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, n_labels + 1) ** 0.5
    texts, labels = [], []
    for i in range(n):
        size = 0 if i % 29 == 28 else int(random.integers(1, 4))
        own = random.choice(n_labels, size, replace=False, p=chances / chances.sum())
        words = [word for label in own for word in random.choice(words_of(label), 3)]
        words += random.choice(COMMON, 5).tolist()
        random.shuffle(words)
        texts.append(" ".join(words))
        labels.append([name_of(label) for label in own])
    return texts, labels


def about(label: int, n: int = 12, seed: int = 0) -> list[str]:
    """Texts about one label alone."""
    random = np.random.default_rng([seed, label])
    return [
        " ".join([*random.choice(words_of(label)[1:], 3), *random.choice(COMMON, 4)])
        for _ in range(n)
    ]
