"""Members, and the ensemble of them, on the test part of a data set.

`python benchmarks/ensemble.py cooking` reads the set under `$UMPTEEN_DATA`; texts are TF-IDF of
words and bigrams. Labels' texts (or names) are given to every member that can learn from them, but
for `--no-texts`. Members stand in the ensemble as fitted, so their rows cost nothing more.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import harness  # noqa: F401 (makes papers importable)
import numpy as np
from rich.console import Console
from rich.table import Table

import umpteen as um
from papers.siamese.tasks import METRICS, Task, figures, task

TAILS = (0.0, 0.5)


def main() -> None:
    options = parse()
    chosen = task(options.set, False, 2)
    rows: dict[str, list[Any]] = {}
    for seed in range(options.seeds):
        for name, top, seconds in answers(chosen, not options.no_texts, seed):
            found = [*figures(chosen, top)[METRICS.index("P")],
                     *figures(chosen, top)[METRICS.index("PSP")], seconds]  # fmt: skip
            rows.setdefault(name, []).append(found)
            print(name, " ".join(f"{value:.2f}" for value in found), flush=True)
    table = Table("model", "P@1/3/5", "PSP@1/3/5", "training CPU s", title=chosen.in_words())
    for name, found in rows.items():
        mean = np.mean(found, axis=0)
        table.add_row(name, _cells(mean[:3]), _cells(mean[3:6]), f"{mean[6]:.0f}")
    Console(width=110).print(table)


def answers(chosen: Task, texts: bool, seed: int) -> Iterator[tuple[str, um.TopK, float]]:
    """Yield the test answers of every member and ensemble, and what training took."""
    more = {"label_features": chosen.label_features} if texts else {}
    for members in (
        [um.LabelTree.for_texts(), um.NearestCentroid()],
        [um.LabelTree.for_texts(), um.NearestCentroid(), um.SiameseXML()],
    ):
        for member in members:
            seeded = "random_state" in member.get_params(deep=False)
            member.set_params(verbose=False, **({"random_state": seed} if seeded else {}))
        ensemble = um.Ensemble(members, random_state=seed, verbose=False)
        start = time.process_time()
        ensemble.fit(chosen.X, chosen.Y, **more)
        seconds = time.process_time() - start
        names = [type(member).__name__ for member in members]
        if len(members) == 3:
            for name, member in zip(names, ensemble.members_, strict=True):
                yield name, member.predict_topk(chosen.X_test), float("nan")
        print(ensemble.validation_scores_, ensemble.combination_.only, flush=True)
        for tail in TAILS:
            ensemble.set_params(tail=tail)
            said = "Ensemble of " + ", ".join(names) + (f"; tail={tail:g}" if tail else "")
            yield said, ensemble.predict_topk(chosen.X_test), seconds


def _cells(values: Any) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", nargs="?", default="pydocs")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-texts", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
