"""Why LabelTree's defaults are what they are: each choice undone, on validation parts only.

`python benchmarks/choices.py` trains on parts of the training sets under `$UMPTEEN_DATA` (for
eurlex57k the official dev part is the validation part, for the others every fifth block of a
hundred samples in file order, so that near-duplicates stay on one side) and prints a table.
Test parts are not read.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um

CHOICES = {
    "defaults": {},
    "3 trees": {"n_trees": 3},
    "no trust": {"recipe__trust": False},
    "no hard negatives": {"recipe__hard_negatives": 0, "recipe__path_weight": 1.0},
    "5 hard negatives": {"recipe__hard_negatives": 5},
    "full path weight": {"recipe__path_weight": 1.0},
    "no path weight": {"recipe__path_weight": 0.0},
    "narrow tree (16)": {"branching": 16},
    "positives weigh 1": {"positive_weight": 1.0},
    "cost 1, positives 1": {"cost": 1.0, "positive_weight": 1.0},
    "keep more (prune 0.05)": {"prune": 0.05},
    "keep less (prune 0.2)": {"prune": 0.2},
    "beam 4": {"beam_width": 4},
    "beam 20": {"beam_width": 20},
    "tolerance 0.05": {"recipe__tolerance": 0.05},
    "logistic, cost 4": {"recipe__loss": "logistic", "cost": 4.0},
    "XR-Linear corner": um.LabelTree.xr_linear().get_params(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets", nargs="+", default=["debian-deps", "wordnet-ancestors", "eurlex57k"]
    )
    parser.add_argument("--choices", nargs="+", default=list(CHOICES))
    arguments = parser.parse_args()
    for name in arguments.sets:
        X, Y, X_held, Y_held = validation(name)
        um.LabelTree().fit(X[:300], Y[:300]).predict_topk(X[:2])  # kernels are compiled now
        table = Table("choice", "P@1/3/5", "PSP@1/3/5", "CPU-s", "MB", "us/row", title=name)
        for row in rows(arguments.choices, X, Y, X_held, Y_held):
            table.add_row(*row)
        Console(width=110).print(table)


def rows(
    choices: list[str], X: csr_matrix, Y: csr_matrix, X_held: csr_matrix, Y_held: csr_matrix
) -> Iterator[tuple[str, ...]]:
    chance = um.metrics.propensity(Y)
    for choice in choices:
        model = um.LabelTree().set_params(**CHOICES[choice])
        start = time.process_time()
        model.fit(X, Y)
        trained = time.process_time()
        top = model.predict_topk(X_held)
        predicted = time.process_time()
        precision = 100 * um.metrics.precision_at_k(Y_held, top, (1, 3, 5))
        psp = 100 * um.metrics.psp_at_k(Y_held, top, (1, 3, 5), chance)
        yield (
            choice,
            " ".join(f"{value:.2f}" for value in precision),
            " ".join(f"{value:.2f}" for value in psp),
            f"{trained - start:.1f}",
            f"{megabytes(model):.1f}",
            f"{1e6 * (predicted - trained) / X_held.shape[0]:.0f}",
        )


def validation(name: str) -> tuple[csr_matrix, csr_matrix, csr_matrix, csr_matrix]:
    """Train and validation matrices; labels are those of the train part."""
    data = um.data.load(name)
    texts, labels = np.array(data.train.texts, dtype=object), data.train.Y
    if data.dev is not None:
        held_texts, held_labels = data.dev.texts, data.dev.Y
    else:
        held = (np.arange(len(texts)) // 100) % 5 == 4
        held_texts, held_labels = texts[held], labels[held]
        texts, labels = texts[~held], labels[~held]
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X, X_held = vectorizer.fit_transform(texts), vectorizer.transform(held_texts)
    seen = np.flatnonzero(np.diff(labels.tocsc().indptr))
    return X, labels[:, seen], X_held, held_labels[:, seen]


def megabytes(model: um.LabelTree) -> float:
    arrays = (vars(tree).values() for tree in model.trees_)
    return sum(a.nbytes for tree in arrays for a in tree if isinstance(a, np.ndarray)) / 1e6


if __name__ == "__main__":
    main()
