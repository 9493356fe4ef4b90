"""How a training finds its own checkpoint."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from umpteen.neural.checkpoint import Keeper
from umpteen.siamese.recipe import MODULES
from umpteen.siamese.training import TrainingSet
from umpteen.storage.checkpoints import deciding_settings, fingerprint
from umpteen.validation import check_seed

if TYPE_CHECKING:
    from umpteen.siamese.siamese_xml import SiameseXML

_NOT_OF_THE_RESULT = ("tail", "checkpoint", "device", "n_jobs", "verbose")


def seed_and_mark(
    model: "SiameseXML",
    data: TrainingSet,
    table: npt.NDArray[np.float32] | None,
    split: npt.NDArray[np.bool_] | None,
    learns_weights: bool,
) -> tuple[int, str]:
    """Return the seed, and a fingerprint of everything that decides what towers learn.

    If `random_state` is None, a training that is continued has the seed that it began with.
    """
    seed = check_seed(model.random_state)
    if model.checkpoint is None:
        return seed, ""
    settings = deciding_settings(model, _NOT_OF_THE_RESULT, seed)
    recipe = model._used_recipe()
    settings["recipe"] = replace(recipe, alpha=0.5, weights="fixed", checkpoint_every=0)
    given = np.zeros(0) if table is None else table
    settings["label_features"] = fingerprint(data.label_features, given, {})
    drawn = np.array(learns_weights)
    settings["split"] = fingerprint(drawn if split is None else split, given, {})
    mark = fingerprint(data.X, data.Y, settings)
    if model.random_state is None:
        names = (name for name in MODULES if name in recipe.modules and name != "mine")
        first = next(names, "")
        stage = "part" if split is not None or drawn else "whole"
        folder = Path(model.checkpoint) / f"{stage}-0-{first}"
        found = Keeper(folder, 0, mark).found if first else None
        seed = seed if found is None else found.seed
    return seed, mark
