"""Files by their names or by glob patterns."""

import glob
import os
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from umpteen.data.formats.files import format_of_name
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError

Inputs: TypeAlias = "str | PathLike[str] | Iterable[str | PathLike[str]]"


def find_files(inputs: Inputs) -> list[Path]:
    """Return the files that are named or match a glob pattern, each once.

    >>> find_files("no/*.jsonl")
    Traceback (most recent call last):
    umpteen.errors.DatasetNotFoundError: no file matches no/*.jsonl: there is no folder no; ...
    """
    return list(dict.fromkeys(path for each in listed(inputs) for path, _ in files_of(each)))


def is_pattern(path: str | PathLike[str]) -> bool:
    """Return whether a path is a glob pattern, not the name of an existing file."""
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


def listed(inputs: Inputs) -> list[str]:
    """Return the names and patterns that are given, at least one."""
    is_list = isinstance(inputs, Iterable) and not isinstance(inputs, str | PathLike)
    given: list[Any] = list(inputs) if is_list else [inputs]  # type: ignore[arg-type]
    for each in given:
        if each == "":
            raise ParameterError("the name of an input file is empty; expected a name or a pattern")
        if not isinstance(each, str | PathLike):
            raise ParameterError(
                f"{each!r} names no file; expected a name, a glob pattern, or a list of these"
            )
    if not given:
        raise ParameterError("no input files are given; expected names or a glob pattern")
    return [fspath(each) for each in given]


def files_of(pattern: str) -> list[tuple[Path, str]]:
    """Return absolute paths of files, and their names below the fixed part of the pattern."""
    if not is_pattern(pattern):
        path = Path(pattern).absolute()
        if os.path.isdir(path):  # Path.is_dir raises where a name is too long
            raise DataFormatError(f"{pattern} is a folder; name its files: '{pattern}/*.jsonl'")
        if not os.path.exists(path):
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
    if not os.path.isdir(folder):
        return f"there is no folder {folder}; check the path"
    names = sorted(entry.name for entry in folder.iterdir())
    holds = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return f"the folder {folder} holds {holds or 'nothing'}; check the pattern"
