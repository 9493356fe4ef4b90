"""How good a tagger is that learned from groups of texts, and what its probabilities are worth.

    python benchmarks/groups_of_texts.py [set ...]

Training texts of sets under `$UMPTEEN_DATA` (the first 12,500) are put into groups of random texts,
and only the labels of groups are given: as presence, or with their counts. Prints, on the test
split with its true labels: P@1; the calibration error (ECE) of the best five answers; of labels
that `assign` gives to test texts in such groups, how many are right, how many of all are found, and
the ECE of its confidences; CPU seconds of `fit`. The first row learned from the labels of texts.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import harness  # noqa: F401 (sets up the paths)
import numpy as np

import umpteen as um
from umpteen.metrics import expected_calibration_error

N_TRAIN = 12_500
SETTINGS = [(4, "presence"), (4, "counts"), (10, "presence"), (10, "counts")]
COLUMNS = "set, labels of | P@1 | ECE@5 | assigned, right | found | ECE of confidences | CPU s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=("cooking",))
    print(f"| {COLUMNS} |\n|---|---:|---:|---:|---:|---:|---:|")
    for name in parser.parse_args().sets:
        for title, figures in rows(um.data.load(name)):
            print(f"| {name}, {title} | {' | '.join(figures)} |", flush=True)


def rows(data: um.data.Dataset) -> Iterator[tuple[str, list[str]]]:
    """Yield the figures of each row of the table."""
    texts, labels = list(data.train.texts)[:N_TRAIN], list(map(list, data.train.labels))[:N_TRAIN]
    new, truth = list(data.test.texts), list(map(list, data.test.labels))
    yield "each text", figures(lambda tagger: tagger.fit(texts, labels), new, truth, 4, False)
    for size, known in SETTINGS:
        groups = drawn(len(texts), size)
        given = labels_of(groups, labels, known == "counts")
        yield (
            f"groups of {size}, {known}",
            figures(
                lambda tagger, groups=groups, given=given: tagger.fit(
                    texts, groups=groups, group_labels=given
                ),
                new, truth, size, known == "counts",
            ),
        )  # fmt: skip


def drawn(n: int, size: int) -> list[int]:
    """The group of each text, at random."""
    return (np.random.default_rng(0).permutation(n) // size).tolist()


def labels_of(groups: list[int], labels: list[list[str]], counts: bool) -> dict[int, list[str]]:
    """The labels of each group, with repetitions or without."""
    found: dict[int, list[str]] = {}
    for group, own in zip(groups, labels, strict=True):
        found.setdefault(group, []).extend(own)
    return found if counts else {group: sorted(set(own)) for group, own in found.items()}


def figures(
    fit: Any, texts: list[str], truth: list[list[str]], size: int, counts: bool
) -> list[str]:
    """The figures of one tagger on test texts."""
    started = time.process_time()
    tagger = fit(um.Tagger())
    seconds = time.process_time() - started
    answers = tagger.predict(texts, k=5)
    groups = drawn(len(texts), size)
    known = set(tagger.labels)
    expected = [[name for name in own if name in known] for own in truth]
    assigned = tagger.assign(texts, groups, labels_of(groups, expected, counts))
    first = [bool(tags) and tags[0][0] in own for tags, own in zip(answers, truth, strict=True)]
    right = _right(assigned, expected)
    return [
        f"{100 * np.mean(first):.1f}",
        f"{100 * _ece(answers, truth):.1f}",
        f"{100 * np.mean(right):.1f}",
        f"{100 * sum(right) / sum(map(len, expected)):.1f}",
        f"{100 * _ece(assigned, expected):.1f}",
        f"{seconds:.1f}",
    ]


def _right(answers: list[Any], truth: list[list[str]]) -> list[bool]:
    pairs = zip(answers, truth, strict=True)
    return [name in own for tags, own in pairs for name, _ in tags]


def _ece(answers: list[Any], truth: list[list[str]]) -> float:
    scores = np.array([score for tags in answers for _, score in tags])
    return float(expected_calibration_error(scores, np.array(_right(answers, truth))))


if __name__ == "__main__":
    main()
