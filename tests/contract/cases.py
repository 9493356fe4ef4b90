"""What the contract's checks need to know about each classifier: a new one adds a line to `CASES`.

The toy data is a checkerboard. Sample i is of kind `i % N_KINDS`; kind j has the features j and
j + N_KINDS, the label j, and a wider label that it shares with its neighbour. So the two best
labels of a sample are these two, whatever the method.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from inspect import isabstract
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import umpteen
from umpteen.base import ExtremeClassifier
from umpteen.errors import MissingExtraError

N_KINDS = 4
N_LABELS = N_KINDS + N_KINDS // 2
N_SAMPLES = 10 * N_KINDS


@dataclass(frozen=True)
class Case:
    """How one classifier is built, small and fast, and trained."""

    build: Callable[..., ExtremeClassifier]
    fit: Callable[[Any, Any, Any], ExtremeClassifier] = lambda model, X, Y: model.fit(X, Y)
    fits_on_labels_alone: bool = True  # fit(X, Y) is all: scikit-learn's own tools can drive it
    needs: str = "umpteen"  # a library of an optional part; where it is missing, checks are skipped
    briefly: dict[str, Any] = field(default_factory=dict)  # where equal bits are all that counts
    bad_parameters: tuple[dict[str, Any], ...] = ()
    failed_checks: dict[str, str] = field(default_factory=dict)  # beyond SPARSE_MULTI_LABEL

    @property
    def is_available(self) -> bool:
        return find_spec(self.needs) is not None

    def fitted(self, X: Any, Y: Any, **parameters: Any) -> ExtremeClassifier:
        return self.fit(self.build(**parameters), X, Y)

    @cached_property
    def plain(self) -> ExtremeClassifier:
        """Fitted on the checkerboard, once for all tests that only ask; do not change it."""
        return self.fitted(*checkerboard())

    @cached_property
    def brief(self) -> ExtremeClassifier:
        """The same, trained `briefly`."""
        return self.fitted(*checkerboard(), **self.briefly)

    @cached_property
    def noisy(self) -> dict[bool, ExtremeClassifier]:
        """Fitted on noise, on sparse (False) and on dense (True) features, for the same use."""
        X, Y = noise()
        return {False: self.fitted(X, Y), True: self.fitted(X.toarray(), Y)}


SMALL_NETWORK = {
    "hidden": 32, "epochs": 14, "batch_size": 8, "learning_rate": 1e-2, "random_state": 0,
}  # fmt: skip
ONE_EPOCH = {"epochs": 1, "batch_size": 64, "n_concepts": 1}


def _are_many(X: Any) -> bool:
    """Whether networks need not learn all there is: what is checked is not what they know."""
    return getattr(X, "shape", (0,))[0] >= 500


def _impatient() -> Any:
    return umpteen.neural.NetworkRecipe(patience=3)


def _quickly_refined() -> Any:
    return umpteen.siamese.SiameseRecipe(refine_epochs=2, joint_epochs=1)


def _narrow() -> Any:
    return umpteen.neural.blueprint(umpteen.neural.Bag, dim=16)


CASES = {
    "AdversarialSoftmax": Case(
        lambda **parameters: umpteen.AdversarialSoftmax(**parameters),
        fit=lambda model, X, Y: (model.set_params(epochs=2) if _are_many(X) else model).fit(X, Y),
        briefly={"epochs": 2},
        bad_parameters=(
            {"noise": "pink"},
            {"n_negatives": 0},
            {"learning_rate": 0},
            {"epochs": 0},
            {"objective": "hinge"},
            {"objective": "one_vs_each", "noise": "tree"},
            {"recipe": {"batch_size": 10}},
            {"noise": "uniform", "beam_width": 64},
        ),
    ),
    "CoAttentionMIML": Case(
        lambda **parameters: umpteen.CoAttentionMIML(**{**SMALL_NETWORK, **parameters}),
        needs="torch",
        fit=lambda model, X, Y: (model.set_params(**ONE_EPOCH) if _are_many(X) else model).fit(
            X, Y
        ),
        briefly={"epochs": 1},
        bad_parameters=({"hidden": 0}, {"temperature": -1}, {"epochs": 0}, {"device": "abacus"}),
    ),
    "Eagle": Case(
        lambda **parameters: umpteen.Eagle(umpteen.NearestCentroid(), **parameters),
        bad_parameters=(
            {"rounds": -1},
            {"votes": 0},
            {"samples_per_label": "all"},
            {"recipe": "paper"},
        ),
    ),
    "Ensemble": Case(
        lambda **parameters: umpteen.Ensemble(
            **{"members": [umpteen.LabelTree(max_leaf=8), umpteen.NearestCentroid()], **parameters}
        ),
        bad_parameters=({"members": []}, {"members": ["tree"]}, {"n_candidates": 0}),
    ),
    "LabelTree": Case(
        lambda **parameters: umpteen.LabelTree(**{"max_leaf": 8, "branching": 4, **parameters}),
        bad_parameters=({"beam_width": 0}, {"branching": 1}, {"max_leaf": 0}, {"cost": 0}),
    ),
    "NearestCentroid": Case(lambda **parameters: umpteen.NearestCentroid(**parameters)),
    "NeuralClassifier": Case(
        lambda **parameters: umpteen.NeuralClassifier(
            **{"epochs": 30, "learning_rate": 1e-2, "recipe": _impatient(), **parameters}
        ),
        needs="torch",
        fit=lambda model, X, Y: (
            model.set_params(encoder=_narrow(), epochs=1, batch_size=128) if _are_many(X) else model
        ).fit(X, Y),
        briefly={"epochs": 1},
        bad_parameters=(
            {"encoder": "quill"},
            {"head": "hydra"},
            {"decoder": "ring"},
            {"epochs": 0},
            {"batch_size": 0},
            {"recipe": {"patience": 3}},
            {"checkpoint": 3},
            {"device": "abacus"},
        ),
    ),
    "SiameseXML": Case(
        lambda **parameters: umpteen.SiameseXML(
            **{"dim": 32, "epochs": 2, "recipe": _quickly_refined(), **parameters}
        ),
        needs="torch",
        fit=lambda model, X, Y: (
            model.set_params(
                dim=16,
                epochs=1,
                recipe__refine_epochs=1,
                recipe__joint_epochs=1,
                recipe__shortlist=5,
            )
            if _are_many(X)
            else model
        ).fit(X, Y),
        briefly={"epochs": 1},
        bad_parameters=(
            {"dim": 0},
            {"epochs": -1},
            {"tail": 1.5},
            {"search": "far"},
            {"n_models": 0},
            {"recipe": "a friend's"},
            {"device": "abacus"},
        ),
    ),
}

BAD_PARAMETERS = ({"n_jobs": 0}, {"n_jobs": -2}, {"n_jobs": 1.5}, {"verbose": "loud"})


def classifiers() -> dict[str, type[ExtremeClassifier]]:
    """Every classifier of the package by name, found by importing all of it."""
    for module in pkgutil.walk_packages(umpteen.__path__, "umpteen."):
        if not module.name.endswith("__main__"):
            try:
                import_module(module.name)
            except (ModuleNotFoundError, MissingExtraError):  # an optional part
                continue
    return {found.__name__: found for found in sorted(_below(ExtremeClassifier), key=str)}


def _below(parent: type) -> set[type]:
    found = {child for child in parent.__subclasses__() if child.__module__.startswith("umpteen.")}
    below = set().union(*(_below(child) for child in found))
    return {child for child in found | below if not isabstract(child) and child.__name__[0] != "_"}


def checkerboard() -> tuple[csr_matrix, csr_matrix]:
    kind = kinds()
    ones = np.ones(2 * N_SAMPLES, np.float32)
    rows = np.repeat(np.arange(N_SAMPLES), 2)
    features = np.column_stack([kind, kind + N_KINDS]).ravel()
    labels = np.column_stack([kind, N_KINDS + kind // 2]).ravel()
    X = csr_matrix((ones, (rows, features)), shape=(N_SAMPLES, 2 * N_KINDS))
    return X, csr_matrix((ones, (rows, labels)), shape=(N_SAMPLES, N_LABELS))


def kinds() -> np.ndarray:
    return np.arange(N_SAMPLES) % N_KINDS


def noise(n_samples: int = 600, seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Random features and labels with ties, empty rows and empty columns among them."""
    random = np.random.default_rng(seed)
    X = csr_matrix((random.random((n_samples, 30)) < 0.08).astype(np.float32))
    Y = csr_matrix((random.random((n_samples, 50)) < 0.03).astype(np.float32))
    return X, Y
