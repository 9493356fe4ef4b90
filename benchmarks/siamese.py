"""SiameseXML, LabelTree and an ensemble of both where labels have texts of their own.

`python benchmarks/siamese.py debian-deps` reads the set under `$UMPTEEN_DATA` and measures on its
test part; with `--dev`, on a validation split of the training part instead. `--choices` trains
`SiameseXML` once for each choice that could be another; `--ngrams 2` has bigrams, too, as `Tagger`
does.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import harness  # noqa: F401 (makes papers importable)
import numpy as np
from rich.console import Console
from rich.table import Table

import umpteen as um
from papers.siamese.tasks import METRICS, Task, figures, task
from umpteen.splitting import validation_split
from umpteen.validation import as_csr

CHOICES: list[dict[str, Any]] = [
    {},
    {"recipe__start": "text"},
    {"recipe__mine_every": 2},
    {"recipe__loss": "contrastive"},
    {"recipe__dropout": 0.0},
    {"recipe__label_power": 0.45},
    {"recipe__residual": True},
    {"recipe__modules": ("embed", "mine", "refine", "joint")},
    {"n_models": 3},
]
TAILS = (0.0, 0.5, 1.0)
_DRAW = 7  # another than the model's own


def main() -> None:
    options = parse()
    chosen = task(options.set, False, options.ngrams)
    parts = cut(chosen) if options.dev else chosen
    table = Table("model", "P@1/3/5", "PSP@1/3/5", "training CPU-s", "wall s")
    for name, model in models(options.choices, options.seed):
        start, began = time.process_time(), time.monotonic()
        more = {} if name == "LabelTree" else {"label_features": parts.label_features}
        model.fit(parts.X, parts.Y, **more)
        spent = f"{time.process_time() - start:.0f}", f"{time.monotonic() - began:.0f}"
        for tail in TAILS if isinstance(model, um.SiameseXML) else (0.0,):
            if tail:
                model.set_params(tail=tail)
            said = f"{name}, tail={tail:g}" if tail else name
            row = said, *quality(model.predict_topk(parts.X_test), parts), *spent
            print("; ".join(row), flush=True)
            table.add_row(*row)
    Console(width=110).print(table)


def models(choices: bool, seed: int) -> Iterator[tuple[str, Any]]:
    if choices:
        for changes in CHOICES:
            said = ", ".join(f"{name}={value!r}" for name, value in changes.items())
            yield said or "as it is", um.SiameseXML(random_state=seed).set_params(**changes)
        return
    yield "LabelTree", um.LabelTree(random_state=seed)
    yield "LabelTree, labels' texts", um.LabelTree(random_state=seed)
    yield "SiameseXML", um.SiameseXML(random_state=seed)
    yield "Ensemble of both", um.Ensemble([um.SiameseXML(random_state=seed), um.LabelTree()])


def cut(whole: Task) -> Task:
    """To learn from and to test on, both of the training part."""
    held = validation_split(as_csr(whole.X), whole.Y, _DRAW)
    Y, Y_test = whole.Y[~held], whole.Y[held]
    seen = np.flatnonzero(Y.getnnz(axis=0))
    asked = Y_test[:, seen].getnnz(axis=1) > 0
    return replace(
        whole, X=whole.X[~held], Y=Y[:, seen], X_test=whole.X[held][asked],
        Y_test=Y_test[asked][:, seen], label_features=whole.label_features[seen],
    )  # fmt: skip


def quality(top: um.TopK, parts: Task) -> tuple[str, str]:
    of = dict(zip(METRICS, figures(parts, top), strict=True))
    return tuple(" ".join(f"{value:.2f}" for value in of[name]) for name in ("P", "PSP"))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", nargs="?", default="debian-deps")
    parser.add_argument("--ngrams", type=int, default=1)
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
