"""What the words of label names add to a `Tagger`: on its validation split, on dev and on test.

    python benchmarks/label_names.py [SET ...] [--seeds N]

Reads sets of texts under `$UMPTEEN_DATA`; `pydocs` is built in. `Tagger().fit` tries names on a
validation split, a tenth of the training texts. The dev and test parts of pydocs are of another
kind than nearly all of its training texts, so its validation split says little about them.
"""

import argparse
import shlex
import sys
from statistics import mean, stdev
from typing import Any

from harness.environment import BENCHMARKS, machine, versions
from harness.report import made_by, table_lines, write_results

import umpteen as um
from umpteen.data import Dataset
from umpteen.metrics import ndcg_at_k, precision_at_k, recall_at_k

SETS = ("pydocs", "cooking", "debian-tags")
RESULTS = BENCHMARKS / "results" / "label_names.json"
METRICS = {
    "P@1": lambda Y, top: precision_at_k(Y, top, 1),
    "nDCG@5": lambda Y, top: ndcg_at_k(Y, top, 5),
    "recall@5": lambda Y, top: recall_at_k(Y, top, 5),
}
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/label_names.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [],
    }
    for name in options.sets:
        data = um.data.load(name)
        for seed in range(options.seeds):
            for names in ("no", "yes"):
                results["rows"].append(measured(name, data, seed, names))
                write_results(results, RESULTS, markdown(results))
                print(results["rows"][-1], file=sys.stderr)


def measured(name: str, data: Dataset, seed: int, names: str) -> Row:
    texts = "auto" if names == "yes" else None
    tagger = um.Tagger(random_state=seed)
    tagger.fit(data.train.texts, data.train.labels, label_texts=texts)
    assert tagger.validated_ is not None
    row: Row = {"set": name, "seed": seed, "label names": names}
    row["validation P@1"] = 100 * float(tagger.validated_.hits[:, 0].mean())
    for part in ("dev", "test"):
        if part in data.splits:
            row |= {f"{part} {key}": value for key, value in quality(tagger, data, part).items()}
    return row


def quality(tagger: um.Tagger, data: Dataset, part: str) -> dict[str, float]:
    """In percent, without labels that no training text has."""
    split, known = data.splits[part], tagger.label_names_
    Y = known.matrix([[label for label in own if label in known.ids] for own in split.labels])
    top = tagger.predict_topk(split.texts, 5)
    return {name: 100 * float(metric(Y, top)) for name, metric in METRICS.items()}


def markdown(results: dict[str, Any]) -> str:
    """One row for each set and choice: mean and standard deviation over seeds."""
    figures = ["validation P@1", *(f"{part} {key}" for part in ("dev", "test") for key in METRICS)]
    lines = [["set", "label names", "seeds", *figures]]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        for names in ("no", "yes"):
            own = [r for r in results["rows"] if (r["set"], r["label names"]) == (name, names)]
            cells = [shown([row[figure] for row in own if figure in row]) for figure in figures]
            lines.append([name, names, str(len(own)), *cells])
    about = (
        f"{made_by(results)} In percent, mean and standard deviation over seeds. `Tagger()` tries "
        'names on its validation split, and used them on all of these sets; "no" is '
        "`fit(..., label_texts=None)`."
    )
    title = "# The tagger: what the words of label names add"
    return "\n\n".join([title, about, table_lines(lines)]) + "\n"


def shown(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    return f"{mean(values):.1f} ± {stdev(values):.1f}"


if __name__ == "__main__":
    main()
