"""Multi-Head Encoding (Liang et al.): every claim that can be measured."""

from papers.contents import Section
from papers.multihead import (
    bottleneck,
    cifar,
    decomposition,
    labels,
    powersets,
    several,
    single,
    speed,
    stacked,
    theorems,
)

TITLE = "Multi-Head Encoding: last layers that share the work"
PAPER = (
    "Liang, Zhang, Yuan and Zhang, Multi-Head Encoding for Extreme Label Classification "
    "(OHE is a full layer; MHP, MHC and MHS are ProductHead, CascadeHead and SamplingHead here)"
)

_CHAPTERS = (
    speed,
    single,
    several,
    cifar,
    stacked,
    labels,
    powersets,
    decomposition,
    bottleneck,
    theorems,
)


def claims(quick: bool) -> list[Section]:
    """All sections of the page: cost, accuracy, choices, theory."""
    return [section for chapter in _CHAPTERS for section in chapter.sections(quick)]
