"""What a start of biases at the frequencies of labels is worth, for each head and loss.

    python benchmarks/head_starts.py
    python benchmarks/head_starts.py --heads "sampling, bce" "full, bce" --seeds 1

`NeuralClassifier` learns from the first 4,000 texts of cooking: with `Head.init_bias`, with the
biases that a new head has, and without biases of labels where that is possible. With one class per
sample, the class is the rarest of its labels that at least three of these texts have. Precision at
1 (accuracy) in % and the mean negative log-likelihood of a sample are measured on the test split,
for labels seen in training. The likelihood is that of the class; with "bce" and powersets, the sum
of the binary cross-entropies of all labels; with "pick-all", the mean over the sample's labels.
"""

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import harness  # noqa: F401 (makes papers importable)
import numpy as np
from harness.environment import machine, results_folder, versions
from harness.report import table_lines, write_results

import umpteen as um
from papers.sets import rarest_label
from umpteen.neural import Head

N_TEXTS, MOST_TESTED = 4_000, 2_000
heads = um.neural.heads
ONE_CLASS: dict[str, tuple[Any, dict[str, Any]]] = {
    "full": (heads.Full, {}),
    "product": (heads.Product, {}),
    "product, 4 codes": (heads.Product, {"n_codes": 4}),
    "product, bce": (heads.Product, {"loss": "bce"}),
    "cascade": (heads.Cascade, {}),
    "sampling": (heads.Sampling, {}),
    "sampling, own groups": (heads.Sampling, {"sampling": "own"}),
    "adversarial": (heads.Adversarial, {}),
    "adversarial, of the paper": (heads.Adversarial, {"objective": "negative_sampling"}),
}
SEVERAL: dict[str, tuple[Any, dict[str, Any]]] = {
    "full, bce": (heads.Full, {"loss": "bce"}),
    "cascade, bce": (heads.Cascade, {"loss": "bce"}),
    "sampling, bce": (heads.Sampling, {"loss": "bce"}),
    "powerset": (heads.Powerset, {}),
    "full, pick-all": (heads.Full, {"loss": "pick_all_labels"}),
    "etf, pick-all": (heads.Etf, {}),
}
HEADS = ONE_CLASS | SEVERAL
STARTS = ("frequencies", "all alike", "no biases")
_NO_BIASES = ("sampling", "cascade, bce", "sampling, bce")


