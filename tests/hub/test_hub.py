"""Models go to the Hub and come back; what a stranger's repository holds is not trusted."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import (
    HubError,
    ModelCorruptError,
    ModelNotFoundError,
    NotFittedError,
    ParameterError,
)
from umpteen.storage.folder import _checksum
from umpteen.storage.hub import HubAddress

from .fake import FakeHub

constants = pytest.importorskip("huggingface_hub.constants", reason="needs umpteen[hub]")

TEXTS = ["dough and flour", "green tea", "flour, again"] * 20
LABELS = [["bread"], ["tea"], ["bread", "flour"]] * 20


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A Hub of our own, which is the only one that the client may know."""
    fake = FakeHub()
    thread = threading.Thread(target=fake.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "ENDPOINT", fake.url)
    template = fake.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield fake
    fake.shutdown()
    fake.server_close()
    thread.join()


@pytest.fixture(scope="module")
def tagger():
    return um.Tagger().fit(TEXTS, LABELS)


@pytest.fixture
def model():
    return um.NearestCentroid().fit(np.eye(3, dtype=np.float32), np.eye(3))


def test_a_tagger_goes_there_and_back(server, tagger):
    report = tagger.evaluate(TEXTS, LABELS, title="the kitchen test")
    pinned = tagger.push_to_hub("cook/kitchen", report=report, description="Trained on recipes.")
    assert pinned == f"hf://cook/kitchen@{server.files('cook/kitchen')[0]}"
    for address in ("hf://cook/kitchen", pinned, Path("hf://cook/kitchen")):
        assert um.load(address).predict(TEXTS) == tagger.predict(TEXTS)
    card = server.files("cook/kitchen")[1]["README.md"].decode()
    assert "Trained on recipes." in card
    assert f"| precision | {100 * report.metrics['precision@1']:.1f} |" in card
    assert "| head |" in card
    assert "expected calibration error" in card
    assert 'library_name: "umpteen"' in card


def test_a_second_push_replaces_the_first_and_a_commit_stays_what_it_was(server, model):
    other = um.NearestCentroid().fit(np.eye(3, dtype=np.float32)[:, ::-1].copy(), np.eye(3))
    server.commit("cook/numbers", {"notes.md": b"kept"})
    first = um.push_to_hub(model, "cook/numbers")
    second = um.push_to_hub(other, "cook/numbers")
    files = server.files("cook/numbers")[1]
    n_arrays = len(json.loads(files["manifest.json"])["arrays"])
    assert len(files) == n_arrays + 3  # the manifest, the card, the notes
    X = np.eye(3, dtype=np.float32)
    assert um.load(first).predict_topk(X) == model.predict_topk(X)
    assert um.load(second).predict_topk(X) == other.predict_topk(X)
    assert um.load("hf://cook/numbers").predict_topk(X) == other.predict_topk(X)


