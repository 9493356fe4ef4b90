"""Past one machine, or past its memory.

`with um.cluster.ray("auto"): tagger.fit(texts, labels)` runs the tasks of the block on a Ray
cluster (extra `cluster`); the result is the same to the bit as on one machine. `um.cluster.predict`
predicts very many files in bounded memory, on one machine or on a cluster, and can be restarted.
"""

from umpteen.cluster.connecting import ray
from umpteen.cluster.offline import Summary, predict

__all__ = ["Summary", "predict", "ray"]
