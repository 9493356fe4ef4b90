"""More than one process can do: prediction over very many rows, on one machine or on Ray."""

from umpteen.cluster.offline import Summary, predict

__all__ = ["Summary", "predict"]