def test_large_arrays_go_through_large_file_storage(server, tagger, monkeypatch):
    """The Hub keeps large files elsewhere, and leads there."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # the fake Hub has no Xet storage
    server.large = 1_000
    pinned = tagger.push_to_hub("cook/kitchen")
    files = server.files("cook/kitchen")[1]
    large = [name for name, data in files.items() if len(data) >= 1_000]
    assert [name for name in large if name.endswith(".npy")]
    assert {files[name] for name in large} == {*server.objects.values()}
    assert um.load(pinned).predict(TEXTS) == tagger.predict(TEXTS)
    server.asked.clear()
    tagger.push_to_hub("cook/kitchen", description="Again.")
    assert sum(asked.startswith("PUT") for asked in server.asked) == 2  # the manifest, the card


def test_a_model_is_downloaded_once_and_then_without_a_network(server, model, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # between tries
    pinned = um.push_to_hub(model, "cook/numbers")
    um.load(pinned)
    server.asked.clear()
    um.load(pinned)
    assert not [asked for asked in server.asked if asked.startswith("GET") and "resolve" in asked]
    server.shutdown()
    server.server_close()
    assert um.load(pinned).n_labels_ == 3
    with pytest.raises(HubError, match="could not be reached"):
        um.load("hf://cook/never-seen")


def test_nothing_but_the_model_is_downloaded(server, model, tmp_path):
    um.push_to_hub(model, "cook/numbers")
    _, files = server.files("cook/numbers")
    bad = {"model.pkl": b"cos\nsystem\n", "evil.py": b"1/0", "../../x": b"?", "a/b.npy": b"?"}
    server.commit("cook/numbers", files | bad)
    server.asked.clear()
    um.load("hf://cook/numbers")
    assert not [asked for asked in server.asked for name in bad if name in asked]
    folder = next((tmp_path / "cache" / "umpteen" / "hub" / "cook--numbers").iterdir())
    assert all(path.suffix in (".npy", ".json") for path in folder.iterdir())
    assert not any(path.is_symlink() for path in folder.iterdir())


def manipulated(files, change):
    """The files with another manifest, whose own checksum is right."""
    manifest = json.loads(files["manifest.json"])
    change(manifest)
    manifest["checksum"] = _checksum(manifest)
    return files | {"manifest.json": json.dumps(manifest).encode()}


@pytest.mark.parametrize(
    "name", ["../../.bashrc", "/etc/passwd", "evil.py", "sub/0123456789ab-0.npy", "", None, 7]
)
def test_a_manifest_cannot_name_other_files(server, model, name):
    um.push_to_hub(model, "cook/numbers")
    _, files = server.files("cook/numbers")
    bad = manipulated(files, lambda manifest: manifest["arrays"][0].update(file=name))
    server.commit("cook/numbers", bad | ({name: b"content"} if isinstance(name, str) else {}))
    server.asked.clear()
    with pytest.raises(ModelCorruptError):
        um.load("hf://cook/numbers")
    assert not [asked for asked in server.asked if "resolve" in asked and "manifest" not in asked]


def test_arrays_of_another_size_are_not_downloaded(server, model):
    um.push_to_hub(model, "cook/numbers")
    name = next(one for one in server.files("cook/numbers")[1] if one.endswith(".npy"))
    server.announced[name] = 10**12
    with pytest.raises(ModelCorruptError, match="1,000,000,000,000 bytes, but its manifest says"):
        um.load("hf://cook/numbers")
    assert not [asked for asked in server.asked if asked.startswith("GET") and name in asked]
    server.announced = {"manifest.json": 10**12}
    with pytest.raises(ModelCorruptError, match="longer than 64MB"):
        um.load("hf://cook/numbers")


def test_an_array_that_was_changed_is_noticed(server, model):
    um.push_to_hub(model, "cook/numbers")
    _, files = server.files("cook/numbers")
    name = max((one for one in files if one.endswith(".npy")), key=lambda one: len(files[one]))
    changed = bytearray(files[name])
    changed[-1] ^= 1
    server.commit("cook/numbers", files | {name: bytes(changed)})
    with pytest.raises(ModelCorruptError, match="was changed since it was saved"):
        um.load("hf://cook/numbers")


@pytest.mark.parametrize(
    "files", [{}, {"README.md": b"no model"}, {"manifest.json": b"{}"}, {"manifest.json": b"\xff["}]
)
def test_a_repository_without_a_model_says_so(server, files):
    server.commit("cook/other", files)
    with pytest.raises((ModelNotFoundError, ModelCorruptError)):
        um.load("hf://cook/other")


def test_what_is_not_there_is_named(server, model):
    with pytest.raises(ModelNotFoundError, match=r"hf://nobody/nothing, or you may not see it"):
        um.load("hf://nobody/nothing")
    um.push_to_hub(model, "cook/numbers")
    with pytest.raises(ModelNotFoundError, match="hf://cook/numbers@v9"):
        um.load("hf://cook/numbers@v9")


@pytest.mark.parametrize(
    "address",
    ["hf://", "hf://name", "hf://a/b/c", "hf://../b", "hf://a/..", "hf://a/b@", "hf://a/b@../c",
     "hf://a/b@c d", "hf://a b/c"],
)  # fmt: skip
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ParameterError, match=r"expected"):
        HubAddress.of(address)


def test_folders_are_no_addresses():
    assert HubAddress.of("models/hf") is None
    assert HubAddress.of(Path("/models")) is None


def test_only_fitted_models_are_pushed(server):
    with pytest.raises(NotFittedError):
        um.Tagger().push_to_hub("cook/kitchen")
    assert not server.asked


@pytest.mark.parametrize("name", ["kitchen", "a/b@c", "../b", ""])
def test_a_repository_has_a_user_and_a_name(model, name):
    with pytest.raises(ParameterError, match="user/name"):
        um.push_to_hub(model, name)


def test_a_hub_that_is_away_is_said_to_be(server, model):
    server.shutdown()
    server.server_close()
    with pytest.raises(HubError, match="could not be pushed"):
        um.push_to_hub(model, "cook/numbers")


def test_a_card_is_honest_about_what_was_not_measured(model, tagger):
    card = um.hub.model_card(model, "cook/numbers", license="apache-2.0")
    assert "Nothing was measured" in card
    assert 'license: "apache-2.0"' in card
    kept = um.Tagger(keep_texts=True, language=None).fit(TEXTS, LABELS)
    assert "**The model contains 60 training texts**" in um.hub.model_card(kept, "cook/kitchen")
    assert "weighted words of 60 training texts" in um.hub.model_card(tagger, "cook/kitchen")
