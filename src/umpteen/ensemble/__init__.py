"""Several classifiers as one: their candidates together, ranked by weights that are learned."""

from umpteen.ensemble.ensemble import Ensemble, EnsembleExplanation, MemberContribution

__all__ = ["Ensemble", "EnsembleExplanation", "MemberContribution"]
