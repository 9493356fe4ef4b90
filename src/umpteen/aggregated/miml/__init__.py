"""Networks that learn from bags of instances: Deep-MIML, and EAGLE's co-attention on top of it."""

from umpteen.extras import require

require("torch", "neural")

from umpteen.aggregated.miml.classifier import CoAttentionMIML  # noqa: E402
from umpteen.aggregated.miml.recipe import MIMLRecipe  # noqa: E402

__all__ = ["CoAttentionMIML", "MIMLRecipe"]
