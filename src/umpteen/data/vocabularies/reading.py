"""Read a vocabulary in whatever format it comes."""

import re

from umpteen.data.formats.compression import compression_of_name
from umpteen.data.formats.json_objects import is_array
from umpteen.data.formats.source import Readable, Source, open_source
from umpteen.data.label_vocabulary import LabelVocabulary
from umpteen.data.vocabularies import json_lines, skos, tables
from umpteen.errors import DataFormatError, ParameterError

_ENDINGS = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".nt": "ntriples",
    ".rdf": "rdfxml",
    ".xml": "rdfxml",
    ".owl": "rdfxml",
    ".skos": "rdfxml",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_TURTLE = re.compile(rb"\s*(#[^\n]*\n\s*)*(@prefix|@base|prefix|base)\s", re.IGNORECASE)
_TRIPLE = re.compile(rb"\s*(#[^\n]*\n\s*)*<[^>\s]*>\s*<[^>\s]*>\s*[<\"_]")
_XML = re.compile(rb"\s*<(\?xml|!|[\w.-]+:RDF\b|RDF\b)")
_ADVICE = "expected SKOS (.ttl, .rdf, .nt), a table (.tsv, .csv) or JSON Lines (.jsonl)"


def read_vocabulary(
    path: Readable, language: str | None = None, *, name_separator: str | None = None
) -> LabelVocabulary:
    """Read a vocabulary of labels: a thesaurus, a table of names, or JSON Lines.

    - SKOS in Turtle (`.ttl`), RDF/XML (`.rdf`, `.xml`, `.owl`) or N-Triples (`.nt`), with the extra
      `skos`. Labels are the URIs of the concepts. `owl:deprecated` concepts are left out.
    - TSV without a header, `<uri>`, a tab, a name, and perhaps a tab and a notation; or CSV with
      the columns `uri`, `label_en`, `label_fi`, ... and perhaps `notation`. Rows without a name
      are left out.
    - JSON Lines, with `label` and perhaps `name`, `alternatives`, `text`, `parents`, `uri` and
      `notation`. With `name_separator=";"`, a text such as "dog; hound" is a list of names if
      there is no `name`.

    The format follows from the file's name, or else from its content; gzip, xz and zstd are
    unpacked. `language` chooses among the languages of SKOS and CSV, and is ignored elsewhere:
    "pt" also finds "pt-BR", and None stands for the language with most preferred names. A concept
    without a name in it has a name in another. A file that cannot be read raises
    `DataFormatError`, with the line. Nothing is fetched from the network.

    >>> from io import BytesIO
    >>> file = b"uri,label_en,label_fi\\nhttp://ex.org/7,dog,koira\\nhttp://ex.org/8,,kissa\\n"
    >>> read_vocabulary(BytesIO(file)).names()
    {'http://ex.org/7': ('koira',), 'http://ex.org/8': ('kissa',)}
    >>> read_vocabulary(BytesIO(file), "en").names()
    {'http://ex.org/7': ('dog',), 'http://ex.org/8': ('kissa',)}
    """
    for name, given, example in (
        ("language", language, "fi"), ("name_separator", name_separator, ";")
    ):  # fmt: skip
        if given is not None and (not isinstance(given, str) or not given):
            raise ParameterError(f"{name}={given!r} is not possible; use for example {example!r}, "
                                 "or None")  # fmt: skip
    with open_source(path) as source:
        source.format = _format(source)
        if source.format == "jsonl":
            concepts = json_lines.read(source, name_separator)
        elif source.format in ("tsv", "csv"):
            concepts = tables.read(source, language)
        else:
            concepts = skos.read(source, language)
        if not concepts:
            raise source.error(f"there is no concept with a name in it; {_ADVICE}")
    return LabelVocabulary.of(concepts)


def _format(source: Source) -> str:
    name = source.name.lower()
    if compression := compression_of_name(name):
        name = name.removesuffix(f".{compression}")
    for ending, found in _ENDINGS.items():
        if name.endswith(ending):
            return found
    return _of_content(source)


def _of_content(source: Source) -> str:
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    shown = {
        "jsonl": head.lstrip().startswith(b"{") or is_array(head),
        "rdfxml": _XML.match(head),
        "turtle": _TURTLE.match(head) or _TRIPLE.match(head),
        "csv": tables.is_header(head),
        "tsv": b"\t" in head.lstrip().partition(b"\n")[0],
    }
    found = next((name for name, shows in shown.items() if shows), None)
    if found is None:
        raise _refusal(source, head)
    return found


def _refusal(source: Source, head: bytes) -> DataFormatError:
    if not head:
        return source.error(f"the file is empty; {_ADVICE}")
    first_line = head.partition(b"\n")[0][:80].decode(errors="replace")
    return source.error(
        f"the first line, {first_line!r}, looks like none of the formats; {_ADVICE}"
    )
