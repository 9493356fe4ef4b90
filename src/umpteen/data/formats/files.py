"""Read, stream and write files of samples."""

from collections.abc import Iterator
from typing import Any

from umpteen.data.formats.known import check_options, format_to_read, format_to_write
from umpteen.data.formats.sink import Writable, open_sink
from umpteen.data.formats.source import Readable, open_source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError


def read(
    path: Readable,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Samples:
    """Read the samples of a file, or of an open binary file.

    The format is told by the file's name, or else by its content; gzip, xz and zstd are
    unpacked. `options` are those of the format: `text_field`, `labels_field` (jsonl, csv, tsv,
    parquet; `labels_field=""` reads no labels), `label_separator`, `quoted` (csv, tsv), `prefix`
    (fasttext), `zero_based`, `n_features`, `n_labels` (svmlight). A file that is not sound raises
    `DataFormatError`, with the line.

    >>> from io import BytesIO
    >>> samples = read(BytesIO(b"2 5 3\\n0,2 0:1 4:0.5\\n 3:2\\n"))
    >>> samples.X.toarray()
    array([[1. , 0. , 0. , 0. , 0.5],
           [0. , 0. , 0. , 2. , 0. ]], dtype=float32)
    >>> samples.Y.toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    (samples,) = _samples(path, format, None, options)
    return samples


def stream(
    path: Readable,
    *,
    batch_size: int = 10_000,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Iterator[Samples]:
    """Yield the samples of a file in batches, in bounded memory; otherwise as `read`.

    >>> from io import BytesIO
    >>> [batch.texts for batch in stream(BytesIO(b"__label__x a\\nb\\nc"), batch_size=2)]
    [['a', 'b'], ['c']]
    """
    if batch_size is True or not isinstance(batch_size, int) or batch_size < 1:
        raise ParameterError(f"batch_size={batch_size!r} is not possible: use 1 or more")
    return _samples(path, format, batch_size, options)


def write(
    samples: Samples,
    path: Writable,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> None:
    """Write samples to a file, in the format and compression that its name shows.

    Texts go to jsonl, csv, tsv, fasttext or parquet; matrices to xmc or svmlight. The file is
    there as a whole or not at all: an interrupted write leaves what was there before.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> write(Samples(texts=["boil it"], labels=[["eggs"]]), file, format="fasttext")
    >>> file.getvalue()
    b'__label__eggs boil it\\n'
    """
    chosen = format_to_write(path, format)
    check_options(chosen, chosen.write, options)
    try:
        with open_sink(path) as file:
            chosen.write(samples, file, **options)
    except UnicodeEncodeError as problem:
        raise DataFormatError(
            f"a text cannot be written as UTF-8 ({problem.reason}): {problem.object!r:.80}"
        ) from None


def _samples(
    path: Readable, name: str | None, batch_size: int | None, options: dict[str, Any]
) -> Iterator[Samples]:
    with open_source(path) as source:
        chosen = format_to_read(source, name)
        check_options(chosen, chosen.stream, options)
        source.format = chosen.name
        yield from chosen.stream(source, batch_size, **options)
