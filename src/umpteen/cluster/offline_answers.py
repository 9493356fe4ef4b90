"""The answers of one shard: read in batches, predicted, and written to a draft."""

import hashlib
import secrets
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from umpteen.cluster.offline_shards import Shard
from umpteen.cluster.offline_writing import Record, write_records
from umpteen.data.formats.compression import compressed, compression_of_name
from umpteen.data.formats.source import Source
from umpteen.data.formats.unlabelled import format_to_label, stream_unlabelled
from umpteen.data.samples import Samples
from umpteen.errors import (
    DataFormatError,
    MissingExtraError,
    NotWritableError,
    ParameterError,
    UmpteenError,
)
from umpteen.tagger import Tagger
from umpteen.writing import open_draft

_BATCH = 1000  # rows that are predicted at a time
_K, _K_BY_THRESHOLD = 5, 20


class Limits(NamedTuple):
    """How many labels a sample gets, as in `Tagger.predict`."""

    k: int | None = None
    threshold: float | str | None = None
    min_labels: int = 0
    broader: str = "keep"


@dataclass(frozen=True)
class Recipe:
    """All that the answers of a shard depend on, apart from its file."""

    model: str
    checksum: int
    limits: Limits
    texts: bool
    format: str | None
    options: dict[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a finished shard to count."""
        return {
            "model": self.checksum,
            "limits": self.limits._asdict(),
            "texts": self.texts,
            "format": self.format,
            "options": self.options,
        }


class Draft(NamedTuple):
    """Answers that are on the disk, but not yet under their name."""

    path: Path
    rows: int
    bytes: int
    modified: int  # nanoseconds
    sha256: str


Answered = tuple[Shard, Draft | Exception]
Run = Callable[
    [list[Shard], Recipe, Path, Callable[[Shard, int], object]], Generator[Answered, None, None]
]


def answer_shard(
    model: Any,
    shard: Shard,
    recipe: Recipe,
    drafts: Path,
    report: Callable[[int], object] = lambda _: None,
) -> Draft | UmpteenError | OSError:
    """Return the draft of a shard's answers, or what is wrong with its file.

    `report` is called with the number of bytes that were read so far. Errors that other shards
    would have as well are raised.
    """
    place = drafts / f"{secrets.token_hex(8)}.part"
    try:
        with open_draft(place) as file, compressed(file, compression_of_name(shard.name)) as sink:
            records = _Counted(_answers(model, shard.input, recipe, report))
            write_records(records, sink, shard.name)
    except (NotWritableError, ParameterError, MissingExtraError):
        raise
    except (UmpteenError, OSError) as problem:
        return problem
    found = place.stat()
    with place.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return Draft(place, records.n, found.st_size, found.st_mtime_ns, digest)


def answer(model: Any, samples: Samples, limits: Limits) -> list[Any]:
    """Return labels and scores of each sample: names of a `Tagger`, ids of other classifiers."""
    if isinstance(model, Tagger):
        return model.predict(samples.texts or [], *limits)
    threshold = limits.threshold
    if isinstance(threshold, str):
        raise ParameterError(
            f"threshold={threshold!r} needs a model of texts; give a score such as 0.7"
        )
    if samples.X.shape[1] < model.n_features_in_:
        samples.X.resize(samples.X.shape[0], model.n_features_in_)
    top = model.predict_topk(samples.X, limits.k or (_K if threshold is None else _K_BY_THRESHOLD))
    top = top if threshold is None else top.cut(threshold)
    return top.names(range(model.n_labels_))  # type: ignore[no-any-return]


def records_of(samples: Samples, answers: list[Any]) -> Iterator[Record]:
    """Yield a record for each sample; `last` where the next one may be long in coming."""
    for i, tags in enumerate(answers):
        yield {
            "id": None if samples.ids is None else samples.ids[i],
            "text": None if samples.texts is None else samples.texts[i],
            "labels": [{"label": label, "score": score} for label, score in tags],
            "last": i + 1 == len(answers),
        }


def _answers(
    model: Any, path: Path, recipe: Recipe, report: Callable[[int], object]
) -> Iterator[Record]:
    of_texts = isinstance(model, Tagger)
    with path.open("rb") as file:
        source = Source(str(path), file, path)
        form = format_to_label(source, recipe.format)
        for samples in stream_unlabelled(source, form, _BATCH, recipe.options):
            if of_texts and samples.texts is None:
                raise DataFormatError(f"the model learned from texts, but {path} holds matrices")
            if not of_texts and samples.X is None:
                raise DataFormatError(f"the model learned from matrices, but {path} holds texts")
            for record in records_of(samples, answer(model, samples, recipe.limits)):
                yield record if recipe.texts else {**record, "text": None}
            report(file.tell())


class _Counted(Iterator[Record]):
    """The same records; `n` is their number so far."""

    def __init__(self, records: Iterator[Record]) -> None:
        self.n, self._records = 0, records

    def __next__(self) -> Record:
        record = next(self._records)
        self.n += 1
        return record
