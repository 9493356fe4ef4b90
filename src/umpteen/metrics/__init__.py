"""Metrics for very many labels: of rankings, of sets, of probabilities and of single labels.

Everything works on `TopK` or sparse matrices; nothing dense of size samples x labels is built.
"""

from umpteen.metrics.collapse import (
    CollapseMeasures,
    classifier_simplex,
    collapse_measures,
    means_simplex,
    self_duality,
    set_variability,
    tagwise_angle,
)
from umpteen.metrics.confusion import most_confused
from umpteen.metrics.hierarchy import (
    hierarchical_f1_at_k,
    hierarchical_precision_at_k,
    hierarchical_recall_at_k,
)
from umpteen.metrics.macro import macro_f1_at_k, macro_precision_at_k, macro_recall_at_k
from umpteen.metrics.pairs import filter_pairs
from umpteen.metrics.per_label import per_label
from umpteen.metrics.propensity import (
    PROPENSITY_CONSTANTS,
    LabelCounts,
    propensity,
    psndcg_at_k,
    psp_at_k,
)
from umpteen.metrics.ranking import coverage_at_k, f1_at_k, ndcg_at_k, precision_at_k, recall_at_k
from umpteen.metrics.relatives import most_specific, with_ancestors
from umpteen.metrics.reliability import (
    expected_calibration_error,
    precision_at_thresholds,
    reliability,
)
from umpteen.metrics.sets import (
    hamming_loss,
    jaccard,
    macro_f1,
    micro_f1,
    sample_f1,
    subset_accuracy,
)

__all__ = [
    "PROPENSITY_CONSTANTS",
    "CollapseMeasures",
    "LabelCounts",
    "classifier_simplex",
    "collapse_measures",
    "coverage_at_k",
    "expected_calibration_error",
    "f1_at_k",
    "filter_pairs",
    "hamming_loss",
    "hierarchical_f1_at_k",
    "hierarchical_precision_at_k",
    "hierarchical_recall_at_k",
    "jaccard",
    "macro_f1",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "means_simplex",
    "micro_f1",
    "most_confused",
    "most_specific",
    "ndcg_at_k",
    "per_label",
    "precision_at_k",
    "precision_at_thresholds",
    "propensity",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "reliability",
    "sample_f1",
    "self_duality",
    "set_variability",
    "subset_accuracy",
    "tagwise_angle",
    "with_ancestors",
]
