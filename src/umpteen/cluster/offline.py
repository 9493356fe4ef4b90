"""Predict the labels of very many texts: files in, a file of answers for each, restartable."""

import os
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier
from umpteen.cluster.offline_answers import (
    Answered,
    Draft,
    Limits,
    Recipe,
    Run,
    answer,
    answer_shard,
)
from umpteen.cluster.offline_ledger import Ledger, input_identity
from umpteen.cluster.offline_shards import Shard, find_shards
from umpteen.data.finding import Inputs, check_numbering
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError, ShardsError
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import load
from umpteen.storage.folder import read_manifest
from umpteen.tagger import Tagger

_MEGABYTE = 1e6
_HOPELESS = 10  # failures without any success


@dataclass
class Summary:
    """What a run of `predict` did: numbers of shards and rows, and what failed and why."""

    predicted: int = 0
    skipped: int = 0
    rows: int = 0
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)


def predict(
    model: str | PathLike[str],
    inputs: Inputs,
    output: str | PathLike[str],
    *,
    k: int | None = None,
    threshold: float | str | None = None,
    min_labels: int = 0,
    broader: str = "keep",
    texts: bool = True,
    to: str | None = None,
    format: str | None = None,  # noqa: A002
    address: str | None = None,
    overwrite: bool = False,
    verify: bool | None = None,
    verbose: Verbose = "auto",
    **options: Any,
) -> Summary:
    """Predict the labels of many files, and write a file of answers for each of them.

    The work is done in bounded memory, and can be stopped and started again at any moment: files
    whose answers are there are skipped, unless the file, the model or an option has changed. A
    file of answers appears when it is complete.

    If a file cannot be read, a warning says why, the others are still predicted, and a
    `ShardsError` is raised at the end. If none of the first ten can be read, the rest is not tried.

    Parameters
    ----------
    model : folder of a saved model.
    inputs : names of files or glob patterns, such as `"in/*.parquet"`; any format of `data.read`,
        or a text per line.
    output : folder for the answers. `in/a.parquet` gets `out/a.parquet`; other formats get JSON
        Lines, compressed like the input.
    k, threshold, min_labels, broader : as in `Tagger.predict`.
    texts : whether answers repeat the texts.
    to : "jsonl" or "parquet", if not as above.
    address : None for this process; "local" for a process on each core of this machine; "auto" or
        "ray://host:10001" for a Ray cluster whose machines see all three folders under the same
        paths.
    overwrite : whether to replace files in the output folder that this function did not write.
    verify : as in `load`.
    format, options : as in `data.read`, for all files.

    >>> from tempfile import TemporaryDirectory
    >>> import umpteen as um
    >>> with TemporaryDirectory() as folder:
    ...     um.Tagger().fit(["red apple", "iron ore"], ["fruit", "metal"]).save(f"{folder}/model")
    ...     _ = Path(folder, "new.txt").write_text("an apple")
    ...     done = um.cluster.predict(f"{folder}/model", f"{folder}/*.txt", f"{folder}/out", k=1)
    ...     print(done.rows, Path(folder, "out", "new.txt.jsonl").read_text()[:48])
    1 {"text": "an apple", "labels": [{"label": "fruit
    """
    started = time.monotonic()
    folder = Path(os.path.abspath(fspath(output)))
    if not isinstance(model, str | PathLike):
        raise ParameterError(
            f"model is a {type(model).__name__}; expected the folder of a saved model: "
            "model.save(folder) writes it"
        )
    place = Path(os.path.abspath(fspath(model)))
    recipe = Recipe(
        str(place), read_manifest(place)["checksum"], Limits(k, threshold, min_labels, broader),
        texts, format, options,
    )  # fmt: skip
    shards = find_shards(inputs, folder, format, to)
    check_numbering([shard.input for shard in shards], format, options)
    loaded = _loaded(recipe, verify)
    ledger, summary = Ledger(folder, recipe), Summary()
    with ledger.opened():
        waiting = [shard for shard in shards if not ledger.is_finished(shard)]
        summary.skipped = len(shards) - len(waiting)
        if not overwrite:
            for shard in waiting:
                ledger.check_free(shard)
        if waiting:
            run = _here(loaded) if address is None else _on_ray(address)
            _predict_all(waiting, recipe, ledger, summary, run, verbose)
    summary.seconds = time.monotonic() - started
    _raise_failures(summary, len(shards))
    return summary


def _predict_all(
    shards: list[Shard], recipe: Recipe, ledger: Ledger, summary: Summary, run: Run,
    verbose: Verbose,
) -> None:  # fmt: skip
    before = {shard: input_identity(shard) for shard in shards}
    sizes = {shard: before[shard]["bytes"] for shard in shards}
    with progress_bar("Predicting, MB", sum(sizes.values()) / _MEGABYTE, verbose) as bar:
        reported = dict.fromkeys(shards, 0)

        def report(shard: Shard, n_bytes: int) -> None:
            n_bytes = max(n_bytes, reported[shard])  # a shard may begin again on another machine
            bar.advance((n_bytes - reported[shard]) / _MEGABYTE, rows=summary.rows)
            reported[shard] = n_bytes

        with closing(run(shards, recipe, ledger.drafts, report)) as answered:
            for shard, result in answered:
                if isinstance(result, Draft):
                    try:
                        ledger.finish(shard, result, before[shard])
                        summary.predicted += 1
                        summary.rows += result.rows
                    except DataFormatError as problem:
                        _note(shard, problem, summary)
                else:
                    _note(shard, result, summary)
                report(shard, sizes[shard])
                if len(summary.failed) >= _HOPELESS and not summary.predicted:
                    break


def _here(model: Any) -> Run:
    def run(
        shards: list[Shard], recipe: Recipe, drafts: Path, report: Callable[[Shard, int], object]
    ) -> Generator[Answered, None, None]:
        for shard in shards:
            yield shard, answer_shard(model, shard, recipe, drafts, partial(report, shard))

    return run


def _on_ray(address: str) -> Run:
    from umpteen.cluster.offline_ray import run_on

    return run_on(address)


def _loaded(recipe: Recipe, verify: bool | None) -> Any:
    """The model, once it is known to answer with these options."""
    model = load(recipe.model, verify=verify)
    if isinstance(model, Tagger):
        answer(model, Samples(texts=[]), recipe.limits)
    elif isinstance(model, ExtremeClassifier):
        answer(model, Samples(X=csr_matrix((0, model.n_features_in_))), recipe.limits)
    else:
        raise ParameterError(
            f"{recipe.model} holds a {type(model).__name__}, which does not predict labels"
        )
    return model


def _note(shard: Shard, problem: Exception, summary: Summary) -> None:
    reason = str(problem)
    if isinstance(problem, OSError) and problem.strerror:
        reason = f"{problem.filename or shard.input}: {problem.strerror}"
    summary.failed[str(shard.input)] = reason
    warnings.warn(f"{reason}; the other files are still predicted", stacklevel=2)


def _raise_failures(summary: Summary, n_shards: int) -> None:
    if not summary.failed:
        return
    left = n_shards - summary.skipped - summary.predicted - len(summary.failed)
    names = [Path(path).name for path in summary.failed]
    named = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    stopped = f" Since none could be predicted, {left:,} more were not tried." if left else ""
    raise ShardsError(
        f"{len(names):,} of {n_shards:,} files could not be predicted ({named}); predicted now: "
        f"{summary.predicted:,}, before: {summary.skipped:,}.{stopped} Fix or remove the files and "
        "run the same again, which continues",
        summary,
    )
