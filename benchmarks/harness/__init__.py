"""What benchmarks share: data, environments, timed worker processes and reports.

`import harness` makes the root of the repository importable, so that a benchmark may use `papers`.
"""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])
if _ROOT not in sys.path:
    sys.path.append(_ROOT)
