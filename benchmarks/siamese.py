"""SiameseXML compared with LabelTree and an ensemble of both, if labels have texts.

    python benchmarks/siamese.py --choices
    python benchmarks/siamese.py --seeds 3

`--choices` trains `SiameseXML` once for each setting that could be another, and measures on 3,000
samples of the training part that no model has seen (near copies stay on one side). Without it,
models are measured on the test parts: `--ensemble` adds an ensemble and linear classifiers on
pretrained vectors of words, `--rare` keeps only labels with at most 20 samples, `--new` hides a
tenth of the labels and adds them by their texts. `--frontier` measures the ensemble and
`SiameseXML` with several values of `tail`, and counts test samples without a known label as misses;
otherwise these are left out. Each model learns from `--samples` of the training part, with
`--seeds` seeds; what `--ensemble` adds has one. `--only dropout` measures only `LabelTree`,
`SiameseXML` as it is, and the rows with this word. Results go to `benchmarks/results`, to files
with the names of these options.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from scipy.sparse import csr_matrix

import umpteen as um
from papers.siamese.newcomers import Hidden, Price, hidden, scores, untrained
from papers.siamese.tasks import METRICS, Task, figures, fixed_vectors, task
from umpteen.splitting import validation_split

SETS = ("debian-deps", "wordnet-ancestors", "eurlex57k")
CHOICES: list[dict[str, Any]] = [
    {},
    {"dim": 512},
    {"epochs": 12},
    {"recipe__label_power": 0.45},
    {"recipe__modules": ("embed", "mine", "refine")},
    {"recipe__classifier": "cosine"},
    {"recipe__word_classifiers": False},
    {"recipe__texts_as_samples": False},
    {"recipe__activation": "relu"},
    {"recipe__loss": "contrastive"},
    {"recipe__start": "text"},
    {"recipe__dropout": 0.0},
    {"recipe__residual": True},
]
FIXED: dict[str, tuple[str, Any]] = {  # what is no setting: its place, and another value
    "without the sample's best cosine": (
        "umpteen.siamese.fitting.learned_texts", lambda data: None,
    ),
    "a tenth of the samples to learn weights": ("umpteen.siamese.fitting._LARGEST_SPLIT", 0.1),
}  # fmt: skip
TAILS, FRONTIER = (0.0, 0.5), (0.0, 0.25, 0.5, 0.75, 1.0)
NEW_TAILS = (0.0, 0.5, 1.0)
NEW_HEADINGS = [
    "recall@5 / 10 / 50", "PSP@1 / 3 / 5", "P@1 of all labels",
    "P@1 of labels with samples, before and after", "nDCG@5 of these, before and after",
]  # fmt: skip
NEW_NOTE = (
    "Recall and PSP count new labels only, on test samples that have one. The other columns are of "
    "all test samples: P@1 of old and new labels, and figures of labels with samples, by the same "
    "model before and after `add_labels`."
)
PLACES = slice(0, 3), slice(3, 6)
NEW_PLACES = *PLACES, slice(6, 7), slice(7, 9), slice(9, 11)
_SAMPLES, _HELD, _RARE = 10_000, 3_000, 20
_FIXED_VECTORS = "Classifiers on pretrained vectors, as SLICE"
_ROWS = {False: "siamese", True: "siamese_choices"}
_THREE = "SiameseXML(n_models=3)"
_ONE_SEED = ("Ensemble of both", _FIXED_VECTORS, _THREE)
ALWAYS = ("LabelTree", "SiameseXML", "SiameseXML as it is")
KINDS = ("ensemble", "rare", "new", "frontier")


def main() -> None:
    options = parse()
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/siamese.py", *sys.argv[1:]]),
        "machine": machine(), "versions": versions(), "tables": {},
    }  # fmt: skip
    kinds = [name for name in KINDS if getattr(options, name)]
    quick = tuple(options.sets) != SETS and not kinds
    names = [_ROWS[options.choices], *kinds, *options.only]
    names += [f"{options.ngrams}grams"] if options.ngrams > 1 else []
    path = results_folder(quick) / f"{'_'.join(names)}.json"
    for name in options.sets:
        whole = task(name, False, options.ngrams)
        parts = held_out(whole) if options.choices else whole
        parts = fewer(parts, options.samples)
        if options.rare:
            parts = rare_only(parts)
        measure = new_labels if options.new else frontier if options.frontier else quality
        title = f"{name}: {parts.in_words().partition(': ')[2]}"
        results["tables"][title] = rows = {}
        chosen = choices() if options.choices else models(options.ensemble or options.frontier)
        for said, make in chosen.items():
            if options.only and not is_chosen(said, options.only):
                continue
            for seed in range(1 if said in _ONE_SEED else options.seeds):
                with changed(said):
                    found = measure(parts, said, make(seed))
                for row, values in found.items():
                    rows.setdefault(row, []).append(values)
                    print(name, row, *(f"{value:.1f}" for value in values), flush=True)
            write_results(results, path, markdown(results))
    print(markdown(results))


Make = Callable[[int], Any]


def is_chosen(said: str, only: list[str]) -> bool:
    """Whether a row is wanted: `LabelTree` and `SiameseXML` as it is always are."""
    return said in ALWAYS or any(name in said for name in only)


def choices() -> dict[str, Make]:
    def making(changes: dict[str, Any]) -> Make:
        return lambda seed: siamese(seed).set_params(**changes)

    made: dict[str, Make] = {"LabelTree": tree}
    for changes in CHOICES:
        said = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        made[said or "SiameseXML as it is"] = making(changes)
    return {**made, **dict.fromkeys(FIXED, siamese)}


def changed(said: str) -> AbstractContextManager[Any]:
    """With another value of what is no setting, if that is the choice."""
    return patch(*FIXED[said]) if said in FIXED else nullcontext()


def models(ensemble: bool) -> dict[str, Make]:
    made: dict[str, Make] = {
        "LabelTree": tree, "LabelTree, label texts": tree, "SiameseXML": siamese
    }  # fmt: skip
    if ensemble:
        made[_FIXED_VECTORS] = fixed_vectors
        made[_THREE] = lambda seed: siamese(seed).set_params(n_models=3)
        made["Ensemble of both"] = lambda seed: um.Ensemble(
            [siamese(seed), tree(seed)], random_state=seed, verbose=False
        )
    return made


def tree(seed: int) -> um.LabelTree:
    return um.LabelTree(random_state=seed, verbose=False)


def siamese(seed: int) -> um.SiameseXML:
    return um.SiameseXML(random_state=seed, verbose=False)


def frontier(parts: Task, said: str, model: Any) -> dict[str, list[float]]:
    """The same as `quality` with more tails, and P over all samples of the test part."""
    tails = FRONTIER if said in ("SiameseXML", "Ensemble of both") else (0.0,)
    known = parts.X_test.shape[0] / len(um.data.load(parts.name).test)
    rows = quality(parts, said, model, tails)
    return {row: [*(known * p for p in values[:3]), *values[3:]] for row, values in rows.items()}


def quality(
    parts: Task, said: str, model: Any, tails: tuple[float, ...] | None = None
) -> dict[str, list[float]]:
    """P and PSP at 1, 3 and 5 in %, and CPU seconds of training."""
    start = time.process_time()
    fit(model, parts, said)
    spent = time.process_time() - start
    found = {}
    for tail in tails or (TAILS if said == "SiameseXML" else (0.0,)):
        model.set_params(**({"tail": tail} if tail else {}))
        of = dict(zip(METRICS, figures(parts, model.predict_topk(parts.X_test)), strict=True))
        name = f"{said}, tail={tail:g}" if tail else said
        found[name] = [*of["P"].tolist(), *of["PSP"].tolist(), spent]
    return found


def new_labels(parts: Task, said: str, model: Any) -> dict[str, list[float]]:
    """Figures of new labels, with random and with pretrained words: see `NEW_HEADINGS`."""
    if said != "SiameseXML":
        return {}
    case = hidden(parts)
    found = {}
    for words, table in (
        ("", None), (", pretrained words", um.text.pretrained_vectors(parts.feature_names)),
    ):  # fmt: skip
        for name, chosen in (said, model), ("Without training", untrained(table)):
            tails = NEW_TAILS if chosen is model else (0.0,)
            rows = added(case, chosen, table, tails)
            found.update({f"{name}{words}, {how}": values for how, values in rows.items()})
    return found


def added(case: Hidden, model: Any, table: Any, tails: tuple[float, ...]) -> dict[str, list[float]]:
    """The same for one model, among all labels by `tail`, and among the new ones."""
    texts, n, everyone = case.task.label_features, case.n_learned, case.everyone
    model.set_params(tail=0.0)
    model.fit(case.task.X, case.learned, label_features=texts[:n], token_vectors=table)
    before = {tail: model.set_params(tail=tail).predict_topk(everyone.X_test, 5) for tail in tails}
    model.add_labels(label_features=texts[n:])
    found = {}
    for tail in tails:
        model.set_params(tail=tail)
        top = model.predict_topk(case.task.X_test, 50)
        prices = [
            Price.of(case, answers)
            for answers in (before[tail], model.predict_topk(everyone.X_test, 5))
        ]
        how = f"tail={tail:g}, among all" if len(tails) > 1 else "among all"
        found[how] = [*scores(case, top).tolist(), *_paid(*prices)]
    model.set_params(tail=0.0)
    top = model.remove_labels(np.arange(n)).predict_topk(case.task.X_test, 50)
    return {**found, "among new ones": scores(case, top).tolist()}


def _paid(before: Price, after: Price) -> list[float]:
    return [
        after.precision, before.learned_precision, after.learned_precision, before.learned_ndcg,
        after.learned_ndcg,
    ]  # fmt: skip


def fit(model: Any, parts: Task, said: str) -> None:
    more: dict[str, Any] = {"label_features": parts.label_features}
    if said == _FIXED_VECTORS:
        more = {"token_vectors": um.text.pretrained_vectors(parts.feature_names)}
    elif said == "LabelTree":
        more = {}
    model.fit(parts.X, parts.Y, **more)


def held_out(whole: Task) -> Task:
    """To learn from and to choose by, both of the training part."""
    held = validation_split(whole.X, whole.Y, 7, fraction=1.0, most=_HELD, copies_together=True)
    assert held is not None
    return replace(
        whole, X=whole.X[~held], Y=whole.Y[~held], X_test=whole.X[held], Y_test=whole.Y[held]
    )


def fewer(parts: Task, most: int) -> Task:
    """Fewer samples to learn from, and only their labels."""
    rows = np.sort(np.random.default_rng(5).permutation(parts.X.shape[0])[:most])
    return with_labels(replace(parts, X=parts.X[rows], Y=csr_matrix(parts.Y[rows])))


def rare_only(parts: Task) -> Task:
    """Without labels of more samples than a few."""
    counts = parts.Y.getnnz(axis=0)
    kept = csr_matrix(parts.Y.multiply(counts <= _RARE))
    kept.eliminate_zeros()
    return with_labels(replace(parts, Y=kept))


def with_labels(parts: Task) -> Task:
    """Only labels that have samples, and test samples that have one of these."""
    seen = np.flatnonzero(parts.Y.getnnz(axis=0))
    Y_test = csr_matrix(parts.Y_test[:, seen])
    asked = np.flatnonzero(Y_test.getnnz(axis=1))
    return replace(
        parts, Y=csr_matrix(parts.Y[:, seen]), X_test=parts.X_test[asked], Y_test=Y_test[asked],
        label_features=parts.label_features[seen], label_names=[], texts_test=[],
    )  # fmt: skip


def markdown(results: dict[str, Any]) -> str:
    command = results["command"]
    new, title = "--new" in command, "SiameseXML compared with LabelTree"
    if new:
        title = "SiameseXML: labels hidden from training and added by their texts"
    elif "--choices" in command:
        title = "Settings of SiameseXML, chosen on samples of the training part"
    lines = [f"# {title}", "", made_by(results)]
    if "--frontier" in command:
        lines += ["", "P counts all test samples; those without a known label are misses."]
    if new:
        lines += ["", NEW_NOTE]
    heading = NEW_HEADINGS if new else ["P@1 / 3 / 5", "PSP@1 / 3 / 5", "training CPU s"]
    for title, rows in results["tables"].items():
        table = [["", *heading]]
        for name, runs in rows.items():
            places = NEW_PLACES[: 2 if len(runs[0]) == 6 else None] if new else PLACES
            cells = [_cell([values[place] for values in runs]) for place in places]
            if not new:
                cells.append(f"{np.mean(runs, axis=0)[6]:.0f}")
            table.append([name, *cells, *[""] * (len(heading) - len(cells))])
        lines += ["", f"## {title}", "", table_lines(table)]
    return "\n".join(lines) + "\n"


def _cell(runs: list[list[float]]) -> str:
    """Means, and standard deviations over seeds."""
    mean, spread = (_said(found) for found in (np.mean(runs, axis=0), np.std(runs, axis=0)))
    return f"{mean} (± {spread})" if len(runs) > 1 else mean


def _said(values: Any) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--ensemble", action="store_true")
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--frontier", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--samples", type=int, default=_SAMPLES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ngrams", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
