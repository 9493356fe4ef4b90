"""umpteen: extreme classification, the right few labels out of thousands to millions.

Every public name is imported on first use, so that `import umpteen` stays light.

>>> import umpteen as um
>>> um.TopK(labels=[[3, 1]], scores=[[0.9, 0.4]]).names(["a", "b", "c", "d"])
[[('d', 0.9), ('b', 0.4)]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "AdversarialSoftmax": "umpteen.softmax",
    "CoAttentionMIML": "umpteen.aggregated.miml",
    "Eagle": "umpteen.aggregated",
    "Ensemble": "umpteen.ensemble",
    "ExtremeClassifier": "umpteen.base",
    "LabelTree": "umpteen.linear",
    "NearestCentroid": "umpteen.centroid",
    "NeuralClassifier": "umpteen.neural",
    "Report": "umpteen.report",
    "Reranker": "umpteen.rerank",
    "SiameseXML": "umpteen.siamese",
    "Tagger": "umpteen.tagger",
    "TopK": "umpteen.base",
    "all_estimators": "umpteen.selection",
    "edit": "umpteen.storage",
    "evaluate": "umpteen.report",
    "ignore_groups": "umpteen.aggregated",
    "load": "umpteen.storage",
    "push_to_hub": "umpteen.hub",
    "recommend": "umpteen.recommending",
    "save": "umpteen.storage",
    "scorer": "umpteen.selection",
    "to_table": "umpteen.tables",
}
_SUBPACKAGES = (
    "aggregated",
    "cluster",
    "collapse",
    "data",
    "ensemble",
    "errors",
    "hub",
    "linear",
    "metrics",
    "multihead",
    "neural",
    "report",
    "rerank",
    "search",
    "serve",
    "siamese",
    "softmax",
    "text",
    "trees",
)

__all__ = [*_HOME, *_SUBPACKAGES, "__version__"]

if TYPE_CHECKING:  # `as` tells type checkers that a name is public
    from umpteen.aggregated import Eagle as Eagle
    from umpteen.aggregated import ignore_groups as ignore_groups
    from umpteen.aggregated.miml import CoAttentionMIML as CoAttentionMIML
    from umpteen.base import ExtremeClassifier as ExtremeClassifier
    from umpteen.base import TopK as TopK
    from umpteen.centroid import NearestCentroid as NearestCentroid
    from umpteen.ensemble import Ensemble as Ensemble
    from umpteen.hub import push_to_hub as push_to_hub
    from umpteen.linear import LabelTree as LabelTree
    from umpteen.neural import NeuralClassifier as NeuralClassifier
    from umpteen.recommending import recommend as recommend
    from umpteen.report import Report as Report
    from umpteen.report import evaluate as evaluate
    from umpteen.rerank import Reranker as Reranker
    from umpteen.selection import all_estimators as all_estimators
    from umpteen.selection import scorer as scorer
    from umpteen.siamese import SiameseXML as SiameseXML
    from umpteen.softmax import AdversarialSoftmax as AdversarialSoftmax
    from umpteen.storage import edit as edit
    from umpteen.storage import load as load
    from umpteen.storage import save as save
    from umpteen.tables import to_table as to_table
    from umpteen.tagger import Tagger as Tagger


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"umpteen.{name}")
    raise AttributeError(f"module 'umpteen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
