"""Label trees: what a label looks like, and how similar labels come to stand together."""

from umpteen.trees.hierarchy import Hierarchy, grow
from umpteen.trees.representation import label_representation

__all__ = ["Hierarchy", "grow", "label_representation"]
