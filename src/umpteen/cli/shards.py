"""`umpteen predict` of many files into a folder."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umpteen.cli.errors import UsageError, in_options
from umpteen.cli.models import OF_ANSWERS, note_compiling
from umpteen.cli.output import readable_time, show, wants_json
from umpteen.cli.reading import Reading, is_stdin
from umpteen.cli.settings import results_alone

if TYPE_CHECKING:
    from umpteen.cluster import Summary


def is_folder(output: str | None, files: list[Path]) -> bool:
    """Return whether an output is a folder: by its slash, or since it is one, or for many files."""
    from umpteen.data.finding import is_pattern

    if output is None or is_stdin(files[0]):
        return False
    several = len(files) > 1 or is_pattern(files[0])
    return (
        output.endswith(("/", os.sep))
        or os.path.isdir(output)
        or (several and not Path(output).suffix)
    )


def refuse_without_folder(**given: Any) -> None:
    """Refuse options that are for an output folder only."""
    for option, value in given.items():
        if value:
            raise UsageError(f"--{option} needs a folder for the answers, such as -o out/")


def check_output(output: str | None, files: list[Path]) -> None:
    """Refuse a file that is read, and one whose name promises another format."""
    from umpteen.cluster.offline_shards import ENDINGS, output_name
    from umpteen.data.formats.files import format_of_name

    if output is None:
        return
    if any(_is_same(file, output) for file in files):
        raise UsageError(f"-o {output} would replace the texts: choose another file")
    promised = format_of_name(output)
    if promised is not None and promised.name not in ENDINGS:
        raise UsageError(
            f"-o {output} is named as {promised.name}, but answers are JSON Lines or Parquet: "
            f"name it {output_name(output, None, 'jsonl')}"
        )


def predict_files(
    model: Path,
    files: list[Path],
    output: str,
    reading: Reading,
    limits: Any,
    options: dict[str, Any],
    json: bool | None,
) -> None:
    """Predict each file into a folder, and show a summary, also if some of them failed."""
    from umpteen import cluster
    from umpteen.errors import ShardsError

    note_compiling(OF_ANSWERS)
    try:
        with results_alone():
            done = cluster.predict(
                model,
                files,
                output,
                **limits._asdict(),
                **options,
                format=reading.format,
                **reading.options,
            )
    except ShardsError as problem:
        _summarize(problem.summary, output, json)
        raise
    _summarize(done, output, json)


def _is_same(file: Path, output: str) -> bool:
    try:
        return file.is_file() and os.path.samefile(file, output)
    except OSError:  # there is no such file yet
        return False


def _summarize(done: "Summary", output: str, json: bool | None) -> None:
    figures: dict[str, Any] = {
        "output": output,
        "files_predicted": done.predicted,
        "files_skipped": done.skipped,
        "files_failed": len(done.failed),
        "rows": done.rows,
    }
    if wants_json(json):
        failed = {path: in_options(reason) for path, reason in done.failed.items()}
        show(figures | {"seconds": round(done.seconds, 3), "failed": failed}, json)
        return
    rate = f"{done.rows / done.seconds:,.0f} rows/s" if done.rows else "-"
    show(figures | {"time": readable_time(done.seconds), "rate": rate}, json)
