"""Label Studio shows our labels as predictions, and its annotations are learned."""

import json
import os
import subprocess
import sys

import pytest

from umpteen.serve.journal import read_corrections
from umpteen.serve.label_config import Control, find_control

from .clients.install import folder

SDK = folder("label-studio-sdk")
JSON = {"Content-Type": "application/json"}
CONFIG = """
<View>
  <Text name="body" value="$content"/>
  <Choices name="topics" toName="body" choice="multiple">
    <Choice value="bread"/><Choice value="soup"/><Choice value="tea"/>
  </Choices>
</View>
"""
TAXONOMY = """
<View>
  <Text name="body" value="$content"/>
  <Taxonomy name="topics" toName="body"/>
</View>
"""
TASKS = [
    {"id": 1, "data": {"content": "dough and flour", "title": "x"}},
    {"id": 2, "data": {"content": "kettle of oolong", "title": "y"}},
]


def predict(client, config=CONFIG, tasks=TASKS, path="/predict"):
    body = {"tasks": tasks, "label_config": config, "project": "1.2", "params": {}}
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_it_is_healthy_and_has_a_version(client):
    assert client.get("/health").json()["status"] == "UP"
    asked = {"project": "1.2", "schema": CONFIG, "hostname": "http://localhost", "access_token": ""}
    version = client.get("/v1").json()["models"][0]["version"]
    assert client.post("/setup", json=asked).json() == {"model_version": version}


