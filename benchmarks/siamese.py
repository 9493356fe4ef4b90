"""SiameseXML, LabelTree and both together where labels have texts of their own.

`python benchmarks/siamese.py debian-deps` reads the set under `$UMPTEEN_DATA` and measures on its
test part; with `--dev`, on a tenth of the training part instead, in runs of forty neighbours, so
that packages of the same name do not stand on both sides.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from harness.matrices import prepare
from rich.console import Console
from rich.table import Table

import umpteen as um

_NEIGHBOURS = 40


def main() -> None:
    arguments = _arguments()
    X, Y, X_test, Y_test, texts = parts(arguments.set, Path(arguments.cache), arguments.dev)
    table = Table("model", "P@1/3/5", "PSP@1/3/5", "training CPU-s", "wall s")
    fused = um.SiameseXML(fuse_with=um.LabelTree(), random_state=arguments.seed)
    alone = um.SiameseXML(random_state=arguments.seed)
    for name, model in (("LabelTree", um.LabelTree()), ("SiameseXML", alone), ("fused", fused)):
        start, began = time.process_time(), time.monotonic()
        more = {} if name == "LabelTree" else {"label_features": texts}
        model.fit(X, Y, **more)
        spent = f"{time.process_time() - start:.0f}", f"{time.monotonic() - began:.0f}"
        for tail in (0.0,) if name == "LabelTree" else (0.0, 0.5, 1.0):
            if name != "LabelTree":
                model.set_params(tail=tail)
            said = f"{name}, tail={tail:g}" if tail else name
            table.add_row(said, *quality(model.predict_topk(X_test), Y_test, Y), *spent)
    Console(width=100).print(table)


def parts(name: str, cache: Path, dev: bool) -> tuple:
    """X, Y, X_test, Y_test and label features, without labels that training does not have."""
    matrices = prepare(name, cache)
    X, Y, texts = matrices["X_train"], matrices["Y_train"], matrices["Z"]
    if not dev:
        return X, Y, matrices["X_test"], matrices["Y_test"], texts
    block = np.arange(X.shape[0]) // _NEIGHBOURS
    drawn = np.random.default_rng(0).permutation(block[-1] + 1)[: (block[-1] + 1) // 10]
    held_out = np.isin(block, drawn)
    seen = np.flatnonzero(Y[~held_out].getnnz(axis=0))
    return X[~held_out], Y[~held_out][:, seen], X[held_out], Y[held_out][:, seen], texts[seen]


def quality(top: um.TopK, Y_test, Y) -> tuple[str, str]:
    precision = um.metrics.precision_at_k(Y_test, top, (1, 3, 5))
    scored = um.metrics.psp_at_k(Y_test, top, (1, 3, 5), um.metrics.propensity(Y))
    return tuple(" ".join(f"{100 * value:.2f}" for value in each) for each in (precision, scored))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", nargs="?", default="debian-deps")
    parser.add_argument("--cache", default="benchmarks/cache")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
