"""Searches of SiameseXML in other processes: the same bits as here, also by a graph."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from tests.contract.cases import noise
from tests.engines import OtherProcesses
from umpteen import SiameseXML, parallel
from umpteen.search import LabelIndex
from umpteen.siamese import SiameseRecipe
from umpteen.siamese.shortlist import hard_negatives


@pytest.fixture(scope="module")
def other_processes():
    engine = OtherProcesses()
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("umpteen.sharding._WORTH_SENDING", 0)
    monkeypatch.setattr("umpteen.siamese.shortlist._BLOCK", 70)
    monkeypatch.setattr("umpteen.siamese.prediction._BLOCK", 70)


@pytest.mark.parametrize("method", ["exact", "hnsw"])
def test_hard_negatives(method, other_processes, monkeypatch):
    if method == "hnsw":
        pytest.importorskip("faiss")
    random = np.random.default_rng(0)
    _, Y = noise(300)
    vectors = [random.normal(size=(Y.shape[1], 12)).astype(np.float32) for _ in range(2)]
    indexes = [LabelIndex(each, method=method) for each in vectors]
    bags = random.normal(size=(300, 12)).astype(np.float32)
    expected = hard_negatives(indexes, bags, Y, 3)
    before = other_processes.n_tasks
    with parallel.engine(other_processes):
        found = hard_negatives(indexes, bags, Y, 3)
    assert found.tobytes() == expected.tobytes()
    assert other_processes.n_tasks == before + 5
    monkeypatch.setattr("umpteen.siamese.shortlist._BLOCK", 300)
    assert hard_negatives(indexes, bags, Y, 3).tobytes() == expected.tobytes()


@pytest.mark.parametrize("search", ["exact", "hnsw"])
def test_answers(search, other_processes):
    if search == "hnsw":
        pytest.importorskip("faiss")
    X, Y = noise(300)
    recipe = SiameseRecipe(refine_epochs=1, joint_epochs=1, shortlist=4)
    model = SiameseXML(dim=8, epochs=1, search=search, recipe=recipe).fit(X, Y)
    expected, before = model.predict_topk(X), other_processes.n_tasks
    with parallel.engine(other_processes):
        found = model.predict_topk(X)
    assert (found.labels.tobytes(), found.scores.tobytes()) == (
        expected.labels.tobytes(), expected.scores.tobytes(),
    )  # fmt: skip
    assert other_processes.n_tasks == before + 5


def test_few_samples_stay_here(other_processes, monkeypatch):
    """To send all vectors of labels would take longer than the search."""
    monkeypatch.setattr("umpteen.sharding._WORTH_SENDING", 301)
    X, Y = noise(300)
    recipe = SiameseRecipe(refine_epochs=0, joint_epochs=0)
    before = other_processes.n_tasks
    with parallel.engine(other_processes):
        SiameseXML(dim=8, epochs=1, recipe=recipe).fit(X, Y).predict_topk(X)
    assert other_processes.n_tasks == before
