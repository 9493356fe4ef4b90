"""Labels that are known only per group of samples: EAGLE (Shen et al. 2020), and beyond."""

from importlib import import_module
from typing import Any

from umpteen.aggregated.assignment import assign_labels
from umpteen.aggregated.baseline import ignore_groups
from umpteen.aggregated.eagle import Eagle
from umpteen.aggregated.embeddings import group_label_embeddings
from umpteen.aggregated.recipe import EagleRecipe

__all__ = ["Eagle", "EagleRecipe", "assign_labels", "group_label_embeddings", "ignore_groups"]


def __getattr__(name: str) -> Any:
    if name == "miml":  # needs PyTorch, so it is imported only where it is asked for
        return import_module("umpteen.aggregated.miml")
    raise AttributeError(f"module 'umpteen.aggregated' has no attribute {name!r}")
