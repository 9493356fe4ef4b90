"""Shards: which files to read, and the file that the answers of each go to."""

from pathlib import Path
from typing import NamedTuple

from umpteen.data.finding import Inputs, files_of, listed
from umpteen.data.formats.compression import compression_of_name
from umpteen.data.formats.files import format_of_name
from umpteen.errors import ParameterError

ENDINGS = {"jsonl": ".jsonl", "parquet": ".parquet"}


class Shard(NamedTuple):
    """A file of samples, and the name of its answers inside the output folder."""

    input: Path
    name: str


def find_shards(inputs: Inputs, folder: Path, form: str | None, to: str | None) -> list[Shard]:
    """Return the shards of files and glob patterns, in the order of their names."""
    if to is not None and to not in ENDINGS:
        raise ParameterError(f"to={to!r} is not possible; expected one of {', '.join(ENDINGS)}")
    found = [file for pattern in listed(inputs) for file in files_of(pattern)]
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
