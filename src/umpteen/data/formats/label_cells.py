"""Parse label cells, and warn if the file may mean something else."""

from collections import Counter
from typing import Any

from umpteen.data.formats.records import label_names
from umpteen.errors import warn_caller
from umpteen.validation import is_written_list

_OTHERS = ("|", ";", ",")
_SHARE = 0.2  # of the cells; in fewer, it is rather part of a name


class Spellings:
    """Collects the spellings of labels, to find those that differ only in spaces.

    >>> spellings = Spellings()
    >>> spellings.add("rye bread", "rye bread")
    >>> spellings.add("rye bread ", "rye bread")
    >>> spellings.hint()
    "labels that differ only in spaces: 'rye bread' and 'rye bread ' are read as the same label"
    """

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}  # squeezed: as spelled first, and as read
        self._known: set[str] = set()
        self._found: list[str] = []

    def add(self, spelling: str, name: str) -> None:
        """Add a spelling and the label name that it is read as."""
        if spelling in self._known:
            return
        self._known.add(spelling)
        first, first_name = self._first.setdefault(" ".join(spelling.split()), (spelling, name))
        if first != spelling:
            read_as = "the same label" if first_name == name else "two labels"
            self._found.append(f"{first!r:.80} and {spelling!r:.80} are read as {read_as}")

    def hint(self) -> str | None:
        """Return the warning about all spellings seen, or None."""
        if not self._found:
            return None
        more = f" (and {len(self._found) - 1:,} more)" if len(self._found) > 1 else ""
        return f"labels that differ only in spaces: {self._found[0]}{more}"


class LabelCells:
    """The cells of a column of labels, one after another.

    >>> cells = LabelCells("|")
    >>> cells.names("bread | oven|"), cells.hint()
    (['bread', 'oven'], None)
    >>> cells = LabelCells("|")
    >>> cells.names("bread; oven"), cells.hint()
    (['bread; oven'], "no cell has two labels with '|' between them, but 1 of 1 have ';': if ...
    >>> cells = LabelCells("|")
    >>> cells.names("['bread', 'oven']")
    ["['bread', 'oven']"]
    >>> print(cells.hint())
    1 of 1 cells are lists written as a text, such as "['bread', 'oven']", and ...
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._n_filled = 0
        self._several = False
        self._others: Counter[str] = Counter()
        self._n_written, self._written = 0, ""
        self._spellings = Spellings()

    def names(self, cell: str) -> list[str]:
        """Return the names in a cell, without spaces around them."""
        names = [name for part in cell.split(self._separator) if (name := part.strip())]
        self._n_filled += bool(names)
        if is_written_list(cell):
            self._n_written += 1
            self._written = self._written or cell
        self._several = self._several or len(names) > 1
        if not self._several:
            self._others.update(other for other in _OTHERS if other in cell)
        for spelling, name in zip(_as_spelled(names, cell), names, strict=True):
            self._spellings.add(spelling, name)
        return names

    def warn(self, file: str) -> None:
        """Warn about ambiguous labels; call it after the last cell."""
        _warn(file, self.hint(), self._spellings.hint())

    def hint(self) -> str | None:
        """Return a warning if lists or another separator seem to be meant, or None."""
        if self._n_written and self._n_written >= _SHARE * self._n_filled:
            return (
                f"{self._n_written:,} of {self._n_filled:,} cells are lists written as a text, "
                f"such as {self._written!r:.80}, and their brackets and quotation marks are read "
                f"as parts of names: write names with {self._separator!r} between them, with "
                f"pandas frame[column].str.join({self._separator!r})"
            )
        del self._others[self._separator]
        other, n_seen = next(iter(self._others.most_common(1)), ("", 0))
        if self._several or not n_seen or n_seen < _SHARE * self._n_filled:
            return None
        return (
            f"no cell has two labels with {self._separator!r} between them, but {n_seen:,} of "
            f"{self._n_filled:,} have {other!r}: if that separates labels, say "
            f"label_separator={other!r}"
        )


def _as_spelled(names: list[str], cell: str) -> list[str]:
    """Return the names with the spaces around the cell; spaces at separators do not count.

    >>> _as_spelled(["a", "b"], " a | b")
    [' a', 'b']
    """
    if not names or cell == cell.strip():
        return names
    spelled = list(names)
    spelled[0] = cell[: len(cell) - len(cell.lstrip())] + spelled[0]
    spelled[-1] += cell[len(cell.rstrip()) :]
    return spelled


class LabelLists:
    """The labels of objects or rows, lists or single names, one after another.

    >>> lists = LabelLists()
    >>> lists.names(["bread", "oven"]), lists.names("bread|oven")
    (['bread', 'oven'], ['bread|oven'])
    >>> print(lists.hint())
    1 of 1 labels given as a text, not as a list, contain '|', such as 'bread|oven'; each was ...
    """

    def __init__(self) -> None:
        self._n_single = 0
        self._others: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._spellings = Spellings()

    def names(self, value: Any) -> list[str] | None:
        """Return the names in a list, or the one name; None for anything else."""
        names = label_names(value)
        if isinstance(value, str):
            self._n_single += 1
            for other in _OTHERS:
                if other in value.strip(other):
                    self._others[other] += 1
                    self._example.setdefault(other, value)
        for name in names or ():
            self._spellings.add(name, name)
        return names

    def warn(self, file: str) -> None:
        """Warn about ambiguous labels; call it after the last list."""
        _warn(file, self.hint(), self._spellings.hint())

    def hint(self) -> str | None:
        """Return a warning if single texts look like lists, or None."""
        for other, n_seen in self._others.most_common():
            # `|` is rarely part of a name.
            if other == "|" or n_seen >= _SHARE * self._n_single:
                return (
                    f"{n_seen:,} of {self._n_single:,} labels given as a text, not as a list, "
                    f"contain {other!r}, such as {self._example[other]!r:.80}; each was read as "
                    f'one label. If {other!r} separates labels, give a list, as in ["a", "b"]'
                )
        return None


def _warn(file: str, *hints: str | None) -> None:
    for hint in filter(None, hints):
        warn_caller(f"{file}: {hint}")
