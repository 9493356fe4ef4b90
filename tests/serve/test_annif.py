"""Annif's clients, and Annif itself, ask this server without knowing that it is another one."""

import json
import os
import subprocess
import sys

import pytest

import umpteen as um
from umpteen.data.label_vocabulary import Concept, LabelVocabulary
from umpteen.serve.journal import read_corrections

from .clients.install import folder

ANNIF = folder("annif")


def test_projects_are_models(client):
    (project,) = client.get("/v1/projects").json()["projects"]
    assert project["project_id"] == "kitchen"
    assert project["backend"]["backend_id"] == "umpteen"
    assert project["is_trained"] is True
    assert client.get("/v1/projects/kitchen").json() == project
    assert client.get("/v1/projects/nobody").status_code == 404


def test_a_form_gets_subjects(client, tagger):
    form = {"text": "dough and broth", "limit": "3", "threshold": "0.1", "language": "en"}
    found = client.post("/v1/projects/kitchen/suggest", data=form).json()["results"]
    expected = tagger.predict("dough and broth", k=3, threshold=0.1)
    assert [(one["uri"], one["score"]) for one in found] == expected
    assert all(one["label"] == one["uri"] and one["notation"] is None for one in found)


def test_defaults_are_those_of_annif(client, tagger):
    found = client.post("/v1/projects/kitchen/suggest", data={"text": "dough"}).json()
    assert len(found["results"]) == len(tagger.predict("dough", k=10))
    none = client.post("/v1/projects/kitchen/suggest", data={"text": "dough", "limit": 0})
    assert none.json() == {"results": []}
    many = client.post("/v1/projects/kitchen/suggest", data={"text": "dough", "limit": 10**6})
    assert many.status_code == 200


def test_a_long_text_fits_into_a_form(client):
    long = client.post("/v1/projects/kitchen/suggest", data={"text": "dough and broth " * 60_000})
    assert long.status_code == 200
    assert long.json()["results"]


def test_batches_keep_their_ids(client, tagger):
    documents = [{"text": "dough", "document_id": "7"}, {"text": "oolong"}]
    found = client.post(
        "/v1/projects/kitchen/suggest-batch?limit=1", json={"documents": documents}
    ).json()
    assert [one["document_id"] for one in found] == ["7", None]
    assert [one["results"][0]["uri"] for one in found] == [
        tagger.predict(document["text"], k=1)[0][0] for document in documents
    ]


def test_documents_are_learned(serving, model):
    client = serving(model, learns=True)
    documents = [{"text": "kettle", "subjects": [{"uri": "tea", "label": "anything"}]}]
    assert client.post("/v1/projects/kitchen/learn", json=documents).status_code == 204
    (found,) = read_corrections(model.parent / "kitchen.serve" / "journal")
    assert (found.text, found.labels) == ("kettle", ["tea"])


def test_wrong_documents_are_refused(serving, model):
    client = serving(model, learns=True)
    surrogate = '{"documents": [{"text": "a", "document_id": "\\ud800"}]}'
    many = json.dumps([{"text": "a", "subjects": [{"uri": "tea"}] * 1001}])
    headers = {"Content-Type": "application/json"}
    for path, body in (("suggest-batch", surrogate), ("learn", many)):
        answer = client.post(f"/v1/projects/kitchen/{path}", content=body, headers=headers)
        assert answer.status_code == 422
        assert isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize(
    "form", [{}, {"text": "a", "limit": "many"}, {"text": "a", "threshold": 7}]
)
def test_a_wrong_form_is_refused(client, form):
    answer = client.post("/v1/projects/kitchen/suggest", data=form)
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)


@pytest.fixture(scope="module")
def with_uris(tmp_path_factory):
    """A model whose labels are codes, with URIs and names in its vocabulary."""
    vocabulary = LabelVocabulary.of(
        [
            Concept("c1", "bread", uri="http://example.org/bread", notation="1.1"),
            Concept("c2", "tea", uri="http://example.org/tea"),
        ]
    )
    folder = tmp_path_factory.mktemp("uris") / "kitchen"
    texts = ["dough flour loaf", "kettle leaves oolong"] * 30
    um.Tagger().fit(texts, [["c1"], ["c2"]] * 30, vocabulary=vocabulary).save(folder)
    return folder


def test_subjects_have_the_uris_of_the_vocabulary(serving, with_uris):
    client = serving(with_uris)
    (first, *_) = client.post("/v1/projects/kitchen/suggest", data={"text": "loaf"}).json()[
        "results"
    ]
    assert first["uri"] == "http://example.org/bread"
    assert first["label"] == "bread"
    assert first["notation"] == "1.1"
    suggested = client.post("/v1/kitchen/suggest", json={"text": "loaf", "k": 1}).json()
    (label,) = suggested["results"][0]["labels"]
    assert (label["label"], label["name"]) == ("c1", "bread")


PROJECTS = """
[ours]
name=Ours
language=en
backend=http
endpoint=http://127.0.0.1:{port}/v1/projects/kitchen/suggest
vocab=kitchen
"""
VOCABULARY = "<http://example.org/bread>\tbread\n<http://example.org/tea>\ttea\n"


@pytest.mark.skipif(not ANNIF.exists(), reason="there is no Annif: make clients")
def test_annif_asks_through_its_http_backend(with_uris, tmp_path, in_a_thread):
    """The real Annif, its command line and its `http` backend."""
    places = {"ANNIF_PROJECTS": "projects.cfg", "ANNIF_DATADIR": "data", "PYTHONPATH": str(ANNIF)}

    def annif(*arguments, stdin=""):
        done = subprocess.run(
            [sys.executable, "-m", "annif.cli", *arguments], input=stdin, capture_output=True,
            text=True, timeout=300, env={**os.environ, **places}, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "projects.cfg").write_text(PROJECTS.format(port=in_a_thread(with_uris)))
    (tmp_path / "vocabulary.tsv").write_text(VOCABULARY)
    annif("load-vocab", "--language", "en", "kitchen", "vocabulary.tsv")
    assert "True" in annif("show-project", "ours")  # that it is trained, we said
    found = annif("suggest", "ours", stdin="dough and flour")
    uri, label, score = found.splitlines()[0].split("\t")
    assert (uri, label) == ("<http://example.org/bread>", "bread")
    expected = um.load(with_uris).predict("dough and flour", k=1)[0][1]
    assert float(score) == pytest.approx(expected, abs=1e-3)
