"""Files of texts that stay where they are: tasks read them, on any machine that sees them."""

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.data.finding import Inputs, find_files
from umpteen.data.formats.files import stream
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError, ShardsError
from umpteen.shards import TextShards

_AT_ONCE = 2000  # texts
_SAME = "all machines must see the same files under the same paths, and nobody may change them"


@dataclass(frozen=True)
class TextFile:
    """A file of texts and how to read it; with its size and the time of its last change."""

    path: str
    size: int
    changed: int  # a checkpoint of an earlier state is not used; copies may differ
    format: str | None
    options: tuple[tuple[str, Any], ...]
    checksum: int | None = None  # of its texts, once they were read

    def samples(self) -> Iterator[Samples]:
        """Yield the samples of the file, a few at a time."""
        try:
            size = os.stat(self.path).st_size
        except OSError as problem:
            raise ShardsError(
                f"{self.path} cannot be read any more, or not on this machine "
                f"({problem.strerror}): {_SAME}"
            ) from None
        if size != self.size:
            raise self._changed()
        for samples in stream(
            self.path, batch_size=_AT_ONCE, format=self.format, **dict(self.options)
        ):
            if samples.texts is None:
                raise DataFormatError(
                    f"{self.path} holds matrices, and only texts can stay in their files: "
                    "read it with umpteen.data.read"
                )
            yield samples

    def batches(self) -> Iterator[list[str]]:
        """Yield the texts of the file, a few at a time; at the end, they must be as before."""
        checksum = 0
        for samples in self.samples():
            texts = samples.texts or []
            checksum = _checksum(texts, checksum)
            yield texts
        if self.checksum not in (None, checksum):
            raise self._changed()

    def _changed(self) -> ShardsError:
        return ShardsError(
            f"{self.path} was changed while it was read, or is another file on this machine: "
            f"{_SAME}"
        )


class _Survey(NamedTuple):
    """The number of characters of each text of a file, and its labels, by numbers of `names`."""

    n_characters: npt.NDArray[np.int64]
    n_labels: npt.NDArray[np.int64] | None
    labels: npt.NDArray[np.int32]
    names: list[str]
    checksum: int


def read_shards(inputs: Inputs, *, format: str | None = None, **options: Any) -> Samples:  # noqa: A002
    """Return the samples of many files, with texts that stay in the files until they are needed.

    `inputs` are names of files and glob patterns, such as `train/*.parquet`; the other arguments
    are those of `read`. Tasks read the files once for the labels, and then whenever texts are
    needed, on the workers of a cluster if there is one (`umpteen.cluster.ray`). All machines must
    see the files under the same paths. A `Tagger` that is fitted on these samples is the same to
    the bit as one that is fitted on lists. Groups (`group_field`) are refused.
    """
    if options.get("group_field") is not None:
        raise ParameterError(
            "texts of groups cannot stay in their files: read them with umpteen.data.read, or "
            "leave out `group_field`"
        )
    files = []
    for path in find_files(inputs):
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise DataFormatError(
                f"{path} is a pipe or a device, and files whose texts stay there are read several "
                "times: write it to a file first, or read it with umpteen.data.read"
            )
        given = tuple(sorted(options.items()))
        files.append(TextFile(str(path), found.st_size, found.st_mtime_ns, format, given))
    surveys = parallel.map(_surveyed, files)
    files = [
        replace(file, checksum=each.checksum) for file, each in zip(files, surveys, strict=True)
    ]
    name_of: dict[str, str] = {}  # each name once in memory, however many files have it
    labels: list[list[str]] = []
    for each in surveys:
        names = [name_of.setdefault(name, name) for name in each.names]
        numbers = each.labels.tolist()
        counts = np.zeros(len(each.n_characters), int) if each.n_labels is None else each.n_labels
        ends = accumulate(counts.tolist(), initial=0)
        labels += [[names[i] for i in numbers[first:last]] for first, last in pairwise(ends)]
    return Samples(
        texts=TextShards(files, [each.n_characters for each in surveys]),  # type: ignore[arg-type]
        labels=labels if any(each.n_labels is not None for each in surveys) else None,
    )


def _surveyed(file: TextFile) -> _Survey:
    n_characters: list[int] = []
    n_labels: list[int] = []
    labels: list[int] = []
    number_of: dict[str, int] = {}
    is_labelled = False
    checksum = 0
    for samples in file.samples():
        texts = samples.texts or []
        checksum = _checksum(texts, checksum)
        n_characters += map(len, texts)
        is_labelled |= samples.labels is not None
        for names in samples.labels or [[] for _ in texts]:
            n_labels.append(len(names))
            labels += [number_of.setdefault(name, len(number_of)) for name in names]
    return _Survey(
        np.array(n_characters, np.int64),
        np.array(n_labels, np.int64) if is_labelled else None,
        np.array(labels, np.int32),
        list(number_of),
        checksum,
    )


def _checksum(texts: list[str], before: int) -> int:
    """The checksum of these texts and all before."""
    return zlib.crc32("\0".join([*texts, ""]).encode("utf-8", "surrogatepass"), before)
