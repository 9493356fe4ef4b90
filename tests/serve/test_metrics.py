"""Operators see what the server does, and nobody's texts."""

import json
import logging

import pytest

from umpteen.serve.running import start_logging

SECRET = "my secret dough"


def sample(client, name, **labels):
    registry = client.app.state.server.metrics.registry
    return registry.get_sample_value(name, labels)


def test_requests_texts_and_batches_are_counted(serving, saved):
    client = serving(saved)
    client.post("/v1/kitchen/suggest", json={"texts": ["tea", "soup", "bread"]})
    client.post("/v1/kitchen/suggest", json={"text": 7})
    client.get("/no/such/page")
    route = "/v1/{model}/suggest"
    assert sample(client, "umpteen_requests_total", route=route, status="200") == 1
    assert sample(client, "umpteen_requests_total", route=route, status="422") == 1
    assert sample(client, "umpteen_request_seconds_count", route=route) == 2
    assert sample(client, "umpteen_texts_total", model="kitchen") == 3
    assert sample(client, "umpteen_batch_texts_sum") == 3
    assert sample(client, "umpteen_waiting_texts") == 0
    version = client.get("/v1").json()["models"][0]["version"]
    assert sample(client, "umpteen_model", model="kitchen", version=version) == 1
    assert 'umpteen_requests_total{route="other",status="404"} 1.0' in client.get("/metrics").text


def test_corrections_are_counted(serving, model):
    client = serving(model, learns=True)
    client.post("/v1/kitchen/learn", json={"items": [{"text": "a", "labels": ["tea"]}]})
    assert sample(client, "umpteen_corrections", model="kitchen", state="pending") == 1


@pytest.fixture
def lines(capsys):
    def read(client):
        client.app.state.server.access_log.write()
        return capsys.readouterr().err.splitlines()

    yield read
    for name in ("umpteen.serve", "umpteen.serve.access", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.NOTSET)


def test_a_request_is_one_line_without_its_text(serving, saved, lines):
    client = serving(saved)
    start_logging(as_json=False)
    client.post("/v1/kitchen/suggest", json={"text": SECRET})
    client.get("/v1/kitchen/labels", params={"q": SECRET})
    client.get("/v1/%0aforged%20line")
    found = lines(client)
    assert len(found) == 3
    assert "POST /v1/kitchen/suggest 200" in found[0]
    assert not any("secret" in line for line in found)


def test_lines_are_json_on_demand(serving, saved, lines):
    client = serving(saved, log_json=True)
    start_logging(as_json=True)
    client.post("/v1/kitchen/suggest", json={"text": SECRET})
    (line,) = lines(client)
    noted = json.loads(line)
    assert (noted["path"], noted["status"]) == ("/v1/kitchen/suggest", 200)
    assert noted["ms"] >= 0


def test_texts_are_logged_only_if_asked(serving, saved, lines):
    client = serving(saved, log_texts=True)
    start_logging(as_json=False)
    client.post("/v1/kitchen/suggest", json={"text": SECRET})
    assert any(SECRET in line for line in lines(client))