def test_tasks_get_predictions_for_their_control(client, tagger):
    found = predict(client)
    assert len(found["results"]) == 2
    (result,) = found["results"][0]["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == ("topics", "body", "choices")
    best = tagger.predict("dough and flour", k=1)[0]
    assert result["value"]["choices"][0] == best[0] == "bread"
    assert found["results"][0]["model_version"] == found["model_version"]
    assert 0 < found["results"][0]["score"] <= 1


def test_only_choices_that_are_offered_are_predicted(client):
    """Label Studio cannot show what its interface does not have."""
    tasks = [{"data": {"content": "sharpen the blade"}}]  # kitchen knives, not offered
    (found,) = predict(client, tasks=tasks)["results"]
    labels = [name for one in found["result"] for name in one["value"]["choices"]]
    assert set(labels) <= {"bread", "soup", "tea"}


def test_a_single_choice_is_one(client):
    config = CONFIG.replace('choice="multiple"', 'choice="single"')
    for one in predict(client, config)["results"]:
        assert len(one["result"][0]["value"]["choices"]) == 1


def test_a_taxonomy_has_paths(client):
    found = predict(client, TAXONOMY)["results"][0]["result"][0]
    assert found["value"]["taxonomy"][0] == ["bread"]


def test_each_model_has_routes_of_its_own(serving, saved):
    client = serving(f"one={saved}", f"two={saved}")
    assert client.get("/label-studio/two/health").json()["status"] == "UP"
    assert predict(client, path="/label-studio/two/predict")["results"]
    assert client.get("/label-studio/three/health").status_code == 404


def annotated(labels, action="ANNOTATION_CREATED", **more):
    result = [
        {"from_name": "topics", "to_name": "body", "type": "choices", "value": {"choices": labels}}
    ]
    return {
        "action": action,
        "task": TASKS[0],
        "annotation": {"id": 5, "result": result, **more},
        "project": {"id": 1, "label_config": CONFIG},
    }


def test_annotations_come_with_their_webhook(serving, model):
    """Nothing has to be fetched from Label Studio, which is where others get nothing."""
    client = serving(model, learns=True)
    event = annotated(["bread", "soup"], prediction=annotated(["tea"])["annotation"])
    assert client.post("/webhook", json=event).status_code == 201
    (found,) = read_corrections(model.parent / "kitchen.serve" / "journal")
    assert (found.text, found.labels, found.suggested, found.id) == (
        "dough and flour", ["bread", "soup"], ["tea"], "1"
    )  # fmt: skip


WRONG = [["two\nlines"], ["\0"], ["a" * 1001], ["\ud800"], [str(n) for n in range(1001)]]


def test_labels_are_those_that_other_routes_take(serving, model):
    client = serving(model, learns=True)
    for labels in WRONG:
        answer = client.post("/webhook", content=json.dumps(annotated(labels)), headers=JSON)
        assert answer.status_code == 422
        assert "labels" in answer.json()["detail"]


def test_what_is_no_list_or_no_number_is_passed_over(serving, model):
    client = serving(model, learns=True)
    for number in ("\ud800", {"a": 1}, None):
        event = annotated(5) | {"task": {**TASKS[0], "id": number}}
        answer = client.post("/webhook", content=json.dumps(event), headers=JSON)
        assert answer.status_code == 201
    found = list(read_corrections(model.parent / "kitchen.serve" / "journal"))
    assert [(one.labels, one.id) for one in found] == [([], None)] * 3


def test_other_events_are_passed_over(serving, model):
    client = serving(model, learns=True)
    for action in ("ANNOTATIONS_DELETED", "PROJECT_UPDATED", "anything"):
        assert client.post("/webhook", json=annotated(["bread"], action)).status_code == 201
    assert not list(read_corrections(model.parent / "kitchen.serve" / "journal"))


@pytest.mark.parametrize(
    "config",
    ["<View", "<View/>", "not xml", '<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>',
     '<View><Image name="i" value="$i"/><RectangleLabels name="l" toName="i"/></View>',
     "<View>" * 200_000],
    ids=["torn", "empty", "no xml", "entities", "image", "very long"],
)  # fmt: skip
def test_interfaces_without_labels_of_texts_are_refused(client, config):
    answer = client.post("/predict", json={"tasks": TASKS, "label_config": config})
    assert answer.status_code == 422
    assert "label_config" in answer.json()["detail"]


@pytest.mark.parametrize("task", [{}, {"data": None}, {"data": {"a": 1}}, {"data": {"content": 7}}])
def test_tasks_without_a_text_are_refused(client, task):
    answer = client.post("/predict", json={"tasks": [task], "label_config": CONFIG})
    assert answer.status_code == 422
    assert "'content'" in answer.json()["detail"]


def test_without_an_interface_there_are_usual_names():
    assert find_control("") == Control("labels", "text", None, "choices", True, frozenset())


WITH_SDK = """
import json, sys
import requests
from label_studio_sdk.label_interface import LabelInterface
from label_studio_sdk.label_interface.objects import PredictionValue

address, tasks, *configs = json.load(sys.stdin)
for config in configs:
    interface = LabelInterface(config)
    tag = interface.get_first_tag_occurence(("Choices", "Taxonomy"), "Text")
    asked = {"tasks": tasks, "label_config": config}
    found = requests.post(f"{address}/predict", json=asked, timeout=60).json()["results"]
    values = [PredictionValue(**one) for one in found]
    faults = [interface.validate_prediction(one) for one in found]
    print(json.dumps([tag, [value.model_version for value in values], faults]))
"""


@pytest.mark.skipif(not SDK.exists(), reason="there is no Label Studio SDK: make clients")
def test_the_sdk_takes_our_predictions(saved, in_a_thread):
    """The real parser of labeling interfaces, and its own check of predictions."""
    address = f"http://127.0.0.1:{in_a_thread(saved)}"
    done = subprocess.run(
        [sys.executable, "-c", WITH_SDK], capture_output=True, text=True, timeout=300,
        input=json.dumps([address, TASKS, CONFIG, TAXONOMY]),
        env={**os.environ, "PYTHONPATH": str(SDK)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for config, line in zip((CONFIG, TAXONOMY), done.stdout.splitlines(), strict=True):
        tag, versions, faults = json.loads(line)
        control = find_control(config)
        assert [control.name, control.to_name, control.field] == tag
        assert len(versions) == 2
        assert all(versions)
        if config is CONFIG:
            assert all(fault in (True, None, []) for fault in faults)
