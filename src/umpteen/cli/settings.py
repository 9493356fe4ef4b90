"""Options of the classifier."""

import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umpteen.cli.errors import UsageError

if TYPE_CHECKING:
    from umpteen.linear import LabelTree

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")

Trees = Annotated[
    int,
    typer.Option(min=1, metavar="N", help="Number of trees; more are slightly better, but slower."),
]
Jobs = Annotated[
    int, typer.Option(metavar="N", help="Threads; -1 for all cores. The result is the same.")
]
Prune = Annotated[
    float,
    typer.Option(
        min=0, metavar="N", help="Drop smaller weights; 0.2 makes models a third smaller."
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Ray cluster: auto, local, host:6379 or ray://host:10001. Same result.",
    ),
]


@contextmanager
def on_cluster(address: str | None, checkpoint: Path | None = None) -> Iterator[None]:
    """Run the block on the cluster that an option names, if it does."""
    if address is None:
        yield
        return
    from umpteen.cluster import ray
    from umpteen.progress import status_line

    connected = ray(address, checkpoint=checkpoint)
    with ExitStack() as stack:
        stack.enter_context(results_alone())
        with status_line(f"connecting to {address}"):
            stack.enter_context(connected)
        yield


def results_alone() -> AbstractContextManager[object]:
    """Keep what Ray prints in the block, such as the death of a node, out of the results."""
    return redirect_stdout(sys.stderr)


def new_classifier(
    of_texts: bool, trees: int, prune: float, memory: str | None, seed: int, jobs: int
) -> "LabelTree":
    """Return the classifier that these options ask for."""
    from umpteen.linear import LabelTree

    tree = LabelTree.for_texts(cost="auto") if of_texts else LabelTree()
    return tree.set_params(
        n_trees=trees, prune=prune, max_memory=_bytes(memory), random_state=seed, n_jobs=jobs
    )


def in_shares(text: str) -> str:
    """Return a text with percentages as fractions.

    >>> in_shares("70%"), in_shares("precision@92.5 %"), in_shares("0.7")
    ('0.7', 'precision@0.925', '0.7')
    """
    return _PERCENT.sub(lambda match: f"{float(match[1]) / 100:.12g}", text)


def _bytes(size: str | None) -> float | None:
    from umpteen.limits import parse_size

    if size is None:
        return None
    found = parse_size(size)
    if found is None:
        raise UsageError(f"--max-memory {size!r} is not a size; expected one such as 500MB or 4GB")
    return found
