"""Rankers that learn on a validation split what the evidence for a candidate is worth."""

from umpteen.ranking.boosted_trees import BoostedTrees
from umpteen.ranking.quadratic import QuadraticRanker

__all__ = ["BoostedTrees", "QuadraticRanker"]
