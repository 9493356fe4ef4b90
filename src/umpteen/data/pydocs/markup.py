"""Plain sentences out of reStructuredText, as far as docstrings use it."""

import re
from collections.abc import Iterator

_KEPT_DIRECTIVES = ("note", "warning", "important", "tip", "caution")
_DIRECTIVE = re.compile(r"^\.\. ")
_KEPT = re.compile(rf"^\.\. (?:{'|'.join(_KEPT_DIRECTIVES)})::\s*(.*)$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\(?\d+[.)]|#\.)\s+")
_NOT_PROSE = re.compile(r"^(>>>|\.\.\.|:[\w ]+:|[-=+|~]{3,}|@|\$|#)")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|resp|approx|Eq|Eqs|Fig|Ref|Sec|al|[A-Z])\.$")

_MARKS = (
    (re.compile(r":[\w:+-]+:`([^`]*)`"), r"`\1`"),
    (re.compile(r"``([^`]*)``"), r"\1"),
    (re.compile(r"`([^`<]*?)\s*<[^`>]*>`_*"), r"\1"),
    (re.compile(r"`[~!]?([^`]*)`_*"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<!\w)\*([\w][^*]*)\*(?!\w)"), r"\1"),
    (re.compile(r"\s*\[[\w-]+\]_"), ""),
    (re.compile(r"\\(?:math\w+|text|operatorname|left|right|frac)?"), ""),
    (re.compile(r"::(?=\s|$)"), ":"),
    (re.compile(r"\s+"), " "),
)


def clean(text: str) -> str:
    """Return text without marks, on one line: what a reader of the rendered page sees.

    >>> clean("Like :func:`~numpy.dot`, but *faster* for ``x``  [1]_.")
    'Like numpy.dot, but faster for x.'
    """
    for mark, replacement in _MARKS:
        text = mark.sub(replacement, text)
    return text.strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph.

    >>> sentences("Solve it, e.g. by LU. The rest (if any) is 0.5.")
    ['Solve it, e.g. by LU.', 'The rest (if any) is 0.5.']
    """
    found: list[str] = []
    for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z(\"'])", text):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {piece}"
        elif piece:
            found.append(piece)
    return found


def paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield paragraphs and list items; no code, tables, fields, nor directives except notes."""
    for block in _blocks(_unwrapped(lines)):
        if not block[0].startswith(" ") or _ITEM.match(block[0]):
            yield from _items(block)


def _unwrapped(lines: list[str]) -> Iterator[str]:
    """Lines with the text of notes moved to the margin and other directives left out."""
    directive, is_kept = False, False
    for line in lines:
        if _DIRECTIVE.match(line):
            kept = _KEPT.match(line)
            directive, is_kept = True, kept is not None
            yield ""
            yield kept[1] if kept else ""
        elif directive and (line.startswith(" ") or not line.strip()):
            yield line.strip() if is_kept else ""
        else:
            directive = False
            yield line


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            if not any(_NOT_PROSE.match(line.strip()) for line in block):
                yield block
            block = []


def _items(block: list[str]) -> Iterator[str]:
    """The items of a list one by one; any other block as it is."""
    item: list[str] = []
    for line in block:
        if _ITEM.match(line) and item:
            yield " ".join(item)
            item = []
        item.append(_ITEM.sub("", line, count=1).strip())
    yield " ".join(item)
