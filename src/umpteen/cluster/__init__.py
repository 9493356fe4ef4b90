"""Past one machine: `with um.cluster.ray("auto"): tagger.fit(texts, labels)`.

The tasks of the block run on a Ray cluster (extra `cluster`), and the result is the same to the
bit as on one machine.
"""

from umpteen.cluster.connecting import ray

__all__ = ["ray"]
