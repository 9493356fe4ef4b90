"""Linear classifiers in a label tree."""

from umpteen.linear.label_texts import NameFeatures
from umpteen.linear.label_tree import LabelTree
from umpteen.linear.recipe import TreeRecipe

__all__ = ["LabelTree", "NameFeatures", "TreeRecipe"]
