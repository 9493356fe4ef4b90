"""The claims of each paper, re-run at a size that fits one machine: one module per paper.

A module has `TITLE`, `PAPER` (authors, title, where) and `claims(quick)`, which gives the
sections of the paper's page. Nothing is computed before a section's `measure` is called.
"""

from importlib import import_module

from papers.contents import Figure, Section, Table, Value
from papers.frame import Reproduction
from umpteen.errors import ParameterError

__all__ = ["PAPERS", "Figure", "Reproduction", "Section", "Table", "Value", "prepare"]

PAPERS = {
    "eagle": "papers.eagle",
    "adversarial": "papers.adversarial",
    "multihead": "papers.multihead",
    "collapse": "papers.collapse",
    "siamese": "papers.siamese",
}


def prepare(name: str, quick: bool = False, only: str = "") -> Reproduction:
    """What is to be measured for a paper; `quick` is the same in small, to see that it runs.

    `only`: sections whose title has this in it, in upper or lower case.

    >>> prepare("eagle").title
    'EAGLE: labels that are known only per group'
    """
    if name not in PAPERS:
        raise ParameterError(f"there is no paper {name!r} to reproduce: {', '.join(PAPERS)}")
    module = import_module(PAPERS[name])
    sections: list[Section] = list(module.claims(quick))
    chosen = [section for section in sections if only.casefold() in section.title.casefold()]
    if not chosen:
        titles = "; ".join(section.title for section in sections)
        raise ParameterError(f"no section of {name} has {only!r} in its title: {titles}")
    return Reproduction(name, module.TITLE, module.PAPER, quick, chosen)
