r"""Tables as Annif has them: TSV `<uri>\tname\tnotation`, CSV with `uri`, `label_en`, ..."""

from collections.abc import Iterator

from umpteen.data.formats.delimited import rows
from umpteen.data.formats.records import check_columns
from umpteen.data.formats.source import Source
from umpteen.data.label_vocabulary import Concept
from umpteen.data.vocabularies.languages import Multilingual, clean, in_language, tag_of

_DELIMITERS = ",;\t"
_LABEL = "label"


def read(source: Source, language: str | None) -> list[Concept]:
    """Return the concepts of the rows; rows without a name are retired labels and left out."""
    delimiter = _delimiter(source)
    if delimiter is None and source.format == "csv":
        raise source.error("no header; expected columns such as uri, label_en, notation", 1)
    found = _without_header(source) if delimiter is None else _with_header(source, delimiter)
    seen: set[str] = set()
    concepts = []
    for line, concept in found:
        if not concept.uri:
            raise source.error("the URI is empty; expected the name of a label", line)
        if concept.uri in seen:
            raise source.error(f"{concept.uri!r} is here for the second time", line)
        seen.add(concept.uri)
        concepts.append(concept)
    return in_language(concepts, language, source.name)


def is_header(head: bytes) -> bool:
    """Return whether a file begins with a header that has a column `uri` and one for names.

    >>> is_header(b"uri,label_en\\n"), is_header(b"<http://example.org/1>\\turi,label\\n")
    (True, False)
    """
    return any(_names_columns(_first_row(head, delimiter)) for delimiter in _DELIMITERS)


def _delimiter(source: Source) -> str | None:
    fitting = (one for one in _DELIMITERS if _names_columns(_first_row(source.head, one)))
    return next(fitting, None)


def _first_row(head: bytes, delimiter: str) -> list[str]:
    first = head.decode("utf-8-sig", errors="replace").lstrip("\r\n").partition("\n")[0]
    return [cell.strip('" \r') for cell in first.split(delimiter)]


def _names_columns(cells: list[str]) -> bool:
    return "uri" in cells and any(_tag(cell) is not None for cell in cells)


def _tag(column: str) -> str | None:
    """The language of a column of names; None for another column."""
    if column == _LABEL:
        return ""
    return tag_of(column.removeprefix("label_")) if column.startswith("label_") else None


def _with_header(source: Source, delimiter: str) -> Iterator[tuple[int, Multilingual]]:
    table = rows(source, delimiter, quoted=True)
    line, header = next(table)
    columns = [column.strip() for column in header]
    tags = {column: tag for column in columns if (tag := _tag(column)) is not None}
    try:
        check_columns(columns, "uri", "notation", *tags)
    except KeyError as problem:
        raise source.error(problem.args[0], line) from None
    for line, row in table:
        if len(row) != len(columns):
            raise source.error(f"{len(row)} cells, but the header has {len(columns)}", line)
        cells = dict(zip(columns, row, strict=True))
        names = [(tag, clean(cells[column])) for column, tag in tags.items()]
        yield (
            line,
            Multilingual(
                _bare(cells["uri"]),
                [(tag, name) for tag, name in names if name],
                notation=cells.get("notation", "").strip(),
            ),
        )


def _without_header(source: Source) -> Iterator[tuple[int, Multilingual]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        uri, *cells = line.rstrip("\r").split("\t")
        if not cells and not _is_bracketed(uri.strip()):
            raise source.error(f"{line[:40]!r} has no tab; expected <uri>, a tab, a name", number)
        name = clean(cells[0]) if cells else ""
        notation = cells[1].strip() if len(cells) > 1 else ""
        yield number, Multilingual(_bare(uri), [("", name)] if name else [], notation=notation)


def _is_bracketed(uri: str) -> bool:
    return uri.startswith("<") and uri.endswith(">")


def _bare(uri: str) -> str:
    uri = uri.strip()
    return uri[1:-1] if _is_bracketed(uri) else uri
