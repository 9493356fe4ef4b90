"""Networks: what every neural method shares."""

from umpteen.extras import require

require("torch", "neural")

from umpteen.neural.head import Head  # noqa: E402
from umpteen.neural.targets import Targets  # noqa: E402

__all__ = ["Head", "Targets"]
