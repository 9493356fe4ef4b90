"""Linear classifiers in a label tree."""

from umpteen.linear.label_tree import LabelTree

__all__ = ["LabelTree"]
