"""Last layers for very many labels: heads that share the work (Liang et al., Multi-Head Encoding).

A label's number is written with several short digits, as 742 is with three, and each head finds
one digit. `ProductHead` is smallest, `CascadeHead` searches from coarse to fine and takes several
labels per sample, `SamplingHead` trains a few groups of a full layer at a time, `PowersetHead`
answers with a whole set of labels.
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
