"""Data: data sets by name, made up, or read from files."""

from umpteen.data.dataset import Dataset
from umpteen.data.loading import load
from umpteen.data.synthetic import make_extreme

__all__ = ["Dataset", "load", "make_extreme"]
