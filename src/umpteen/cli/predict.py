"""`umpteen predict`."""

import os
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError, say
from umpteen.cli.matrices import answer_matrix
from umpteen.cli.models import Model, Verify, check_validated, is_tagger, load_model, load_tagger
from umpteen.cli.output import Json, one_line, wants_json
from umpteen.cli.reading import Reading, expanded, is_stdin, reads_file, stdin_descriptor
from umpteen.cli.settings import Cluster, in_shares
from umpteen.cli.shards import check_output, is_folder, predict_files, refuse_without_folder

if TYPE_CHECKING:
    from umpteen.cluster.offline_answers import Limits
    from umpteen.data import Samples

_SCORE = 5  # columns of the terminal
Broader = Enum("Broader", {"keep": "keep", "drop": "drop", "add": "add"}, type=str)
To = Enum("To", {"jsonl": "jsonl", "parquet": "parquet"}, type=str)


NewFiles = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Texts; - for stdin; 'in/*.parquet' for many."),
]
K = Annotated[
    int | None,
    typer.Option(
        "-k",
        metavar="N",
        min=1,
        help="Maximum number of labels per text.",
        show_default="5; 20 with --threshold",
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Minimum probability, such as 0.7; or 'tuned', as chosen by `umpteen tune`; or a "
        "goal: precision@0.9, recall@0.8, micro_f1.",
    ),
]
MinLabels = Annotated[
    int, typer.Option(min=0, metavar="N", help="Minimum number of labels per text.")
]
BroaderLabels = Annotated[
    Broader,
    typer.Option(help="Broader labels of the vocabulary: keep, drop, or add them all."),
]
NoText = Annotated[bool, typer.Option("--no-text", help="Leave texts out of the output.")]
Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="Write JSONL, or .parquet, to this file; or a file for each FILE to a folder/.",
    ),
]
Format = Annotated[
    To | None,
    typer.Option(
        help="Format of the files in the output folder.",
        show_default="parquet for Parquet, else jsonl",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files in the output folder that others wrote."),
]


@reads_file
def predict(
    model: Model,
    files: NewFiles,
    reading: Reading,
    k: K = None,
    threshold: Threshold = None,
    min_labels: MinLabels = 0,
    broader: BroaderLabels = Broader.keep,
    no_text: NoText = False,
    output: Output = None,
    to: Format = None,
    cluster: Cluster = None,
    overwrite: Overwrite = False,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Predict the labels of texts.

    \b
    Examples:
      umpteen predict model/ new.jsonl
      umpteen predict model/ new.jsonl --threshold 0.7 > labels.jsonl
      echo "Why does my bread collapse?" | umpteen predict model/ -
      umpteen predict model/ 'in/*.parquet' -o out/
    \b
    FILE is in any format that fit reads, with or without labels, or plain lines of text. Stdin is
    answered line by line until it ends. The output has a line for each text, in the same order:
      {"text": "Why does my bread collapse?", "labels": [{"label": "bread", "score": 0.87}]}
    \b
    With an output folder, each FILE gets a file of answers. Run the same command again to continue
    after an interruption: finished files are skipped.
    """
    from umpteen.cluster.offline_answers import Limits

    limits = Limits(k, _threshold(threshold), min_labels, broader.value)
    if is_folder(output, files):
        options = {"texts": not no_text, "to": to and to.value, "verify": verify}
        options |= {"address": cluster, "overwrite": overwrite}
        if isinstance(limits.threshold, str):
            _check(limits, load_tagger(model, "such a --threshold", verify=verify))
        predict_files(model, files, str(output), reading, limits, options, json)
        return
    refuse_without_folder(to=to, cluster=cluster, overwrite=overwrite)
    loaded = load_model(model, verify)
    if is_stdin(files[0]) and os.isatty(stdin_descriptor()):
        say("type a text and press Enter; Ctrl-D stops")
    _refuse_text(files[0])
    found = expanded(files)
    check_output(output, found)
    records = (record for file in found for record in _records(loaded, file, reading, limits))
    if no_text:
        records = ({**record, "text": None} for record in records)
    write_answers(records, None if output is None else Path(output), json)


def _refuse_text(file: Path) -> None:
    text = str(file)
    if " " in text and "*" not in text and not file.exists():
        raise UsageError(
            f"no file {text!r:.60}; to tag a text, pipe it: echo 'a text' | umpteen predict MODEL -"
        )


def write_answers(
    records: Iterator[dict[str, Any]], output: Path | None, json: bool | None
) -> None:
    """Write answers to a file or to stdout, as JSONL or as a table."""
    from umpteen.cluster.offline_writing import as_line, write_records

    if output is not None:
        from umpteen.data.formats.compression import open_sink

        with open_sink(output) as sink:
            write_records(records, sink, output.name)
    elif wants_json(json):
        for record in records:
            print(as_line(record), flush=record["last"])
    else:
        _print_table(records)


def _threshold(given: str | None) -> float | str | None:
    """
    >>> _threshold("0.7"), _threshold("70%"), _threshold("precision@90%")
    (0.7, 0.7, 'precision@0.9')
    """
    if given is None:
        return None
    given = in_shares(given)
    try:
        return float(given)
    except ValueError:
        return given


def _records(
    model: Any, file: Path, reading: Reading, limits: "Limits"
) -> Iterator[dict[str, Any]]:
    from umpteen.cluster.offline_answers import records_of

    answered = (
        _answer_texts(model, file, reading, limits)
        if is_tagger(model)
        else answer_matrix(model, file, reading, limits)
    )
    for samples, answers in answered:
        yield from records_of(samples, answers)


def _answer_texts(
    tagger: Any, file: Path, reading: Reading, limits: "Limits"
) -> Iterator[tuple["Samples", list[Any]]]:
    from umpteen.cli.live import stream_texts

    _check(limits, tagger)
    for samples in stream_texts(file, reading):
        if samples.texts is None:
            raise UsageError(
                f"the model learned from texts, but {file} holds matrices; if these are texts, use "
                "--format lines"
            )
        yield samples, tagger.predict(samples.texts, *limits)


def _check(limits: "Limits", tagger: Any) -> None:
    """What is wrong with them is said before texts arrive."""
    from umpteen.tagger.thresholds import METRICS, is_metric

    goal = limits.threshold
    if isinstance(goal, str) and goal != "tuned":
        if not is_metric(goal):
            raise UsageError(
                f"--threshold {goal!r} is not possible; expected a probability such as 0.7 or 70%, "
                f"or 'tuned', or a goal: {', '.join(METRICS)} (with any share)"
            )
        check_validated(tagger)
    tagger.predict([], *limits)


def _print_table(records: Iterator[dict[str, Any]]) -> None:
    """A row for each label, the text (or what there is instead) in front of the first."""
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 80
    left = max(20, width // 2)
    right = max(10, width - left - _SCORE - 5)
    head = f"{'text':<{left}}  {'score':>{_SCORE}}  label"
    for number, record in enumerate(records, 1):
        if number == 1:  # no head above an error
            print(head)
        lead = one_line(record["text"] or record["id"] or f"{number:,}")
        for tag in record["labels"] or [{"label": "-", "score": None}]:
            score = "" if tag["score"] is None else f"{tag['score']:.2f}"
            label = _cut(one_line(str(tag["label"])), right).rstrip()
            print(f"{_cut(lead, left)}  {score:>{_SCORE}}  {label}")
            lead = ""
        sys.stdout.flush()


def _cut(text: str, width: int) -> str:
    """Exactly as wide as that on a terminal."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)
