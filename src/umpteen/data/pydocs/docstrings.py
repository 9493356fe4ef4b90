"""What a docstring says in plain sentences: summary, description and notes; and its See Also."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from umpteen.data.pydocs.markup import clean, paragraphs, sentences

_MIN_WORDS, _MAX_WORDS = 3, 60
_CALL = r"(?:[\w.\[\], ()<>]+ = )?[\w.<>]+ ?\(.*?\)"
_SIGNATURE = re.compile(rf"^(?:{_CALL}\s*(?:(?:-{1, 2}>|=>).*)?|--)$")
_CALLED_THUS = re.compile(rf"^{_CALL}\s*(?:--|:)\s+(?=\w)")
_BOILERPLATE = re.compile(r"Array API|array-?api|^\w+ : ", re.IGNORECASE)
_UNDERLINE = re.compile(r"^([-=~])\1{2,}\s*$")
_REFERENCE = re.compile(r"^(?::[\w:]+:)?`?~?([A-Za-z][\w.]*)`?$")


class Document(NamedTuple):
    """The prose of a docstring: what the object is for."""

    summary: str
    sentences: list[str]  # without the summary
    see_also: list[tuple[list[str], str]]  # (names as written, what is said of them)


def read_docstring(docstring: str) -> Document | None:
    """Return summary, further sentences and See Also; None where there is no sentence.

    >>> read_docstring("Sort an array.\\n\\nUses merges. It is stable, always.").sentences
    ['It is stable, always.']
    """
    sections = _sections(docstring)
    described = _prose(_without_signature(sections[""]))
    if not described or len(described[0].split()) < 2:
        return None
    further = [*described[1:], *_prose(sections.get("notes", []))]
    return Document(
        summary=described[0],
        sentences=[text for text in further if _is_telling(text)],
        see_also=list(_see_also(sections.get("see also", []))),
    )


def _prose(lines: list[str]) -> list[str]:
    return [text for paragraph in paragraphs(lines) for text in sentences(clean(paragraph))]


def _is_telling(sentence: str) -> bool:
    """Whether it is long enough to mean something, and made of words more than of symbols."""
    if _BOILERPLATE.search(sentence):
        return False
    n_letters = sum(character.isalpha() or character == " " for character in sentence)
    n_words = len(sentence.split())
    return _MIN_WORDS <= n_words <= _MAX_WORDS and n_letters > 0.75 * len(sentence)


def _sections(docstring: str) -> dict[str, list[str]]:
    """Lines under each underlined heading (in small letters); those before the first under ''."""
    lines = docstring.expandtabs().splitlines()
    sections: dict[str, list[str]] = {"": []}
    heading = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.strip() and _UNDERLINE.match(following.strip()) and not line.startswith(" "):
            heading = line.strip().lower().rstrip(":")
            sections.setdefault(heading, [])
        elif not _UNDERLINE.match(line.strip()):
            sections[heading].append(line)
    return sections


def _without_signature(lines: list[str]) -> list[str]:
    """C functions begin with how they are called, in one or several lines."""
    end = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    if _SIGNATURE.match(" ".join(lines[:end])):
        return _without_signature(lines[end + 1 :]) if end < len(lines) else []
    start = 0
    while start < end and _SIGNATURE.match(lines[start]):
        start += 1
    return [_CALLED_THUS.sub("", line) for line in lines[start : start + 1]] + lines[start + 1 :]


def _see_also(lines: list[str]) -> Iterator[tuple[list[str], str]]:
    """Pairs of names and description: `name, name : text`, or the text below, indented."""
    names: list[str] = []
    texts: list[str] = []
    for line in [*lines, "end :"]:
        if line.startswith(" ") or not line.strip():
            texts.append(line.strip())
            continue
        description = clean(" ".join(texts))
        if names and len(description.split()) > 1:
            yield names, description
        written, _, text = f"{line} ".partition(" : ")
        names, texts = _references(written.strip().rstrip(":")), [text.strip()]


def _references(written: str) -> list[str]:
    matches = [_REFERENCE.match(name.strip()) for name in written.split(",")]
    return [match[1] for match in matches if match] if all(matches) else []
