"""What cannot be answered is refused with a sentence: never a crash, never a path in it."""

import json

import pytest

JSON = {"Content-Type": "application/json"}
BODIES = [
    b"", b"{", b"[]", b"null", b"7", b'"text"', b"\xff\xfe", b'{"text": 7}', b'{"texts": "a"}',
    b'{"text": "a", "texts": ["b"]}', b"{}", b'{"text": null}', b'{"texts": [null]}',
    b'{"text": "a", "k": 0}', b'{"text": "a", "k": -1}', b'{"text": "a", "k": 1e99}',
    b'{"text": "a", "k": 1000000000}', b'{"text": "a", "k": "many"}', b'{"text": "a", "k": 2.5}',
    b'{"text": "a", "threshold": 2}', b'{"text": "a", "threshold": -1}',
    b'{"text": "a", "threshold": NaN}', b'{"text": "a", "threshold": "nonsense"}',
    b'{"text": "a", "threshold": "precision@7"}', b'{"text": "a", "threshold": true}',
    b'{"text": "\\ud800"}', b'{"texts": ["fine", "\\udfff"]}', b'{"text": "a", "colour": 1}',
    b'{"text": "a", "\\ud800": 1}', b"[" * 100_000, b'{"text":' * 1000,
]  # fmt: skip


def check(answer, folder):
    assert 400 <= answer.status_code < 500, answer.text
    detail = answer.json()["detail"]
    assert isinstance(detail, str)
    assert detail
    assert str(folder.parent) not in answer.text


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:40].decode(errors="replace"))
def test_a_wrong_body_is_refused(client, saved, body):
    check(client.post("/v1/kitchen/suggest", content=body, headers=JSON), saved)


def test_a_body_that_is_not_json_learns_what_would_be(client):
    answer = client.post("/v1/kitchen/suggest", content=b"text=dough")
    assert "; expected a JSON object: text, texts, k" in answer.json()["detail"]


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ufeff", "\u202e", "\U0010ffff", "\n" * 1000, ""])
def test_odd_texts_are_texts(client, text):
    answer = client.post("/v1/kitchen/suggest", json={"text": text})
    assert answer.status_code == 200
    explained = client.post("/v1/kitchen/explain", json={"text": text, "label": "tea"})
    assert explained.status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "dough", "label": "breda"},
        {"text": "dough", "label": ""},
        {"text": "dough", "label": "a\nb"},
        {"text": "nothing known here"},
        {"text": ""},
        {"label": "tea"},
        {"text": 7},
    ],
)
def test_what_cannot_be_explained_is_refused(client, saved, asked):
    check(client.post("/v1/kitchen/explain", json=asked), saved)


def test_an_unknown_label_gets_advice(client):
    answer = client.post("/v1/kitchen/explain", json={"text": "dough", "label": "breda"})
    assert "did you mean 'bread'?" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nobody"), ("POST", "/v1/nobody/suggest"), ("GET", "/nowhere"),
        ("GET", "/v1/kitchen/suggest"), ("DELETE", "/v1/kitchen"), ("GET", "/page/../app.py"),
        ("GET", "/page/%2e%2e/app.py"), ("GET", "/v1/kitchen/labels?limit=0"),
        ("GET", "/v1/kitchen/labels?limit=x"), ("GET", f"/v1/kitchen/labels?q={'a' * 2000}"),
        ("GET", "/v1/..%2f..%2fetc/passwd"), ("GET", "/v1/%00"), ("POST", "/v1/kitchen/learn"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(client, saved, method, path):
    answer = client.request(method, path, content=b'{"text": "a"}', headers=JSON)
    check(answer, saved)


ITEMS = [
    {"labels": ["a"]},
    {"text": "a"},
    {"text": "a", "labels": "bread"},
    {"text": "a", "labels": [""]},
    {"text": "a", "labels": ["  "]},
    {"text": "a", "labels": ["two\nlines"]},
    {"text": "a", "labels": ["nul\0"]},
    {"text": "a", "labels": ["\ud800"]},
    {"text": "a\udc00", "labels": ["bread"]},
    {"text": "a", "labels": ["x" * 5000]},
    {"text": "a", "labels": [None]},
    {"text": "a", "labels": ["bread"], "suggested": [3]},
    {"text": "a", "labels": ["bread"], "who": "me"},
]


def test_wrong_corrections_are_not_recorded(serving, model):
    client = serving(model, learns=True)
    for item in ITEMS:
        body = json.dumps({"items": [{"text": "fine", "labels": ["tea"]}, item]})
        check(client.post("/v1/kitchen/learn", content=body, headers=JSON), model)
        assert not list((model.parent / "kitchen.serve" / "journal").iterdir()), item


def test_a_model_that_does_not_learn_says_so(client):
    item = {"text": "a", "labels": ["tea"]}
    answer = client.post("/v1/kitchen/learn", json={"items": [item]})
    assert answer.status_code == 403
    assert "--no-learn" in answer.json()["detail"]


def test_a_wrong_path_or_method_is_answered_with_where_to_look(client):
    wrong = client.post("/suggest", json={"text": "a loaf"})
    assert wrong.status_code == 404
    assert wrong.json()["detail"] == "there is no /suggest; /docs describes what there is"
    wrong = client.get("/v1/kitchen/suggest")
    assert wrong.status_code == 405
    assert wrong.json()["detail"].startswith("/v1/kitchen/suggest takes POST, not GET; /docs")
    assert client.get("/" + "a" * 5000).json()["detail"].count("a") < 200
