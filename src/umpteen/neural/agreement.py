"""What is settled before training: the seed, the checkpoint, and that all ranks got the same."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umpteen.neural.checkpoint import Keeper
from umpteen.neural.rank_checkpoints import RankKeeper
from umpteen.neural.ranks import Ranks
from umpteen.storage.checkpoints import deciding_settings, fingerprint
from umpteen.validation import check_seed

if TYPE_CHECKING:
    from umpteen.neural.classifier import NeuralClassifier

_NOT_OF_TRAINING = ("checkpoint", "decoder", "device", "epochs", "n_jobs", "verbose")


def seed_and_keeper(model: "NeuralClassifier", ranks: Ranks, X: Any, Y: Any) -> tuple[int, Keeper]:
    """Return the seed, that of the checkpoint if there is one, and the keeper of checkpoints."""
    seed, recipe = ranks.first(check_seed(model.random_state)), model._used_recipe()
    if model.checkpoint is None:
        return seed, Keeper(None, recipe.checkpoint_every)
    checked, labels = model._check_fit_input(X, Y)
    settings = deciding_settings(model, _NOT_OF_TRAINING, seed)
    settings["recipe"] = replace(recipe, checkpoint_every=0)
    folder, mark = Path(model.checkpoint), fingerprint(checked, labels, settings)
    arguments = (folder, recipe.checkpoint_every, mark)
    keeper = RankKeeper(*arguments, ranks) if ranks.are_many else Keeper(*arguments)
    keeper.check_epochs(model.epochs)
    return seed if keeper.found is None else keeper.found.seed, keeper


def check_ranks(model: "NeuralClassifier", ranks: Ranks, X: Any, Y: Any, watched: bool) -> None:
    """Refuse ranks that did not get the same data and parameters."""
    if not ranks.are_many:
        return
    (checked, labels), _ = ranks.together(lambda: (model._check_fit_input(X, Y), []))
    settings = deciding_settings(model, _NOT_OF_TRAINING, seed=0)
    settings["random_state"], settings["epochs"] = None, model.epochs  # the seed is of rank 0
    facts = {
        "the shape of X": checked.shape,
        "the shape of Y": labels.shape,
        "the checksum of X and Y": fingerprint(checked, labels, {}),
        "the list of parameters": repr(settings),
        "whether there is a checkpoint": model.checkpoint is not None,
        "whether there is a watch": watched,
    }
    advice = "call fit with the same data and parameters on every rank; each takes its own share"
    ranks.check_same(facts, advice)
