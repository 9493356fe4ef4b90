"""Adversarial softmax (Bamler and Mandt 2020): every claim that can be measured."""

from papers.adversarial import (
    beyond,
    defaults,
    directions,
    figure1,
    noises,
    objectives,
    signal,
    theorems,
    trained,
    trees,
)
from papers.contents import Section

TITLE = "Adversarial softmax: a softmax over very many classes at logarithmic cost"
PAPER = "Bamler and Mandt, Extreme Classification via Adversarial Softmax Approximation, ICLR 2020"

_CHAPTERS = (
    theorems,
    objectives,
    trees,
    noises,
    directions,
    defaults,
    signal,
    trained,
    figure1,
    beyond,
)


def claims(quick: bool) -> list[Section]:
    """All sections of the page: what is quick to measure comes first."""
    return [section for chapter in _CHAPTERS for section in chapter.sections(quick)]