@dataclass
class Texts:
    """Training and test data: `Y` is an indicator, or one class per sample."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heads", nargs="+", default=list(HEADS), choices=HEADS, metavar="HEAD")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    several = cooking()
    one_class = with_one_class(several)
    for name in options.heads:
        texts = one_class if name in ONE_CLASS else several
        for start in starts(name):
            runs = [measured(name, start, texts, seed) for seed in range(options.seeds)]
            keep({"head": name, "start": start, "runs": runs})


def starts(name: str) -> tuple[str, ...]:
    """The starts that differ for a head."""
    if name == "sampling":  # `init_bias` has no effect
        return STARTS[1:]
    return STARTS if name in _NO_BIASES else STARTS[:2]


def keep(row: dict[str, Any]) -> None:
    """Write a row and the page, with rows of earlier runs."""
    file = results_folder(quick=False) / "head_starts.json"
    rows = json.loads(file.read_text("utf-8"))["rows"] if file.exists() else []
    rows = [each for each in rows if (each["head"], each["start"]) != (row["head"], row["start"])]
    results = {
        "command": shlex.join(["python", "benchmarks/head_starts.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [*rows, row],
    }
    write_results(results, file, markdown(results))
    print(row, flush=True)


def cooking() -> Texts:
    """Labels that no sample has in training are left out, and samples that have no other."""
    data = um.data.load("cooking")
    train = data.train.take(np.arange(N_TEXTS))
    test = data.test.take(np.arange(min(MOST_TESTED, len(data.test))))
    vectorizer = um.text.Vectorizer().fit(train.texts)
    seen = np.flatnonzero(train.Y.getnnz(axis=0))
    Y, Y_test = train.Y[:, seen], test.Y[:, seen]
    kept = np.flatnonzero(Y_test.getnnz(axis=1))
    X, X_test = vectorizer.transform(train.texts), vectorizer.transform(test.texts)
    return Texts(X, Y, X_test[kept], Y_test[kept])


def with_one_class(texts: Texts) -> Texts:
    """The same with the rarest label of each sample that is not too rare."""
    counts = texts.Y.getnnz(axis=0)
    chosen, tested = (rarest_label(Y, counts) for Y in (texts.Y, texts.Y_test))
    seen = np.unique(chosen[chosen >= 0])
    rows, test_rows = np.flatnonzero(chosen >= 0), np.flatnonzero(np.isin(tested, seen))
    return Texts(
        texts.X[rows], np.searchsorted(seen, chosen[rows]),
        texts.X_test[test_rows], np.searchsorted(seen, tested[test_rows]),
    )  # fmt: skip


def measured(name: str, start: str, texts: Texts, seed: int) -> list[float]:
    """Precision at 1, and the mean negative log-likelihood."""
    kind, options = HEADS[name]
    own = kind.init_bias if start == "frequencies" else Head.init_bias
    if start == "no biases":
        options = {**options, "bias": False}
    with patch.object(kind, "init_bias", own):
        head = um.neural.blueprint(kind, **options)
        model = um.NeuralClassifier("bag", head, random_state=seed, verbose=False, n_jobs=1)
        model.fit(texts.X, texts.Y)
    return [100 * model.score(texts.X_test, texts.Y_test), likelihood_loss(name, model, texts)]


def likelihood_loss(name: str, model: um.NeuralClassifier, texts: Texts) -> float:
    """The mean negative log-likelihood of a test sample."""
    if name in ONE_CLASS:
        return -float(model.predict_log_proba(texts.X_test, texts.Y_test).mean())
    n, n_labels = texts.Y_test.shape
    every = np.broadcast_to(np.arange(n_labels), (n, n_labels))
    logs = model.predict_log_proba(texts.X_test, every).astype(np.float64)
    truth = texts.Y_test.toarray() > 0
    if name.endswith("pick-all"):
        return -float(np.mean((logs * truth).sum(1) / truth.sum(1)))
    others = np.log(-np.expm1(np.minimum(logs, -1e-7)))  # log(1 - p), as far as float32 knows p
    return -float(np.where(truth, logs, others).sum(1).mean())


def markdown(results: dict[str, Any]) -> str:
    what = {
        "one class per sample": (ONE_CLASS, "accuracy, %"),
        "several labels": (SEVERAL, "P@1, %"),
    }
    parts = [
        "# Where biases begin",
        "Made by `python benchmarks/head_starts.py`. Measured on the test split of cooking, after "
        f"training on {N_TEXTS:,} texts. In brackets is the mean negative log-likelihood of a "
        "sample, which can be compared within a row only.",
    ]
    for title, (names, score) in what.items():
        table = [[f"{title}: {score}", *STARTS]]
        for head in names:
            if any(row["head"] == head for row in results["rows"]):
                found = {
                    row["start"]: row["runs"] for row in results["rows"] if row["head"] == head
                }
                table.append(
                    [head, *(cell(found[each]) if each in found else "" for each in STARTS)]
                )
        if len(table) > 1:
            parts.append(table_lines(table))
    return "\n\n".join(parts) + "\n"


def cell(runs: list[list[float]]) -> str:
    score, loss = np.mean(runs, axis=0)
    spread = f" ± {np.std(runs, axis=0, ddof=1)[0]:.1f}" if len(runs) > 1 else ""
    return f"{score:.1f}{spread} ({loss:.2f})"


if __name__ == "__main__":
    main()
