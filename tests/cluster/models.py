"""Small fits of several tasks each, whose results are bytes that can be compared."""

import numpy as np
import pytest

import umpteen as um
from tests.contract.cases import CASES, noise


def fitted(name):
    """Fit a model of that name and return the bytes of its predictions."""
    if name == "Tagger":
        tagger = um.Tagger(um.LabelTree(max_leaf=8, branching=4)).fit(*texts())
        top = tagger.predict_topk(texts()[0], k=3)
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


@pytest.fixture
def small_tasks(monkeypatch):
    """Have several tasks where so little data would make one."""
    monkeypatch.setattr("umpteen.text.reading._BLOCK", 2**13)
    monkeypatch.setattr("umpteen.clustering._stays_here", lambda *_: False)
    monkeypatch.setattr("umpteen.aggregated.embeddings._CHUNK_ENTRIES", 1000)
