"""Tagger: texts in, label names out, with probabilities and reasons."""

from umpteen.tagger.explanation import TagExplanation
from umpteen.tagger.tagger import Tagger
from umpteen.tagger.thresholds import Thresholds

__all__ = ["TagExplanation", "Tagger", "Thresholds"]
