"""Labels that are known only per group of samples: EAGLE (Shen et al. 2020), and beyond."""

from umpteen.aggregated.assignment import assign_labels
from umpteen.aggregated.baseline import ignore_groups
from umpteen.aggregated.eagle import Eagle
from umpteen.aggregated.embeddings import group_label_embeddings
from umpteen.aggregated.recipe import EagleRecipe

__all__ = ["Eagle", "EagleRecipe", "assign_labels", "group_label_embeddings", "ignore_groups"]
