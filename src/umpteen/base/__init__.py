"""The contract: what every method is, what it answers, and what else a method may be able to do."""

from umpteen.base.abilities import (
    AddsLabels,
    Combines,
    Estimates,
    Explains,
    ExplainsByWeights,
    KnowsFeatures,
    LearnsFromLabelFeatures,
    LearnsRoughly,
    MatchesLabelNames,
    RefitsLabels,
    RemovesLabels,
    StartsFromTokenVectors,
    WeighsLabelFeatures,
    is_able,
)
from umpteen.base.classifier import ExtremeClassifier
from umpteen.base.recipe import HasRecipe, Recipe
from umpteen.base.topk import TopK

__all__ = [
    "AddsLabels",
    "Combines",
    "Estimates",
    "Explains",
    "ExplainsByWeights",
    "ExtremeClassifier",
    "HasRecipe",
    "KnowsFeatures",
    "LearnsFromLabelFeatures",
    "LearnsRoughly",
    "MatchesLabelNames",
    "Recipe",
    "RefitsLabels",
    "RemovesLabels",
    "StartsFromTokenVectors",
    "TopK",
    "WeighsLabelFeatures",
    "is_able",
]
