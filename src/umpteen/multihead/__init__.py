"""Last layers for very many labels: heads that share the work (Liang et al., Multi-Head Encoding).

The number of a label is written with several digits, as 742 has three, and each head predicts one
digit. `ProductHead` is smallest, `CascadeHead` searches from coarse to fine and takes several
labels per sample, `SamplingHead` trains a few groups of a full layer at a time, `PowersetHead`
predicts whole label sets.
"""

from umpteen.extras import require

require("torch", "neural")

from umpteen.multihead.cascade import CascadeHead  # noqa: E402
from umpteen.multihead.code import LabelCode  # noqa: E402
from umpteen.multihead.powerset import PowersetCode, PowersetHead  # noqa: E402
from umpteen.multihead.product import ProductHead  # noqa: E402
from umpteen.multihead.sampling import SamplingHead  # noqa: E402

__all__ = [
    "CascadeHead",
    "LabelCode",
    "PowersetCode",
    "PowersetHead",
    "ProductHead",
    "SamplingHead",
]
