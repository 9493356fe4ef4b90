"""If these fail, a grid search tunes nothing, or a preset silently loses its settings."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import umpteen as um
from umpteen.errors import ParameterError
from umpteen.linear import TreeRecipe

from .random_trees import random_csr

GOLDEN = Path(__file__).parents[1] / "storage" / "golden" / "0.1"


def test_parameters_of_the_recipe_are_set_by_their_names():
    model = um.LabelTree().set_params(recipe__loss="logistic")
    assert model.recipe == TreeRecipe(loss="logistic")
    assert um.LabelTree().recipe is None
    with pytest.raises(ParameterError, match="loss"):
        model.set_params(recipe__loss="hinge")
    with pytest.raises(ParameterError, match=r"recipe__colour.*TreeRecipe has .*'loss'"):
        model.set_params(recipe__colour=1)


def test_a_grid_search_tries_recipes():
    X, Y = random_csr(60, 20, 0.3, seed=1), np.arange(60) % 3
    search = GridSearchCV(
        um.LabelTree(), {"recipe__tolerance": [0.3, 0.1]}, cv=2, error_score="raise"
    )
    search.fit(X, Y)
    assert search.best_estimator_.recipe.tolerance in (0.3, 0.1)
    assert [row["recipe__tolerance"] for row in search.cv_results_["params"]] == [0.3, 0.1]


def test_presets_take_changes_and_keep_the_rest_of_their_recipe():
    model = um.LabelTree.parabel(n_trees=5, recipe__loss="logistic")
    assert (model.branching, model.n_trees, model.max_leaf) == (2, 5, 100)
    plain = um.LabelTree.xr_linear().recipe
    assert (plain.hard_negatives, plain.path_weight, plain.trust) == (0, 1.0, False)
    assert model.recipe == TreeRecipe(
        loss="logistic", hard_negatives=0, path_weight=1.0, trust=False
    )
    assert um.LabelTree.bonsai(recipe=TreeRecipe(trust=True)).recipe == TreeRecipe()


def test_parameters_of_the_first_version_become_a_recipe(tmp_path):
    for name, expected in {
        "LabelTree": TreeRecipe(),
        "LabelTree-logistic": TreeRecipe(loss="logistic", trust=False),
    }.items():
        with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
            archive.extractall(tmp_path / name)
        assert um.load(tmp_path / name).recipe == expected


def test_the_weight_of_label_texts_has_another_name_now():
    from umpteen.linear.recipe import upgrade_from_1

    old = {"cost": 2.0, "features_in_tree": 0.5, "features_in_score": 0.2, "loss": "logistic"}
    upgrade_from_1(old, {})
    recipe = TreeRecipe(label_text_share=0.5, label_text_weight=0.2, loss="logistic")
    assert old == {"cost": 2.0, "recipe": recipe}
