"""`umpteen recommend`."""

from pathlib import Path
from typing import Annotated

import typer

from umpteen.cli.errors import UsageError
from umpteen.cli.models import OF_FIT, note_compiling
from umpteen.cli.output import Json, show
from umpteen.cli.reading import LabelTexts, Reading, reads_file


@reads_file
def recommend(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Texts and labels, as for fit.")],
    reading: Reading,
    label_texts: LabelTexts = None,
    max_seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Try no further candidate after S seconds.")
    ] = 120.0,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the sample.")] = 0,
    json: Json = None,
) -> None:
    """Compare a few methods on a sample of texts, and choose one.

    \b
    Example:
      umpteen recommend train.jsonl
    \b
    At most 4,000 texts are tried. It prints what to use and why, and what a fit on all texts needs.
    """
    from rich.text import Text

    from umpteen import recommending
    from umpteen.data import read_label_texts

    samples = reading.read_labelled(path)
    if samples.texts is None:
        raise UsageError(f"{path} has no texts: on matrices (xmc, svmlight), start with LabelTree")
    note_compiling(OF_FIT)
    found = recommending.recommend(
        samples.texts,
        samples.labels,
        label_texts="auto" if label_texts is None else read_label_texts(label_texts),
        max_seconds=max_seconds,
        random_state=seed,
    )
    show(found.to_dict(), json, Text(str(found)))
