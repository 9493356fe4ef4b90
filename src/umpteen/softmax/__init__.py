"""Softmax over very many classes at logarithmic cost (Bamler and Mandt 2020)."""

from typing import TYPE_CHECKING, Any

from umpteen.extras import require
from umpteen.softmax.adversarial import AdversarialSoftmax
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.settings import SoftmaxRecipe

if TYPE_CHECKING:
    from umpteen.softmax.head import AdversarialHead as AdversarialHead

__all__ = ["AdversarialHead", "AdversarialSoftmax", "NoiseTree", "SoftmaxRecipe"]


def __getattr__(name: str) -> Any:
    """Import the head, which needs PyTorch, on first use."""
    if name != "AdversarialHead":
        raise AttributeError(f"module 'umpteen.softmax' has no attribute {name!r}")
    require("torch", "neural")
    from umpteen.softmax.head import AdversarialHead

    return AdversarialHead
