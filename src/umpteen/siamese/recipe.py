"""Settings of SiameseXML that few users change, and how older models become this version."""

from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.errors import ParameterError
from umpteen.siamese.companion import Companion
from umpteen.siamese.encoder import ACTIVATIONS
from umpteen.storage import storable

MODULES = ("embed", "mine", "refine", "joint")
_POSITIVE = Interval(Integral, 1, None, closed="left")
_COUNT = Interval(Integral, 0, None, closed="left")
_RATE = Interval(Real, 0, None, closed="neither")


def _upgrade_recipe_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Name what was the only kind of classifier."""
    state["classifier"] = "cosine"
    state["joint_epochs"] = state.get("refine_epochs", 5)


@storable(version=2, upgrades={1: _upgrade_recipe_from_1})
@dataclass(frozen=True)
class SiameseRecipe(Recipe):
    """Settings of `SiameseXML` that few users change.

    Parameters
    ----------
    modules : the modules to run: "embed" (I), "mine" (II), "refine" (III), "joint" (IV).
    loss : loss of Module I: "softmax" over the batch at a temperature of 0.05, or the paper's
        "contrastive".
    likelihood, refine_likelihood : c and d of the paper's likelihood c exp(d (v - 1)) of a cosine
        v, for the contrastive loss of Module I and for cosine classifiers; 0 < c < 1 and d >= 1.
    n_negatives : number of negatives of a label in a batch, for the contrastive loss: the hardest
        ones of the batch; if `mine_every` is above 0, one of them is replaced by a mined one.
    label_power : Module I draws labels in proportion to frequency^`label_power`.
    mine_every : number of epochs of Module I between two searches for hard negatives, among 16,384
        samples; 0 is never.
    batch_size : number of labels in a batch of Module I.
    dropout : share of a row's entries that are left out while the encoder trains.
    activation, residual : "relu" and True are the paper's encoder; with "linear" and False, the
        vector of a row is the weighted sum of those of its features.
    classifier : "logistic" is a logistic regression for each label, with a weight vector and a
        bias; "cosine" is the paper's, without length and bias.
    start : the initial vector of a label: "text" is the vector of its text, as in the paper;
        "centroid" is in the middle between the vector of its text and its centroid.
    refine_epochs, joint_epochs, refine_learning_rate : epochs of Modules III and IV, and the
        learning rate of both.
    n_hard : number of hard negatives of a sample from Module II.
    n_random : expected number of random negatives that the samples of a batch share.
    word_classifiers : whether each label also learns a sparse linear classifier on the features
        themselves, whose score is one more column for the ranker; without learned `weights`, there
        is none.
    texts_as_samples : whether the label's text is one more sample for that classifier.
    shortlist : number of candidates from each search in prediction.
    weights : "learned" on the validation split, or "fixed" as in the paper: `alpha` times the
        cosine to the label's own vector plus (1 - `alpha`) times the mean of the cosines to its
        text and to its centroid.
    alpha : see `weights`.
    checkpoint_every : seconds between two checkpoints.
    """

    modules: tuple[str, ...] = ("embed", "mine", "refine", "joint")
    loss: str = "softmax"
    likelihood: tuple[float, float] = (0.9, 1.5)
    refine_likelihood: tuple[float, float] = (0.75, 3.0)
    n_negatives: int = 4
    label_power: float = 0.7
    mine_every: int = 0
    batch_size: int = 1024
    dropout: float = 0.3
    activation: str = "gelu"
    residual: bool = False
    classifier: str = "logistic"
    start: str = "centroid"
    refine_epochs: int = 5
    joint_epochs: int = 5
    n_hard: int = 20
    n_random: int = 1000
    word_classifiers: bool = True
    texts_as_samples: bool = True
    refine_learning_rate: float = 2e-3
    shortlist: int = 50
    weights: str = "learned"
    alpha: float = 0.5
    checkpoint_every: float = 300.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "modules": [tuple, list],
        "loss": [StrOptions({"contrastive", "softmax"})],
        "n_negatives": [_POSITIVE],
        "label_power": [Interval(Real, 0, None, closed="left")],
        "mine_every": [_COUNT],
        "batch_size": [_POSITIVE],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "residual": ["boolean"],
        "classifier": [StrOptions({"logistic", "cosine"})],
        "likelihood": [tuple, list],
        "refine_likelihood": [tuple, list],
        "start": [StrOptions({"text", "centroid"})],
        "refine_epochs": [_COUNT],
        "joint_epochs": [_COUNT],
        "n_hard": [_COUNT],
        "n_random": [_COUNT],
        "word_classifiers": ["boolean"],
        "texts_as_samples": ["boolean"],
        "refine_learning_rate": [_RATE],
        "shortlist": [_POSITIVE],
        "weights": [StrOptions({"learned", "fixed"})],
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.modules if name not in MODULES]
        if unknown or len(set(self.modules)) < len(self.modules):
            raise ParameterError(
                f"modules={tuple(self.modules)!r} is not possible: name each of {MODULES} once at "
                "the most"
            )
        for name in ("likelihood", "refine_likelihood"):
            _check_likelihood(name, getattr(self, name))


def _check_likelihood(name: str, constants: tuple[Any, ...]) -> None:
    """Refuse constants that would make a loss infinite or NaN."""
    are_numbers = len(constants) == 2 and all(
        isinstance(each, Real) and not isinstance(each, bool) and isfinite(each)
        for each in constants
    )
    if not (are_numbers and 0 < constants[0] < 1 <= constants[1]):
        raise ParameterError(
            f"{name}={constants!r} is not possible: expected two numbers (c, d) with 0 < c < 1 and "
            "d >= 1, for the probability c * exp(d * (v - 1)) of a cosine v; the paper has "
            "(0.9, 1.5) for likelihood and (0.75, 3.0) for refine_likelihood"
        )


PAPER = SiameseRecipe(
    modules=("embed", "mine", "refine"), batch_size=4096, refine_learning_rate=5e-4,
    refine_epochs=20, joint_epochs=20, shortlist=500, n_hard=500, n_random=100, alpha=0.9,
    weights="fixed", loss="contrastive", likelihood=(0.9, 1.5), refine_likelihood=(0.75, 3.0),
    dropout=0.0, start="text", classifier="cosine", label_power=0.45, n_negatives=4,
    mine_every=4, residual=True, activation="relu", word_classifiers=False,
)  # fmt: skip
RELEASED = {  # what the released code has instead
    "recipe__activation": "gelu", "recipe__residual": False, "recipe__n_negatives": 1,
    "recipe__mine_every": 0, "recipe__n_random": 0, "recipe__refine_learning_rate": 2e-4,
    "learning_rate": 0.01,
}  # fmt: skip


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the settings in a recipe; what was fused with another classifier stays so."""
    parameters.pop("skip_above", None)
    parameters.pop("fuse_with", None)
    weight = parameters.pop("fuse_weight", 0.1)
    parameters["classifier"] = "cosine"
    SiameseRecipe.gather(parameters)
    ranker, classifier = state.pop("judge_", None), state.pop("companion_", None)
    state["ranker_"] = ranker if classifier is None else None
    state["companion_"] = None if classifier is None else Companion(classifier, ranker, weight)


def upgrade_from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Score labels without samples like the others, as these models did."""
    state["newcomer_ranker_"] = None


def upgrade_from_3(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Keep these models without classifiers of single words."""
    state["word_classifiers_"] = None


def upgrade_from_4(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Keep these models without the sample's best cosine."""
    state["learned_texts_"] = None
