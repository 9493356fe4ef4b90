"""Texts to TF-IDF features, side by side with scikit-learn's TfidfVectorizer.

`python benchmarks/vectorizer.py`: the training texts of eurlex57k (long) and cooking (short)
where `$UMPTEEN_DATA` has them, else of pydocs. Words and pairs of words that occur in two texts
or more. "one text" is a call with a single text of 200 characters. The two take turns in one
process, five times on short data and three times on long; medians, and the smallest and largest
ratio of a turn. Memory is the peak that `fit_transform` adds to a fresh process.

`python benchmarks/vectorizer.py stems`: what `language="en"` costs at prediction, by processor time
on one thread, for all test texts in one call and for 500 of them, 200 characters each, one by one.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from harness.measure import peak_megabytes
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um
from umpteen.text import Vectorizer

LONG = 20e6  # characters
ONE, N_CALLS = 200, 300
N_SINGLE, N_TURNS = 500, 15


def main() -> None:
    """Time every task on every data set, print the table."""
    if sys.argv[1:] == ["stems"]:
        table = Table("data", "MB", "task", "words", "stems", "ratio", "range")
        task = compare_stems
    else:
        table = Table("data", "MB", "task", "umpteen", "scikit-learn", "ratio", "range")
        task = compare
    folder = Path(os.environ.get("UMPTEEN_DATA", ""))
    names = [name for name in ("eurlex57k", "cooking") if (folder / name).is_dir()]
    for name in names or ["pydocs"]:
        task(table, name)
    Console().print(table)


def compare(table: Table, name: str) -> None:
    """Rows of the table for one data set, once both are known to answer the same."""
    texts = um.data.load(name).train.texts
    check_same([text for text in texts if text.isascii()][:2000])
    size = sum(map(len, texts))
    seconds = [turn(texts) for _ in range(3 if size > LONG else 5)]
    for task in seconds[0]:
        ours, theirs = (median(one[task][i] for one in seconds) for i in (0, 1))
        ratios = [one[task][1] / one[task][0] for one in seconds]
        scale, unit = (1e6, "us") if task == "one text" else (1, "s")
        shown = [f"{value * scale:.3g} {unit}" for value in (ours, theirs)]
        spread = f"{min(ratios):.1f}x to {max(ratios):.1f}x"
        table.add_row(name, f"{size / 1e6:.1f}", task, *shown, f"{theirs / ours:.1f}x", spread)
    peaks = [peak_memory(make, name) for make in (ours_, theirs_)]
    shown = [f"{peak:.0f} MB" for peak in peaks]
    table.add_row(name, f"{size / 1e6:.1f}", "memory", *shown, f"{peaks[1] / peaks[0]:.1f}x")


def compare_stems(table: Table, name: str) -> None:
    """Rows of the table for the test texts of one data set, with plain words and with stems."""
    data = um.data.load(name)
    texts = data.test.texts
    size = sum(map(len, texts)) / 1e6
    singles = [[text[:ONE]] for text in texts[:N_SINGLE]]
    both = [Vectorizer(n_jobs=1, language=code).fit(data.train.texts) for code in (None, "en")]
    for task, calls, scale, unit in (
        ("transform", [texts], 1e3, "ms"), ("one text", singles, 1e6 / len(singles), "us")
    ):  # fmt: skip
        turns = [[processor_time(one, calls) for one in both] for _ in range(N_TURNS + 1)][1:]
        words, stems = (median(turn[i] for turn in turns) for i in (0, 1))
        ratios = [turn[1] / turn[0] for turn in turns]
        shown = [f"{value * scale:.3g} {unit}" for value in (words, stems)]
        spread = f"{min(ratios):.2f}x to {max(ratios):.2f}x"
        table.add_row(name, f"{size:.1f}", task, *shown, f"{median(ratios):.2f}x", spread)


def processor_time(vectorizer: Vectorizer, calls: list[list[str]]) -> float:
    """Seconds of the processor for these calls."""
    start = time.process_time()
    for texts in calls:
        vectorizer.transform(texts)
    return time.process_time() - start


def ours_() -> Vectorizer:
    """As this library does it."""
    return Vectorizer(ngrams=2, min_df=2, ngram_weight=1)  # the same numbers


def theirs_() -> TfidfVectorizer:
    """The same features by scikit-learn."""
    return TfidfVectorizer(
        ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+", dtype=np.float32
    )


def turn(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Seconds of each task, of both."""
    ours, theirs = ours_(), theirs_()
    one = [next(text for text in texts if len(text) >= ONE or text is texts[-1])[:ONE]]
    return {
        "fit": (timed(ours.fit, texts), timed(theirs.fit, texts)),
        "transform": (timed(ours.transform, texts), timed(theirs.transform, texts)),
        "fit_transform": (timed(ours.fit_transform, texts), timed(theirs.fit_transform, texts)),
        "one text": (
            timed(ours.transform, one, N_CALLS) / N_CALLS,
            timed(theirs.transform, one, N_CALLS) / N_CALLS,
        ),
    }


def timed(function: Callable[[list[str]], object], texts: list[str], n_calls: int = 1) -> float:
    """Seconds of so many calls."""
    start = time.perf_counter()
    for _ in range(n_calls):
        function(texts)
    return time.perf_counter() - start


def check_same(texts: list[str]) -> None:
    """Both have the same columns and the same numbers."""
    ours, theirs = ours_(), theirs_()
    X, Z = ours.fit_transform(texts), theirs.fit_transform(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert abs(X - Z).max() < 1e-6


def peak_memory(make: Callable[[], Vectorizer | TfidfVectorizer], name: str) -> float:
    """Megabytes that `fit_transform` adds to a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_added_memory, (make, name))


def _added_memory(make: Callable[[], Vectorizer | TfidfVectorizer], name: str) -> float:
    texts = um.data.load(name).train.texts
    make().fit_transform(["the compiler's memory is not the vectorizer's"] * 2)
    before = peak_megabytes()
    make().fit_transform(texts)
    return peak_megabytes() - before


if __name__ == "__main__":
    main()
