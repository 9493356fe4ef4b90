"""Label trees: representations of labels, and their hierarchical clustering."""

from umpteen.trees.hierarchy import Hierarchy, grow
from umpteen.trees.representation import label_representation

__all__ = ["Hierarchy", "grow", "label_representation"]
