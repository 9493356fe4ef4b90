"""Networks: what every neural method shares.

A network has an encoder (`Bag`, `MLP`, `Conv`, `ResNet`, `Transformer`), which computes features of
samples, and a `Head`, which scores labels from these. `NeuralClassifier` trains any encoder with
any head; `heads` also work in your own training loop.
"""

from umpteen.extras import require

require("torch", "neural")

from umpteen.neural import heads  # noqa: E402
from umpteen.neural.blueprints import Blueprint, blueprint  # noqa: E402
from umpteen.neural.classifier import NeuralClassifier  # noqa: E402
from umpteen.neural.encoders import MLP, Bag, Conv, Residual  # noqa: E402
from umpteen.neural.full import FullHead  # noqa: E402
from umpteen.neural.head import Head  # noqa: E402
from umpteen.neural.inputs import SparseRows  # noqa: E402
from umpteen.neural.optimizers import clip_gradients  # noqa: E402
from umpteen.neural.recipe import NetworkRecipe  # noqa: E402
from umpteen.neural.resnet import ResNet  # noqa: E402
from umpteen.neural.row_adam import RowAdam  # noqa: E402
from umpteen.neural.sharded import ShardedHead  # noqa: E402
from umpteen.neural.targets import Targets  # noqa: E402
from umpteen.neural.transformer import Transformer  # noqa: E402

__all__ = [
    "MLP",
    "Bag",
    "Blueprint",
    "Conv",
    "FullHead",
    "Head",
    "NetworkRecipe",
    "NeuralClassifier",
    "ResNet",
    "Residual",
    "RowAdam",
    "ShardedHead",
    "SparseRows",
    "Targets",
    "Transformer",
    "blueprint",
    "clip_gradients",
    "heads",
]
