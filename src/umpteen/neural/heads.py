"""Heads by short names, for a training loop of one's own.

    head = umpteen.neural.heads.Product(256, 1_000_000)
    head(features, labels).backward()
    best, scores = head.topk(features, 5)

They live with the methods that they belong to and are imported on first use.
"""

from importlib import import_module
from typing import Any

HEADS = {
    "full": "umpteen.neural.full.FullHead",
    "product": "umpteen.multihead.ProductHead",
    "cascade": "umpteen.multihead.CascadeHead",
    "sampling": "umpteen.multihead.SamplingHead",
    "adversarial": "umpteen.softmax.AdversarialHead",
    "powerset": "umpteen.multihead.PowersetHead",
    "etf": "umpteen.collapse.EtfHead",
}

__all__ = [  # noqa: F822
    "Adversarial", "Cascade", "Etf", "Full", "Powerset", "Product", "Sampling"
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'umpteen.neural.heads' has no attribute {name!r}")
    module, _, head = HEADS[name.lower()].rpartition(".")
    return getattr(import_module(module), head)


def __dir__() -> list[str]:
    return __all__
