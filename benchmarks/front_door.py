"""`Tagger()` before and after languages and names of labels: how good, how sure, at what cost.

    python benchmarks/front_door.py [SET ...] [--seeds N] [--again]

Reads sets of texts under `$UMPTEEN_DATA`; `pydocs` is built in. "before" are plain words without
names of labels. "after" is `Tagger()` with the set's label texts, or its labels' own names. The
other rows change one thing that `Tagger()` chose, which shows whether the choice was right on the
test part. Labels that no training text has are left out. What `results/front_door.json` already has
is not measured again, so a run may be interrupted; `--again` measures the named sets anew.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from statistics import mean, stdev
from typing import Any

import numpy as np
from harness.environment import BENCHMARKS, machine, versions
from harness.report import made_by, table_lines, write_results
from rich.console import Console
from scipy.sparse import csr_matrix
from sklearn.base import clone

import umpteen as um
from umpteen import metrics
from umpteen.data import Dataset
from umpteen.text import Vectorizer

SEEDS = {
    "cooking": 3, "cpv-it": 3, "pydocs": 3, "debian-tags": 3, "eurlex57k": 1,
    "wordnet-ancestors": 1, "debian-deps": 1,
}  # fmt: skip
COSTS = {1.0: (0.25, 2.0), 0.25: (1.0, 1.0)}  # the other cost and weight of positives
ROWS = ("before", "after", "other words", "other cost", "no label texts")
RESULTS = BENCHMARKS / "results" / "front_door.json"
QUALITY = (
    "P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "micro F1", "ECE", "ECE above 0.1",
)  # fmt: skip
LOG = Console(stderr=True)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=list(SEEDS), metavar="SET")
    parser.add_argument("--seeds", type=int, help="number of seeds, if not the usual one of a set")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    if unknown := {*options.sets} - {*SEEDS}:
        parser.error(f"unknown {sorted(unknown)}; sets are {list(SEEDS)}")
    rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    if options.again:
        rows = [row for row in rows if row["set"] not in options.sets]
    for name in options.sets:
        data = known_labels_only(um.data.load(name))
        for row in measured(name, data, range(options.seeds or SEEDS[name]), rows):
            rows = in_order([*rows, row])
            results = {
                "command": "python benchmarks/front_door.py",
                "machine": machine(), "versions": versions(), "rows": rows,
            }  # fmt: skip
            write_results(results, RESULTS, markdown(results))
    Console(width=200).print(RESULTS.with_suffix(".md").read_text(), markup=False, highlight=False)


def known_labels_only(data: Dataset) -> Dataset:
    """Labels that no training text has are nobody's fault."""
    seen = np.flatnonzero(np.diff(data.train.Y.tocsc().indptr))
    names = [data.label_names[i] for i in seen]
    texts = None if data.label_texts is None else [data.label_texts[i] for i in seen]
    parts = {
        part: replace(one, Y=csr_matrix(one.Y[:, seen]), label_names=names)
        for part, one in data.splits.items()
    }
    return replace(data, label_names=names, label_texts=texts, **parts)


def measured(name: str, data: Dataset, seeds: range, rows: list[Row]) -> Iterator[Row]:
    """Rows that are not there yet; "after" comes first, as others change what it chose."""
    done = {(row["system"], row["seed"]): row for row in rows if row["set"] == name}
    texts: Any = "auto"
    if data.label_texts is not None:
        texts = dict(zip(data.label_names, data.label_texts, strict=True))
    if any((system, seed) not in done for system, seed in product(ROWS, seeds)):
        um.Tagger().fit(data.train.texts[:600], data.train.labels[:600]).predict("warm up")
    for seed in seeds:
        for system in ("after", *ROWS):
            if (system, seed) in done:
                continue
            LOG.print(f"{name}, seed {seed}: {system}")
            tagger = MAKE[system](seed, done.get(("after", seed), {}).get("chosen", {}))
            row = {"set": name, "system": system, "seed": seed}
            row |= figures(tagger, data, None if system in PLAIN else texts)
            done[system, seed] = row
            yield row


def before(seed: int, chosen: Row) -> um.Tagger:
    return um.Tagger(um.LabelTree.for_texts(random_state=seed), language=None, random_state=seed)


def after(seed: int, chosen: Row) -> um.Tagger:
    return um.Tagger(random_state=seed)


def as_chosen(seed: int, chosen: Row) -> um.Tagger:
    """The same settings, as if they had been given."""
    cost = chosen.get("cost", 1.0)
    tree = um.LabelTree.for_texts(
        cost=cost, positive_weight=COSTS[COSTS[cost][0]][1], random_state=seed
    )
    words = {} if chosen["forms"] == "words" else {"language": chosen["language"]}
    forms = {"forms": chosen["forms"]} if words else {}
    return um.Tagger(tree, vectorizer=Vectorizer(spare=10_000, **words, **forms), random_state=seed)


def other_words(seed: int, chosen: Row) -> um.Tagger:
    tagger = as_chosen(seed, chosen)
    language = "auto" if chosen["forms"] == "words" else None
    return tagger.set_params(vectorizer=Vectorizer(spare=10_000, language=language))


