"""Shards: which files to read, and the file that the answers of each go to."""

import glob
import os
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from umpteen.data.formats.compression import compression_of_name
from umpteen.data.formats.files import format_of_name
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError

Inputs: TypeAlias = "str | PathLike[str] | Iterable[str | PathLike[str]]"

ENDINGS = {"jsonl": ".jsonl", "parquet": ".parquet"}


class Shard(NamedTuple):
    """A file of samples, and the name of its answers inside the output folder."""

    input: Path
    name: str


def find_shards(inputs: Inputs, folder: Path, form: str | None, to: str | None) -> list[Shard]:
    """Return the shards of files and glob patterns, in the order of their names."""
    if to is not None and to not in ENDINGS:
        raise ParameterError(f"to={to!r} is not possible; expected one of {', '.join(ENDINGS)}")
    found = [file for pattern in _listed(inputs) for file in _files(pattern)]
    outside = [(path, name) for path, name in found if not path.is_relative_to(folder)]
    if not outside:
        raise ParameterError(f"the input files are in the output folder {folder}: choose another")
    shards: dict[str, Shard] = {}
    for path, name in outside:
        shard = Shard(path, output_name(name, form, to))
        other = shards.setdefault(shard.name, shard)
        if other.input != path:
            raise ParameterError(
                f"the answers of {other.input} and {path} would both be {shard.name}: rename one, "
                "or give them one glob pattern, such as 'in/**/*.jsonl', which keeps their folders"
            )
    return [shards[name] for name in sorted(shards)]


def find_files(inputs: Inputs) -> list[Path]:
    """Return the files that are named or match a glob pattern, each once.

    >>> find_files("no/*.jsonl")
    Traceback (most recent call last):
    umpteen.errors.DatasetNotFoundError: no file matches no/*.jsonl: there is no folder no; ...
    """
    return list(dict.fromkeys(path for each in _listed(inputs) for path, _ in _files(each)))


def is_pattern(path: str | PathLike[str]) -> bool:
    """Return whether a path is a glob pattern; a file that is called so is none."""
    return glob.has_magic(fspath(path)) and not os.path.lexists(path)


def check_numbering(files: list[Path], form: str | None, options: dict[str, Any]) -> None:
    """Refuse to guess for each of several svmlight files whether it numbers features from 0."""
    shown = (format_of_name(path.name) for path in files)
    names = [form or (each and each.name) for each in shown]
    if len(files) > 1 and "svmlight" in names and "zero_based" not in options:
        raise ParameterError(
            "several svmlight files need `zero_based`: a file without a feature 0 would be read "
            "as if it counted from 1"
        )


def output_name(name: str, form: str | None, to: str | None) -> str:
    """Return the name of a shard's answers.

    >>> output_name("a.parquet", None, None), output_name("b.csv.gz", None, None)
    ('a.parquet', 'b.jsonl.gz')
    >>> output_name("part-7", None, None), output_name("c.jsonl.zst", None, "parquet")
    ('part-7.jsonl', 'c.parquet')
    """
    shown = format_of_name(name)
    own = form or (shown.name if shown else None)
    to = to or ("parquet" if own == "parquet" else "jsonl")
    compression = compression_of_name(name)
    bare = name[: -len(compression) - 1] if compression else name
    if shown is not None:
        ending = next(each for each in shown.endings if bare.lower().endswith(each))
        if shown.name == to and (compression is None or to == "jsonl"):
            return name
        bare = bare[: -len(ending)]
    packed = f".{compression}" if compression and to == "jsonl" else ""
    return bare + ENDINGS[to] + packed


def _listed(inputs: Inputs) -> list[str]:
    given = [inputs] if isinstance(inputs, str | PathLike) else list(inputs)
    if not given:
        raise ParameterError("no input files are given; expected names or a glob pattern")
    return [fspath(each) for each in given]


def _files(pattern: str) -> list[tuple[Path, str]]:
    """The absolute paths of files, and their names below the fixed part of the pattern."""
    if not is_pattern(pattern):
        path = Path(pattern).absolute()
        if path.is_dir():
            raise DataFormatError(f"{pattern} is a folder; name its files: '{pattern}/*.jsonl'")
        if not path.exists():
            raise DatasetNotFoundError(f"no file {pattern}; check the path")
        return [(path, path.name)]
    base = _fixed_part(pattern)
    matching = (Path(each) for each in sorted(glob.glob(pattern, recursive=True)))
    files = [path for path in matching if path.is_file()]
    if not files:
        raise DatasetNotFoundError(f"no file matches {pattern}: {_instead(base)}")
    return [(path.absolute(), path.relative_to(base).as_posix()) for path in files]


def _fixed_part(pattern: str) -> Path:
    names = Path(pattern).parts
    fixed = next(index for index, name in enumerate(names) if glob.has_magic(name))
    return Path(*names[:fixed])


def _instead(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}; check the path"
    names = sorted(entry.name for entry in folder.iterdir())
    holds = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return f"the folder {folder} holds {holds or 'nothing'}; check the pattern"
