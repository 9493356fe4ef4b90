"""Every version of a model stays whole, and one of them is the current one, whatever happens."""

import shutil
from dataclasses import replace

import pytest

import umpteen as um
from tests.serve.conftest import made_up
from umpteen.errors import ModelCorruptError, ParameterError
from umpteen.serve.journal import Correction
from umpteen.serve.learning import learn
from umpteen.serve.snapshot import content_hash
from umpteen.serve.state import State, state_folder
from umpteen.serve.versions import Version, Versions


@pytest.fixture
def versions(tmp_path):
    return Versions(tmp_path / "kitchen.serve" / "versions")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other") / "kitchen"
    um.Tagger(calibrate=False).fit(*made_up(60, seed=1)).save(folder)
    return folder


def grown(versions, parent, tagger, texts=("a new thing",), label="new"):
    """A version that learned something."""
    after = um.load(versions.path(parent.version)).partial_fit(list(texts), [[label]] * len(texts))
    return versions.add(after.save, replace(parent, parent=parent.version, time=parent.time + "x"))


def test_the_trained_model_is_the_first_version(versions, model):
    current = versions.current(model)
    assert current.version == content_hash(model)
    assert um.load(versions.path(current.version)).labels == um.load(model).labels
    assert [one.version for one in versions.all()] == [current.version]


def test_arrays_are_linked_and_not_copied(versions, model):
    current = versions.current(model)
    arrays = list(versions.path(current.version).glob("*.npy"))
    assert arrays
    assert all((model / path.name).samefile(path) for path in arrays)


def test_the_same_model_has_the_same_version_wherever_it_was_saved(model, tmp_path):
    um.load(model).save(tmp_path / "again")
    assert content_hash(tmp_path / "again") == content_hash(model)


def test_what_was_learned_stays_current_until_the_model_is_trained_anew(versions, model, other):
    learned = grown(versions, versions.current(model), None)
    versions.choose(learned, model)
    assert versions.current(model) == learned
    shutil.rmtree(model)
    shutil.copytree(other, model)
    fresh = versions.current(model)
    assert fresh.version == content_hash(other)
    assert fresh.position == 0
    assert fresh.parent == learned.version
    assert {one.version for one in versions.all()} >= {learned.version, fresh.version}


def test_the_model_before_a_new_one_can_be_returned_to(versions, model, other):
    first = versions.current(model)
    shutil.rmtree(model)
    shutil.copytree(other, model)
    second = versions.current(model)
    back = versions.back(second, None, last_number=0)
    assert back.version == first.version
    versions.choose(back, model)
    assert versions.current(model).version == first.version  # also after a restart


def test_a_rollback_sets_aside_what_came_after(versions, model):
    first = versions.current(model)
    learned = replace(grown(versions, first, None), position=7)
    back = versions.back(learned, None, last_number=9)
    assert back.version == first.version
    assert [number for number in range(1, 12) if back.waits(number)] == [10, 11]
    assert not back.may_learn(3)


def test_corrections_that_were_undone_stay_so_for_a_new_model(versions, model, other):
    learned = grown(versions, versions.current(model), None)
    versions.choose(versions.back(learned, None, last_number=5), model)
    shutil.rmtree(model)
    shutil.copytree(other, model)
    fresh = versions.current(model)
    assert [number for number in range(1, 8) if fresh.waits(number)] == [6, 7]
    assert [fresh.n_waiting(last) for last in (0, 3, 5, 7)] == [0, 0, 0, 2]


def test_there_may_be_nothing_to_return_to(versions, model):
    current = versions.current(model)
    with pytest.raises(ParameterError, match="no version before it"):
        versions.back(current, None, 0)
    with pytest.raises(ParameterError, match="no version 'nonsense'"):
        versions.back(current, "nonsense", 0)


def test_a_save_that_fails_leaves_nothing(versions, model):
    current = versions.current(model)

    def fail(place):
        place.mkdir()
        (place / "half.npy").write_bytes(b"x")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        versions.add(fail, current)
    assert [one.version for one in versions.all()] == [current.version]
    assert versions.current(model) == current


