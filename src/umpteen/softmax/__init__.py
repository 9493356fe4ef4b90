"""Softmax over very many classes at logarithmic cost (Bamler and Mandt 2020)."""

from umpteen.softmax.noise_tree import NoiseTree

__all__ = ["NoiseTree"]
