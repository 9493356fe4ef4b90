"""SiameseXML, LabelTree and both together where labels have texts of their own.

`python benchmarks/siamese.py debian-deps` reads the set under `$UMPTEEN_DATA` and measures on its
test part; with `--dev`, on 4,000 samples of the training part instead, near copies of which are
not learned from. `--choices` trains `SiameseXML` once for each choice that could be another.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness.matrices import prepare
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.siamese.held_out import held_out
from umpteen.validation import unit_rows

CHOICES: list[dict[str, Any]] = [
    {},
    {"start": "text"},
    {"skip_above": 0.95},
    {"mine_every": 2},
    {"loss": "contrastive"},
    {"dropout": 0.0},
    {"label_power": 0.45},
    {"residual": True},
    {"modules": ("embed", "mine", "refine", "joint")},
    {"n_models": 3},
]
TAILS = (0.0, 0.5, 1.0)
_DRAW = 7  # another than the model's own


def main() -> None:
    options = parse()
    X, Y, X_test, Y_test, texts = parts(options.set, Path(options.cache), options.dev)
    table = Table("model", "P@1/3/5", "PSP@1/3/5", "training CPU-s", "wall s")
    for name, model in models(options.choices, options.seed):
        start, began = time.process_time(), time.monotonic()
        more = {} if name == "LabelTree" else {"label_features": texts}
        model.fit(X, Y, **more)
        spent = f"{time.process_time() - start:.0f}", f"{time.monotonic() - began:.0f}"
        for tail in TAILS if isinstance(model, um.SiameseXML) else (0.0,):
            if tail:
                model.set_params(tail=tail)
            said = f"{name}, tail={tail:g}" if tail else name
            table.add_row(said, *quality(model.predict_topk(X_test), Y_test, Y), *spent)
    Console(width=110).print(table)


def models(choices: bool, seed: int) -> Iterator[tuple[str, Any]]:
    if choices:
        for changes in CHOICES:
            said = ", ".join(f"{name}={value!r}" for name, value in changes.items())
            yield said or "as it is", um.SiameseXML(**changes, random_state=seed)
        return
    yield "LabelTree", um.LabelTree(random_state=seed)
    yield "LabelTree, labels' texts", um.LabelTree(random_state=seed)
    yield "SiameseXML", um.SiameseXML(random_state=seed)
    yield "fused", um.SiameseXML(fuse_with=um.LabelTree(), random_state=seed)


def parts(name: str, cache: Path, dev: bool) -> tuple:
    """X, Y, X_test, Y_test and label features, without labels that training does not have, and
    without test samples that then have none."""
    matrices = prepare(name, cache)
    X, Y, texts = matrices["X_train"], matrices["Y_train"], matrices["Z"]
    X_test, Y_test = matrices["X_test"], matrices["Y_test"]
    if dev:
        held = held_out(csr_matrix(unit_rows(X)), _DRAW)
        seen = np.flatnonzero(Y[~held].getnnz(axis=0))
        X, Y, X_test, Y_test = X[~held], Y[~held][:, seen], X[held], Y[held][:, seen]
        texts = texts[seen]
    asked = Y_test.getnnz(axis=1) > 0
    return X, Y, X_test[asked], Y_test[asked], texts


def quality(top: um.TopK, Y_test, Y) -> tuple[str, str]:
    precision = um.metrics.precision_at_k(Y_test, top, (1, 3, 5))
    scored = um.metrics.psp_at_k(Y_test, top, (1, 3, 5), um.metrics.propensity(Y))
    return tuple(" ".join(f"{100 * value:.2f}" for value in each) for each in (precision, scored))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", nargs="?", default="debian-deps")
    parser.add_argument("--cache", default="benchmarks/cache")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