def test_leftovers_of_a_kill_are_removed_at_the_next_start(tmp_path, model):
    folder = state_folder(model, None)
    state = State(folder)
    state.versions.current(model)
    part = folder / "versions" / ".abc.part"
    (part / "model").mkdir(parents=True)
    state.close()
    State(folder).close()
    assert not part.exists()


def test_old_versions_are_removed_but_not_those_that_are_needed(versions, model):
    chain = [versions.current(model)]
    for i in range(4):
        chain.append(grown(versions, chain[-1], None, [f"thing {i}"], f"new {i}"))
    versions.prune(chain[-1], keep=2)
    left = {one.version for one in versions.all()}
    assert left == {chain[-1].version, chain[-2].version}
    versions.prune(chain[-2], keep=1)
    assert chain[-2].version in {one.version for one in versions.all()}


def test_two_servers_cannot_share_a_state(tmp_path):
    state = State(tmp_path / "m.serve")
    with pytest.raises(ParameterError, match="in use by another server"):
        State(tmp_path / "m.serve")
    state.close()
    State(tmp_path / "m.serve").close()


def test_records_of_later_releases_are_read():
    record = {"version": "v", "time": "t", "undone": [[1, 2]], "colour": "red"}
    assert Version.of(record) == Version("v", "t", undone=[(1, 2)])


DAMAGED = ["{", "[" * 100_000, '{"a": 1}', '{"version": 3, "time": 4}', '{"version": null}']


@pytest.mark.parametrize("content", DAMAGED, ids=["half", "deep", "other", "types", "null"])
def test_damaged_records_are_as_if_they_were_not_there(serving, model, content):
    """People edit files: the server starts all the same, and tells what it can."""
    state = State(state_folder(model, None))
    version = state.versions.current(model).version
    state.close()
    for name in ("current.json", f"versions/{version}/about.json", "learning.jsonl"):
        (state.folder / name).write_text(content + "\n")
    client = serving(model, learns=True)
    found = client.get("/v1/kitchen").json()
    assert (found["version"], found["learning"]["curve"]) == (version, [])
    (state.folder / "current.json").write_text(content)
    assert client.post("/v1/kitchen/reload").status_code == 200
    assert client.post("/v1/kitchen/rollback").status_code == 409


@pytest.mark.parametrize("how", ["cut", "changed", "no manifest"])
def test_a_damaged_version_gives_way_to_the_trained_model(serving, model, caplog, how):
    """The server starts, says so aloud, and learns the corrections once more."""
    state = State(state_folder(model, None))
    trained = state.versions.current(model)
    state.journal.append([Correction(f"a new thing {i}", ["new"]) for i in range(20)], "v")
    learned = replace(grown(state.versions, trained, None), position=20, applied=18)
    state.versions.choose(learned, model)
    state.close()
    place = state.versions.path(learned.version)
    largest = max(place.glob("*.npy"), key=lambda path: path.stat().st_size)
    if how == "cut":
        largest.write_bytes(largest.read_bytes()[:-100])
    elif how == "changed":
        content = largest.read_bytes()
        largest.write_bytes(content[:-4] + bytes(4 * [content[-1] ^ 0x55]))
    else:
        (place / "manifest.json").write_text("{")

    client = serving(model, learns=True)
    found = client.get("/v1/kitchen").json()
    assert found["version"] == trained.version
    assert found["learning"]["damaged"] == [learned.version]
    assert found["learning"]["pending"] == 20
    assert f"VERSION {learned.version} IS DAMAGED" in caplog.text
    assert 'umpteen_damaged_versions{model="kitchen"} 1.0' in client.get("/metrics").text
    assert client.post("/v1/kitchen/suggest", json={"text": "dough"}).status_code == 200
    assert client.post("/v1/kitchen/rollback", json={"version": learned.version}).status_code == 409
    served = client.app.state.server.models["kitchen"]
    served.adopt(learn(state.folder, served.current, 20), served.current)
    (result,) = client.post("/v1/kitchen/suggest", json={"text": "a new thing"}).json()["results"]
    assert "new" in [one["label"] for one in result["labels"]]


def test_without_an_intact_model_the_server_does_not_start(serving, model):
    State(state_folder(model, None)).close()
    largest = max(model.glob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-100])
    with pytest.raises(ModelCorruptError):
        serving(model, learns=True)
