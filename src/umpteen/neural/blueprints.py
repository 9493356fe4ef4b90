"""Blueprints: which encoder or head, with which options, as something that can be saved."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from torch import nn

from umpteen.errors import MissingExtraError, ParameterError
from umpteen.storage import Sizes, storable

ENCODERS = {
    "bag": "umpteen.neural.encoders.Bag",
    "mlp": "umpteen.neural.encoders.MLP",
    "conv": "umpteen.neural.encoders.Conv",
    "resnet": "umpteen.neural.resnet.ResNet",
}
_OURS = re.compile(r"umpteen(\.(?!__)\w+)+")


@storable
@dataclass(frozen=True)
class Blueprint:
    """A module that is built once its sizes are given; `blueprint` makes one."""

    path: str  # of a class of this package
    options: dict[str, Any] = field(default_factory=dict)
    pretrained: str | None = field(default=None, repr=False)  # folder of weights to start from

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("pretrained",)

    def find(self) -> Any:
        """Return the class."""
        module, _, name = self.path.rpartition(".")
        if not _OURS.fullmatch(self.path):
            raise ParameterError(
                f"{self.path} is not a class of umpteen, so a blueprint cannot name it: a saved "
                "model must not contain code. Use it with umpteen.neural.heads in your own loop"
            )
        try:
            found = getattr(import_module(module), name, None)
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"{self.path} is not installed: {error}") from error
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise ParameterError(f"{self.path} is not a module of a network")
        return found

    def build(self, *sizes: Any) -> Any:
        """Return the module for these sizes: `cls(*sizes, **options)`."""
        cls = self.find()
        try:
            return cls(*sizes, **self.options)
        except TypeError as error:
            raise ParameterError(f"{cls.__name__} cannot be built: {error}") from error

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: options that are no finite numbers."""
        for name, value in self.options.items():
            if isinstance(value, float | np.floating) and not np.isfinite(value):
                yield f"has {name}={value}"

    def largest_size(self) -> int:
        """Return the largest whole number among the options, but for seeds."""
        options = {name: each for name, each in self.options.items() if name != "seed"}
        return max((_largest(each) for each in options.values()), default=0)

    def with_default_loss(self, single_label: bool) -> "Blueprint":
        """Return it with the `default_loss` of the class, if there is one and none was chosen."""
        default = getattr(self.find(), "default_loss", None)
        if default is None or "loss" in self.options:
            return self
        return self.with_options(loss=default(single_label))

    def with_options(self, **options: Any) -> "Blueprint":
        """Return it with further options."""
        return Blueprint(self.path, {**self.options, **options})


def _largest(value: Any) -> int:
    if is_dataclass(value):
        value = [getattr(value, each.name) for each in fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return max((_largest(each) for each in value), default=0)
    return int(value) if isinstance(value, int | np.integer) else 0


def blueprint(
    cls: type[nn.Module], *, pretrained: str | PathLike[str] | None = None, **options: Any
) -> Blueprint:
    """Return how to build an encoder or a head of this package, for `NeuralClassifier`.

    Sizes (features in, labels out) are left out: `fit` finds them. `pretrained` is the folder with
    the weights that a `Transformer` starts from. It is not saved with a model, which has its own.

    >>> from umpteen.neural import FullHead
    >>> blueprint(FullHead, loss="bce")
    Blueprint(path='umpteen.neural.full.FullHead', options={'loss': 'bce'})
    """
    folder = None if pretrained is None else str(pretrained)
    made = Blueprint(f"{cls.__module__}.{cls.__qualname__}", options, folder)
    if folder is not None and not hasattr(made.find(), "start_from"):
        raise ParameterError(
            f"a {cls.__name__} does not start from pretrained weights: leave it out"
        )
    made.find()
    return made


def as_blueprint(value: str | Blueprint, names: dict[str, str]) -> Blueprint:
    """Return what a short name stands for, with the `named_options` of its class, if any.

    A blueprint is one already, and has the options that the class has by default.
    """
    if isinstance(value, Blueprint):
        return value
    named = Blueprint(names[value])
    return named.with_options(**getattr(named.find(), "named_options", {}))
