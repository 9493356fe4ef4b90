"""Softmax over very many classes at logarithmic cost (Bamler and Mandt 2020)."""

from umpteen.softmax.adversarial import AdversarialSoftmax
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.settings import SoftmaxRecipe

__all__ = ["AdversarialSoftmax", "NoiseTree", "SoftmaxRecipe"]
