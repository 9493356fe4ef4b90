"""Thesauri in SKOS, as Turtle, RDF/XML or N-Triples, parsed by rdflib.

Only the statements that matter are kept, in the order of the file: far less memory than a graph
that can be searched. A file may come from anybody: nothing that it refers to is opened, and it
cannot make much out of little.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any
from xml.parsers import expat
from xml.sax import SAXParseException

from umpteen.data.formats.source import Source
from umpteen.data.label_vocabulary import Concept
from umpteen.data.vocabularies.languages import Multilingual, Tagged, clean, in_language, tag_of
from umpteen.errors import DataFormatError
from umpteen.extras import require

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_XL = "http://www.w3.org/2008/05/skos-xl#"
_FIELDS = {
    f"{_RDF}type": "type",
    f"{_SKOS}prefLabel": "name",
    f"{_XL}prefLabel": "name",
    "http://www.w3.org/2000/01/rdf-schema#label": "rdfs label",
    f"{_SKOS}altLabel": "alternative",
    f"{_SKOS}hiddenLabel": "alternative",
    f"{_XL}altLabel": "alternative",
    f"{_XL}hiddenLabel": "alternative",
    f"{_SKOS}definition": "definition",
    f"{_SKOS}scopeNote": "note",
    f"{_SKOS}notation": "notation",
    f"{_SKOS}broader": "broader",
    f"{_SKOS}narrower": "narrower",
    "http://www.w3.org/2002/07/owl#deprecated": "deprecated",
    f"{_XL}literalForm": "value",
    f"{_RDF}value": "value",
}
_CONCEPT = f"{_SKOS}Concept"
_BASE = "https://vocabulary.invalid/"  # of relative URIs; rdflib would take the current folder
_LARGEST = 1 << 30  # bytes, as all of them are in memory
_LONGEST_ENTITY = 300  # characters: expansion by at most a factor of a hundred
_LONGEST_URI = 2_000  # characters: a prefix of a megabyte would be copied into each URI
_BLOCK = 1 << 16
_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z][\w.-]*)[\"']")
_ENCODINGS = ("utf", "us-ascii", "iso", "windows", "cp", "koi8", "big5", "gb", "euc", "shift")
_PLACE = re.compile(r".*?:(\d+):\d+: (.*)", re.DOTALL)

_settings = Lock()


def read(source: Source, language: str | None) -> list[Concept]:
    """Return the concepts that are not deprecated and have a name."""
    statements = _Statements(require("rdflib", "skos"))
    with _texts_as_written(statements.rdflib):
        if source.format == "ntriples":
            _parse_lines(source, statements)
        else:
            _parse_whole(source, statements)
    return in_language(statements.concepts(), language, source.name)


class _Statements:
    """The statements of a file by field and subject, in its order."""

    def __init__(self, rdflib: Any) -> None:
        self.rdflib = rdflib
        self._values: dict[str, dict[str, list[Any]]] = {field: {} for field in _FIELDS.values()}

    def triple(self, subject: Any, predicate: Any, value: Any) -> None:
        """Keep a statement if it is of use."""
        _check_length(subject, predicate)
        field = _FIELDS.get(str(predicate))
        if field is None:
            return
        kept: Any
        if isinstance(value, self.rdflib.Literal):
            kept = tag_of(value.language or ""), str(value)
            kept[1].encode()  # half of a surrogate pair is not text
        else:
            _check_length(value)
            kept = self._node(value)
        self._values[field].setdefault(self._node(subject), []).append(kept)

    def concepts(self) -> Iterator[Multilingual]:
        """Yield the concepts that are not deprecated."""
        broader = self._parents()
        for uri in self._subjects():
            if uri.startswith("_:") or self._is_deprecated(uri):
                continue
            names = self._texts(uri, "name") or self._texts(uri, "rdfs label")
            notations = [text for _, text in self._texts(uri, "notation")]
            yield Multilingual(
                uri,
                names,
                self._texts(uri, "alternative"),
                self._texts(uri, "definition") + self._texts(uri, "note"),
                broader.get(uri, []),
                next(iter(notations), ""),
            )

    def _node(self, node: Any) -> str:
        return sys.intern(f"_:{node}" if isinstance(node, self.rdflib.BNode) else str(node))

    def _subjects(self) -> list[str]:
        """What is declared to be a concept; where nothing is, whatever has a preferred name."""
        declared = [uri for uri, types in self._values["type"].items() if _CONCEPT in types]
        return declared or list(self._values["name"])

    def _parents(self) -> dict[str, list[str]]:
        parents: dict[str, list[str]] = {}
        for child, above in self._values["broader"].items():
            parents.setdefault(child, []).extend(uri for uri in above if isinstance(uri, str))
        for parent, below in self._values["narrower"].items():
            for child in below:
                if isinstance(child, str):
                    parents.setdefault(child, []).append(parent)
        return parents

    def _texts(self, uri: str, field: str) -> list[Tagged]:
        """Texts of a field, written as such or as a node that has a text."""
        found: list[Tagged] = []
        for value in self._values[field].get(uri, ()):
            found += [value] if isinstance(value, tuple) else self._values["value"].get(value, ())
        return [(text[0], clean(text[1])) for text in found if isinstance(text, tuple)
                and clean(text[1])]  # fmt: skip

    def _is_deprecated(self, uri: str) -> bool:
        return any(text.lower() in ("true", "1") for _, text in self._texts(uri, "deprecated"))


def _check_length(*uris: str) -> None:
    for uri in uris:
        if len(uri) > _LONGEST_URI:
            raise ValueError(
                f"a URI has {len(uri):,} characters ({uri[:60]}...); expected at most "
                f"{_LONGEST_URI:,}: shorten it, or the prefix or base that it is made of"
            )


@contextmanager
def _texts_as_written(rdflib: Any) -> Iterator[None]:
    """Keep literals as they are: rdflib turns a notation 05 into 5, and 1e9 into a gigabyte."""
    with _settings:
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            yield
        finally:
            rdflib.NORMALIZE_LITERALS = before


def _parse_lines(source: Source, statements: _Statements) -> None:
    ntriples = require("rdflib.plugins.parsers.ntriples", "skos")
    parser = ntriples.W3CNTriplesParser(statements)
    for number, line in source.lines():
        parser.line = line.strip()
        try:
            parser.parseline()
        except Exception as problem:  # of any kind: a file may hold anything
            raise _refused(source, problem, number) from None


def _parse_whole(source: Source, statements: _Statements) -> None:
    class Sink(statements.rdflib.Graph):  # type: ignore[name-defined, misc]
        def add(self, triple: Any) -> Any:
            statements.triple(*triple)
            return self

    content = _whole(source)
    if source.format == "rdfxml":
        form, data = "xml", _utf8(source, content)
        _check_declarations(source, data)
    else:
        form, data = "turtle", content.removeprefix(b"\xef\xbb\xbf")
        _check_utf8(source, data)
    try:
        Sink(bind_namespaces="none").parse(data=data, format=form, publicID=_BASE)
    except MemoryError:
        raise
    except Exception as problem:
        raise _refused(source, problem) from None


def _whole(source: Source) -> bytes:
    blocks, size = [], 0
    for block in source.blocks():
        blocks.append(block)
        size += len(block)
        if size > _LARGEST:
            raise source.error("more than 1 GB of RDF is too much to parse; use TSV or JSON Lines")
    return b"".join(blocks)


def _check_utf8(source: Source, content: bytes) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as problem:
        line = 1 + content.count(b"\n", 0, problem.start)
        raise source.error(f"not UTF-8 ({problem.reason}); save it as UTF-8", line) from None


class _Begun(Exception):  # noqa: N818
    """The first element was reached: there are no declarations after it."""


def _utf8(source: Source, content: bytes) -> bytes:
    """An XML file as rdflib reads it, which takes the encoding that the file declares for UTF-8."""
    encoding, content = "utf-8", content.removeprefix(b"\xef\xbb\xbf")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif declared := _ENCODING.match(content):
        encoding = declared[1].decode().lower()
    if not encoding.startswith(_ENCODINGS):
        raise source.error(f"the encoding {encoding!r} is not read; save it as UTF-8", 1)
    try:
        return content.decode(encoding).encode()
    except (LookupError, UnicodeError) as problem:
        raise source.error(f"not {encoding} ({problem}); save it as UTF-8") from None


def _check_declarations(source: Source, content: bytes) -> None:
    """Refuse entities and default attributes other than short texts.

    Entities for namespaces are common; long ones make much out of little.
    """
    parser = expat.ParserCreate("utf-8")

    def attribute(element: str, name: str, kind: str, default: str | None, required: bool) -> None:
        if default is not None and len(default) > _LONGEST_ENTITY:
            raise source.error(
                f"the attribute {name!r} has a long default value, which is not safe to read; save "
                "the file without a document type",
                parser.CurrentLineNumber,
            )

    def declared(name: str, is_parameter: bool, value: str | None, *rest: Any) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _LONGEST_ENTITY:
            raise source.error(
                f"the entity {name!r} is a file, is long or has other entities in it, which is not "
                "safe to read; save the file without entities",
                parser.CurrentLineNumber,
            )

    def begun(*element: Any) -> None:
        raise _Begun

    parser.EntityDeclHandler = declared
    parser.AttlistDeclHandler = attribute
    parser.StartElementHandler = begun
    try:
        for start in range(0, len(content), _BLOCK):
            parser.Parse(content[start : start + _BLOCK])
    except _Begun:
        return
    except expat.ExpatError as problem:
        raise source.error(f"not XML ({problem})", problem.lineno) from None


def _refused(source: Source, problem: Exception, line: int | None = None) -> DataFormatError:
    """The error for what a parser of rdflib raised: they raise many kinds."""
    if isinstance(problem, RecursionError):
        return source.error("nested too deeply", line)
    message = str(getattr(problem, "_why", problem)) or type(problem).__name__
    if hasattr(problem, "lines"):  # of Turtle, from 0
        line = problem.lines + 1
    if isinstance(problem, SAXParseException):
        line, message = problem.getLineNumber(), problem.getMessage()
    elif place := _PLACE.fullmatch(message):
        line, message = int(place[1]), place[2]
    return source.error(f"{' '.join(message.split())[:200]}", line)
