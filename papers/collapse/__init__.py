"""Multi-label neural collapse (Li et al.): every claim that can be measured."""

from papers.collapse import (
    cifar,
    curves,
    decoders,
    frames,
    heads,
    landscape,
    projection,
    texts,
    theory,
    unseen,
)
from papers.contents import Section

TITLE = "Neural collapse with several labels: where features go, and what follows"
PAPER = (
    "Li, Li, Wang and Qu, Neural Collapse in Multi-label Learning with Pick-all-label Loss "
    "(ONN is NearestSet here, OvA is OneVsAll)"
)

_CHAPTERS = (projection, curves, cifar, decoders, unseen, heads, texts, frames, theory, landscape)


def claims(quick: bool) -> list[Section]:
    """All sections of the page: the phenomenon, its uses, beyond the paper, the theory."""
    return [section for chapter in _CHAPTERS for section in chapter.sections(quick)]