def other_cost(seed: int, chosen: Row) -> um.Tagger:
    cost, weight = COSTS[chosen["cost"]]
    tagger = as_chosen(seed, chosen)
    return tagger.set_params(classifier__cost=cost, classifier__positive_weight=weight)


MAKE: dict[str, Callable[[int, Row], um.Tagger]] = {
    "before": before, "after": after, "other words": other_words, "other cost": other_cost,
    "no label texts": as_chosen,
}  # fmt: skip
PLAIN = {"before", "no label texts"}


def figures(tagger: um.Tagger, data: Dataset, label_texts: Any) -> Row:
    tagger, test = clone(tagger), data.test
    cpu = time.process_time()
    tagger.fit(data.train.texts, data.train.labels, label_texts)
    cpu = time.process_time() - cpu
    passes = []
    for _ in range(3):
        start = time.process_time()
        top = tagger.predict_topk(test.texts, 20)
        passes.append(time.process_time() - start)
    names = tagger.label_names_
    Y, Y_train = names.matrix(test.labels), names.matrix(data.train.labels)
    tagger.tune_thresholds("micro_f1")
    tags = tagger.predict(test.texts, threshold="tuned")
    predicted = names.matrix([[label for label, _ in some] for some in tags])
    hits = np.array(
        [np.isin(best, own) for best, own in zip(top.labels, Y.tolil().rows, strict=True)]
    )
    given = top.labels >= 0
    first, sure = given & (np.arange(20) < 5), given & (top.scores >= 0.1)
    at = {
        "P": metrics.precision_at_k(Y, top, (1, 3, 5)),
        "PSP": metrics.psp_at_k(Y, top, (1, 3, 5), metrics.propensity(Y_train)),
    }
    found = {f"{key}@{k}": 100 * at[key][i] for key in at for i, k in enumerate((1, 3, 5))}
    errors = {"ECE": first, "ECE above 0.1": sure}
    return {
        **{key: float(value) for key, value in found.items()},
        "nDCG@5": 100 * float(metrics.ndcg_at_k(Y, top, 5)),
        "micro F1": 100 * metrics.micro_f1(Y, predicted),
        **{
            key: 100 * float(metrics.expected_calibration_error(top.scores[some], hits[some]))
            for key, some in errors.items()
        },
        "cpu": cpu, "us": 1e6 * min(passes) / len(test.texts), "chosen": tagger.chosen,
        "names": names_count(tagger),
    }  # fmt: skip


def names_count(tagger: um.Tagger) -> str:
    """How label texts count."""
    texts = getattr(tagger.classifier_, "label_texts_", None)
    if texts is None or not texts.is_used:
        return "not used"
    return "ranker" if texts.ranker is not None else f"weight {texts.weight}"


def in_order(rows: list[Row]) -> list[Row]:
    found = {(row["set"], row["system"], row["seed"]): row for row in rows}
    order = product(SEEDS, ROWS, range(100))
    return [found[key] for key in order if key in found]


def markdown(results: Row) -> str:
    table = [["set", "row", "seeds", *QUALITY, "training, CPU s", "CPU µs per text"]]
    choices = [["set", "seed", "chosen", "label texts", "nDCG@5", *ROWS[2:]]]
    by_row: dict[tuple[str, str], list[Row]] = {}
    for row in results["rows"]:
        by_row.setdefault((row["set"], row["system"]), []).append(row)
    for (name, system), some in by_row.items():
        cells = [spread([row[key] for row in some]) for key in QUALITY]
        costs = [f"{mean(row[key] for row in some):,.{d}f}" for key, d in (("cpu", 1), ("us", 0))]
        table.append([name, system, str(len(some)), *cells, *costs])
        for row in some if system == "after" else []:
            choices.append(choice(row, results["rows"]))
    parts = [TITLE, made_by(results), NOTES, table_lines(table), CHOICES, table_lines(choices)]
    return "\n\n".join(parts) + "\n"


def spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{mean(values):.1f} ± {stdev(values):.1f}"


def choice(row: Row, rows: list[Row]) -> list[str]:
    """What was chosen, and the nDCG@5 if it had not been."""
    others = {r["system"]: r for r in rows if (r["set"], r["seed"]) == (row["set"], row["seed"])}
    told = ", ".join(f"{key} {value}" for key, value in row["chosen"].items())
    differences = [
        f"{others[system]['nDCG@5'] - row['nDCG@5']:+.1f}" if system in others else ""
        for system in ROWS[2:]
    ]
    return [row["set"], str(row["seed"]), told, row["names"], f"{row['nDCG@5']:.1f}", *differences]


TITLE = "# The tagger: what its choices gain"
NOTES = """Test parts, in percent; mean and standard deviation over seeds. "before" are plain words
without names of labels, "after" is `Tagger()` with label texts (cooking, debian-tags: the labels'
names). The other rows change one thing that `Tagger()` chose: stems instead of words or words
instead of other forms, the other cost of the tree, no label texts. Micro F1 is with the threshold
of `tune_thresholds`. ECE is over the best five labels of a text; above 0.1, over all of the best
twenty whose probability is at least 0.1. Kernels are compiled beforehand."""
CHOICES = """## Whether the choices were right

What `Tagger()` chose, and by how much the nDCG@5 on the test part would differ without that choice:
a choice was right where the difference is negative."""

if __name__ == "__main__":
    main()
