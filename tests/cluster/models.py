"""Small fits of several tasks each, whose results are bytes that can be compared."""

from importlib.util import find_spec

import numpy as np
import pytest

import umpteen as um
from tests.contract.cases import CASES, noise


def fitted(name):
    """Fit a model of that name and return the bytes of its predictions."""
    if name == "Tagger":
        tagger = um.Tagger(um.LabelTree(max_leaf=8, branching=4)).fit(*texts())
        top = tagger.predict_topk(texts()[0], k=3)
    elif name == "SiameseXML":
        pytest.importorskip("torch", reason="needs umpteen[neural]")
        X, Y = noise(1000)
        recipe = um.siamese.SiameseRecipe(refine_epochs=1, joint_epochs=1, shortlist=5)
        model = um.SiameseXML(dim=16, epochs=1, recipe=recipe)
        top = model.fit(X, Y, label_features=X[: Y.shape[1]]).predict_topk(X)
        assert model.ranker_ is not None  # so that classifiers of words are there, too
    else:
        X, Y = noise(1000)
        top = CASES[name].fitted(X, Y).predict_topk(X)
    return top.labels.tobytes() + top.scores.tobytes()


def texts():
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(300)]
    kinds = random.integers(40, size=600)
    made = [" ".join(words[7 * kind + i] for i in random.integers(20, size=12)) for kind in kinds]
    return made, [[f"label {kind}", f"group {kind // 5}"] for kind in kinds]


# Several tasks where so little data would make one.
SMALL_TASKS = {
    "umpteen.text.reading._BLOCK": 2**13,
    "umpteen.aggregated.embeddings._CHUNK_ENTRIES": 1000,
    "umpteen.sharding._WORTH_SENDING": 0,
    "umpteen.trees.representation._BLOCK_VALUES": 5000,
}
if find_spec("torch"):
    SMALL_TASKS |= {
        "umpteen.siamese.shortlist._BLOCK": 100,
        "umpteen.siamese.prediction._BLOCK": 100,
        "umpteen.siamese.words._BLOCK": 20,
        "umpteen.siamese.siamese_xml.FEWEST_SAMPLES": 500,
    }


@pytest.fixture
def small_tasks(monkeypatch):
    for place, value in SMALL_TASKS.items():
        monkeypatch.setattr(place, value)
    for module in ("clustering", "trees.representation"):
        monkeypatch.setattr(f"umpteen.{module}.stays_here", lambda *_: False)
