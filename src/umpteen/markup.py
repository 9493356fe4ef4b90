"""Pieces of HTML. Whatever is not a piece already is escaped, here and only here."""

import html
import re
from collections.abc import Sequence
from typing import Any

_BAR = 12.0  # em


class Html(str):
    """Text that may stand in a page as it is."""


def escape(value: Any) -> Html:
    """Return any value as text of a page.

    >>> escape("<b> & <i>")
    '&lt;b&gt; &amp; &lt;i&gt;'
    """
    if isinstance(value, Html):
        return value
    text = str(value).encode("utf-8", "replace").decode()  # half characters cannot be written
    return Html(html.escape(text))


def join(*pieces: Any) -> Html:
    """Return several pieces as one."""
    return Html("".join(escape(piece) for piece in pieces))


def tag(kind: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; `class_` is class, `aria_label` is aria-label, None is no attribute.

    >>> tag("p", "1 < 2", tag("b", "!"), class_="small", aria_label='"so"')
    '<p class="small" aria-label="&quot;so&quot;">1 &lt; 2<b>!</b></p>'
    """
    written = [
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return Html(f"<{kind}{''.join(written)}>{join(*children)}</{kind}>")


def name(label: Any) -> Html:
    """Return a label's name, which may break where its words meet.

    >>> name("numpy.linalg_x")
    'numpy.<wbr>linalg_<wbr>x'
    """
    pieces = re.split(r"(?<=[./_:-])(?=\w)", str(label))
    return Html("<wbr>".join(escape(piece) for piece in pieces))


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent.

    >>> percent(0.1234)
    '12.3'
    """
    return f"{100 * value:.{digits}f}"


def noted(first: Any, note: Any) -> Html:
    """Return an element with a smaller line below it."""
    return join(first, tag("small", note))


def table(caption: str, headings: list[str], rows: list[list[Any]]) -> Html:
    """Return a table whose first column names the rows; the others hold numbers."""
    head = [tag("th", heading, scope="col") for heading in headings]
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", value) for value in others))
        for first, *others in rows
    ]
    pieces = (tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("table", *pieces)


def notebook(*content: Any) -> Html:
    """Return what a notebook shows; names such as `$x$` stay as they are, no formulas."""
    return tag("div", *content, class_="umpteen tex2jax_ignore mathjax_ignore")


def contributions(caption: str, headings: list[str], rows: Sequence[Sequence[Any]]) -> Html:
    """Return a table whose rows end in a contribution, which is also drawn as a bar."""
    widest = max((abs(row[-1]) for row in rows), default=0.0) or 1.0
    written = [[*row[:-1], f"{row[-1]:+.3f}", _bar(row[-1] / widest)] for row in rows]
    return table(caption, [*headings, ""], written)


def _bar(share: float) -> Html:
    width = f"width: {_BAR * abs(share):.2f}em"
    colour = "#2e7d4f" if share > 0 else "#b3402a"
    return tag("div", style=f"{width}; height: 0.8em; background: {colour}", aria_hidden="true")
