"""Multi-label neural collapse: its loss, its fixed classifier, decoders of label sets.

The loss and the head need PyTorch and are imported on first use; the rest does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from umpteen.collapse.frames import coherence, fixed_frame, welch_bound
from umpteen.collapse.nearest_set import NearestSet
from umpteen.collapse.one_vs_all import OneVsAll

if TYPE_CHECKING:
    from umpteen.collapse.etf_head import EtfHead
    from umpteen.neural.losses import pick_all_labels

__all__ = [
    "EtfHead",
    "NearestSet",
    "OneVsAll",
    "coherence",
    "fixed_frame",
    "pick_all_labels",
    "welch_bound",
]

_NEEDS_TORCH = {
    "EtfHead": "umpteen.collapse.etf_head",
    "pick_all_labels": "umpteen.neural.losses",
}


def __getattr__(name: str) -> Any:
    if name in _NEEDS_TORCH:
        import_module("umpteen.neural")  # says what to install where PyTorch is missing
        return getattr(import_module(_NEEDS_TORCH[name]), name)
    raise AttributeError(f"module 'umpteen.collapse' has no attribute {name!r}")
