"""What labels lose that come late: added to a trained tagger, against training with all of them.

`python benchmarks/new_labels.py [set ...]` hides a share of the labels (`--hide`), trains, adds
them with their training texts as examples, and compares with a tagger that saw everything. With
`--new-texts`, the texts of the hidden labels are hidden as well, so that all of their words and
topics are new. `--part dev` is for choosing, `test` for reporting.

With `--more 0.1`, it is instead a share of the training texts that comes late, through
`partial_fit`, to a tagger that kept `--replay` of the others.
"""

import argparse
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

import umpteen as um
from umpteen.metrics import psp_at_k
from umpteen.metrics.hits import found_in

SETS = ("eurlex57k", "debian-tags", "cooking", "pydocs")
K = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--hide", type=float, nargs="+", default=[0.05])
    parser.add_argument("--replay", type=int, nargs="+", default=[20_000])
    parser.add_argument(
        "--new-texts", action="store_true", help="hide the texts of the hidden labels as well"
    )
    parser.add_argument(
        "--more", type=float, help="share of the training texts that partial_fit learns"
    )
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    options = parser.parse_args()
    warnings.simplefilter("ignore", um.errors.RebuildDueWarning)
    table = Table(
        "set", "labels added", "tagger", "seconds", "P@1/3/5", "PSP@1/3/5", "added: recall@5",
        "precision", "PSP@1/3/5",
    )  # fmt: skip
    for name in options.sets:
        data = um.data.load(name)
        if options.part == "dev" and data.dev is None:
            data = data.split(0.15)
        part = data.dev if options.part == "dev" else data.test
        um.Tagger(calibrate=False).fit(data.train.texts[:500], data.train.labels[:500])  # compiles
        if options.more:
            made = rows_of_more(name, data.train, part, options)
        else:
            made = rows(name, data.train, part, options)
        for row in made:
            table.add_row(*row)
    Console(width=150).print(table)


def rows(name, train, part, options):
    start = time.perf_counter()
    full = um.Tagger(calibrate=False).fit(train.texts, train.labels)
    seconds = time.perf_counter() - start
    for share in options.hide:
        hidden = hide(train.labels, share)
        yield name, f"{len(hidden):,}", "all at once", *figures(full, train, part, hidden, seconds)
        for replay in options.replay:
            late = um.Tagger(calibrate=False, replay=replay)
            late.fit(*without(train, hidden, texts_too=options.new_texts))
            before = late.predict_topk(part.texts, K)
            start = time.perf_counter()
            late.add_labels(sorted(hidden), examples=examples(train, hidden))
            spent = time.perf_counter() - start
            assert unchanged(before, late.predict_topk(part.texts, K), min(late_ids(late, hidden)))
            title = f"added, replay {min(replay, len(train)):,}"
            yield name, f"{len(hidden):,}", title, *figures(late, train, part, hidden, spent)


def rows_of_more(name, train, part, options):
    """Before and after `partial_fit`; "added" are the labels that only the late texts have."""
    late = np.zeros(len(train), bool)
    n_late = round(options.more * len(train))
    late[np.random.default_rng(0).permutation(len(train))[:n_late]] = True
    first, more = (train.take(np.flatnonzero(rows)) for rows in (~late, late))
    new = {label for own in more.labels for label in own}
    new -= {label for own in first.labels for label in own}
    for replay in options.replay:
        start = time.perf_counter()
        tagger = um.Tagger(calibrate=False, replay=replay).fit(first.texts, first.labels)
        seconds = time.perf_counter() - start
        kept = f"{len(tagger.replay_):,} of {len(first):,} kept"
        title = f"before, {kept}"
        yield name, f"{len(new):,}", title, *figures(tagger, train, part, new, seconds)
        start = time.perf_counter()
        tagger.partial_fit(more.texts, more.labels)
        seconds = time.perf_counter() - start
        title = f"partial_fit, {n_late:,} texts"
        yield name, f"{len(new):,}", title, *figures(tagger, train, part, new, seconds)


def hide(labels, share) -> set[str]:
    every = sorted({label for own in labels for label in own})
    drawn = np.random.default_rng(0).choice(len(every), round(share * len(every)), replace=False)
    return {every[i] for i in drawn}


def without(train, hidden, *, texts_too) -> tuple[list[str], list[list[str]]]:
    """Texts and labels without the hidden ones, and perhaps without the texts that have them."""
    pairs = [
        (text, [label for label in own if label not in hidden])
        for text, own in zip(train.texts, train.labels, strict=True)
        if not (texts_too and hidden & set(own))
    ]
    return [text for text, _ in pairs], [own for _, own in pairs]


def examples(train, hidden) -> dict[str, list[str]]:
    found = {name: [] for name in hidden}
    for text, own in zip(train.texts, train.labels, strict=True):
        for label in own:
            if label in hidden:
                found[label].append(text)
    return found


def late_ids(tagger, hidden) -> list[int]:
    ids = tagger.label_names_.ids
    return [ids[name] for name in hidden if name in ids]


def unchanged(before, after, first_new) -> bool:
    """Whether each text's old labels, where they are still answered, kept order and score."""
    for i in range(len(before)):
        old = after.labels[i] < first_new
        n = np.count_nonzero(old)
        same = before.labels[i, :n] == after.labels[i, old]
        if not (same & (before.scores[i, :n] == after.scores[i, old])).all():
            return False
    return True


def figures(tagger, train, part, hidden, seconds) -> tuple[str, ...]:
    names = tagger.label_names_.with_unknown(train.labels)
    Y_train = names.matrix(train.labels)
    Y = names.matrix([[label for label in own if label in names.ids] for own in part.labels])
    top = tagger.predict_topk(part.texts, K)
    propensity = um.metrics.propensity(Y_train)
    is_new = np.zeros(len(names), bool)
    is_new[late_ids(tagger, hidden)] = True
    given = is_new[top.labels] & (top.labels >= 0)
    right = given & found_in(Y, top.labels)
    only_new = without_others(Y, is_new)
    labelled = np.flatnonzero(np.diff(only_new.indptr))
    return (
        f"{seconds:.1f}",
        numbers(um.metrics.precision_at_k(Y, top, (1, 3, 5))),
        numbers(psp_at_k(Y, top, (1, 3, 5), propensity)),
        f"{100 * right.sum() / max(1, only_new.nnz):.1f}",
        f"{100 * right.sum() / max(1, given.sum()):.1f}",
        numbers(psp_at_k(only_new[labelled], top[labelled], (1, 3, 5), propensity)),
    )


def without_others(Y, kept):
    chosen = Y.copy()
    chosen.data = chosen.data * kept[chosen.indices]
    chosen.eliminate_zeros()
    return chosen


def numbers(values) -> str:
    return " ".join(f"{100 * value:.2f}" for value in values)


if __name__ == "__main__":
    main()
