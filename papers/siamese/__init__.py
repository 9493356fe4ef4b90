"""SiameseXML (Dahiya et al.): every claim that can be measured."""

from papers.contents import Section
from papers.siamese import lemmas, newcomers, quality, speed, surrogates

TITLE = "SiameseXML: labels with texts of their own"
PAPER = (
    "Dahiya, Agarwal, Saini, Gururaj, Jiao, Singh, Agarwal, Kar and Varma, SiameseXML: Siamese "
    "Networks meet Extreme Classifiers with 100M Labels (tables and claims by the supplement)"
)

_CHAPTERS = (quality, newcomers, speed, surrogates, lemmas)


def claims(quick: bool) -> list[Section]:
    """All sections of the page: quality, new labels, cost, theory."""
    return [section for chapter in _CHAPTERS for section in chapter.sections(quick)]
