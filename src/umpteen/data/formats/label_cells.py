"""Labels in the cells of a column, as `a|b`, and a hint where another separator seems meant."""

from collections import Counter

_OTHERS = ("|", ";", ",")
_SHARE = 0.2  # of the cells; in fewer, it is rather part of a name


class LabelCells:
    """The cells of a column of labels, one after another.

    >>> cells = LabelCells("|")
    >>> cells.names("bread | oven|"), cells.hint()
    (['bread', 'oven'], None)
    >>> cells = LabelCells("|")
    >>> cells.names("bread; oven"), cells.hint()
    (['bread; oven'], "no cell has two labels with '|' between them, but 1 of 1 have ';': if ...
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._n_filled = 0
        self._several = False
        self._others: Counter[str] = Counter()

    def names(self, cell: str) -> list[str]:
        """The names in a cell, without spaces around them."""
        names = [name for part in cell.split(self._separator) if (name := part.strip())]
        self._n_filled += bool(names)
        self._several = self._several or len(names) > 1
        if not self._several:
            self._others.update(other for other in _OTHERS if other in cell)
        return names

    def hint(self) -> str | None:
        """What to say once all cells were seen, if it is to be doubted that names are right."""
        del self._others[self._separator]
        other, n_seen = next(iter(self._others.most_common(1)), ("", 0))
        if self._several or not n_seen or n_seen < _SHARE * self._n_filled:
            return None
        return (
            f"no cell has two labels with {self._separator!r} between them, but {n_seen:,} of "
            f"{self._n_filled:,} have {other!r}: if that separates labels, say "
            f"label_separator={other!r}"
        )
