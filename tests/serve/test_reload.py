"""A model is replaced while requests run: none fails, and none mixes two models."""

import threading

import pytest

import umpteen as um
from tests.serve.conftest import WORDS, made_up

RENAMED = {name: f"other {name}" for name in WORDS}


@pytest.fixture(scope="module")
def two_taggers(tagger):
    """They differ in the names of all labels, so that a mixed answer is plain to see."""
    return tagger, um.Tagger(calibrate=False).fit(*made_up(60, names=RENAMED))


@pytest.mark.parametrize("learns", [False, True])
def test_no_request_fails_and_no_answer_is_mixed(serving, model, two_taggers, learns):
    client = serving(model, learns=learns)
    stop, problems, versions = threading.Event(), [], set()
    texts = ["dough loaf flour", "leaves oolong kettle", "sharpen the blade"]

    def ask():
        while not stop.is_set():
            answer = client.post("/v1/kitchen/suggest", json={"texts": texts, "k": 3})
            if answer.status_code != 200:
                problems.append(answer.text)
                return
            found = answer.json()
            labels = {one["label"] for result in found["results"] for one in result["labels"]}
            renamed = {label.startswith("other ") for label in labels}
            versions.add((found["version"], *renamed))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for i in range(6):
            two_taggers[(i + 1) % 2].save(model)
            answer = client.post("/v1/kitchen/reload")
            assert answer.json()["changed"] is True, answer.text
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems
    assert len(versions) == 2  # each version has one kind of labels


def test_a_damaged_model_is_not_taken(serving, model):
    client = serving(model)
    before = client.get("/v1/kitchen").json()["version"]
    (model / "manifest.json").write_text("{")
    answer = client.post("/v1/kitchen/reload")
    assert answer.status_code == 409
    assert "the old one stays in use" in answer.json()["detail"]
    assert str(model) not in answer.text
    assert client.post("/v1/kitchen/suggest", json={"text": "tea"}).json()["version"] == before


def test_a_model_of_matrices_is_refused(serving, tmp_path):
    um.LabelTree().fit([[0.1], [0.9]], [[0], [1]]).save(tmp_path / "matrix")
    with pytest.raises(um.errors.ModelCorruptError, match="expected a model of texts"):
        serving(tmp_path / "matrix")


@pytest.mark.parametrize("name", ["projects", "a b", "naïve/x"])
def test_names_that_are_no_part_of_an_address_are_refused(serving, saved, name):
    with pytest.raises(um.errors.UmpteenError):
        serving(f"{name}={saved}")


def test_several_models_have_names(serving, saved):
    client = serving(f"one={saved}", f"two={saved}")
    assert [one["name"] for one in client.get("/v1").json()["models"]] == ["one", "two"]
    with pytest.raises(um.errors.ParameterError, match="two models are called 'one'"):
        serving(f"one={saved}", f"one={saved}")
