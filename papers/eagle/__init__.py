"""EAGLE (Shen, Yu, Sanghavi and Dhillon 2020): every claim that can be measured."""

from papers.contents import Section
from papers.eagle import accuracy, figures, miml, readings, theorems

TITLE = "EAGLE: labels that are known only per group"
PAPER = "Shen, Yu, Sanghavi and Dhillon, Extreme Multi-label Classification from Aggregated Labels"

_CHAPTERS = (accuracy, readings, figures, miml, theorems)


def claims(quick: bool) -> list[Section]:
    """All sections of the page, in the paper's order."""
    return [section for chapter in _CHAPTERS for section in chapter.sections(quick)]
