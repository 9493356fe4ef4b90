"""Nobody's change to a saved model is lost, whoever else changes it at the same time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import umpteen as um
from tests.forked import COMMAND
from umpteen.cli import main
from umpteen.errors import ModelChangedError, ModelNotFoundError
from umpteen.storage import folder as model_folder
from umpteen.storage.folder import locked

HOLD = """
import sys, time, pathlib
from umpteen.storage.folder import locked
with locked(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""
can_lock = pytest.mark.skipif(os.name != "posix", reason="folders are locked on Unix")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    texts = ["red apple pie", "green apple", "iron ore", "copper ore mine", "old rye", "wheat"] * 10
    labels = [["fruit"], ["fruit"], ["metal"], ["metal", "mine"], ["grain"], ["grain"]] * 10
    path = tmp_path_factory.mktemp("edited") / "model"
    um.Tagger().fit(texts, labels).save(path)
    return path


@pytest.fixture
def model(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.fixture
def held(model):
    """A process that has the model locked."""
    with subprocess.Popen([sys.executable, "-c", HOLD, model], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.kill()


def file_of(tmp_path, name, labels):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(json.dumps({"text": f"some {name} words", "labels": labels}) + "\n")
    return path


@can_lock
def test_commands_at_the_same_time_are_all_there_afterwards(model, tmp_path):
    commands = [
        *(["add-labels", model, file_of(tmp_path, f"new{i}", [f"new{i}"])] for i in range(3)),
        ["update", model, file_of(tmp_path, "corrected", ["grain", "corrected"])],
        ["remove-labels", model, "mine"],
        ["tune", model],
    ]
    running = [
        subprocess.Popen([*COMMAND, *map(str, command)], stderr=subprocess.PIPE, stdout=-3)
        for command in commands
    ]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
    tagger = um.load(model, verify=True)
    expected = {"fruit", "metal", "grain", "corrected", "new0", "new1", "new2"}
    assert set(tagger.labels) == expected
    assert tagger.thresholds_ is not None
    assert sorted(tagger.label_names_.ids.values()) == sorted(set(tagger.label_names_.ids.values()))


@can_lock
def test_threads_that_edit_wait_for_one_another(model):
    def add(i):
        with um.edit(model) as tagger:
            tagger.add_labels(f"new{i}", examples=[f"word{i} and word{i}"])

    threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {f"new{i}" for i in range(4)} < set(um.load(model).labels)


@can_lock
def test_a_save_elsewhere_waits_for_the_edit(model, saved):
    other, done = um.load(saved), threading.Event()

    def replace():
        other.save(model)
        done.set()

    with um.edit(model) as tagger:
        saver = threading.Thread(target=replace)
        saver.start()
        assert not done.wait(0.3)
        tagger.remove_labels("mine")
    saver.join(60)
    assert "mine" in um.load(model).labels  # replaced as a whole, afterwards


def test_a_save_of_ones_own_does_not_wait_for_itself(model):
    with um.edit(model) as tagger:
        tagger.remove_labels("mine")
        tagger.save(model)
        assert "mine" not in um.load(model).labels  # loading never waits
        tagger.remove_labels("grain")
    assert um.load(model).labels == ["fruit", "metal"]


def test_after_an_error_nothing_is_saved_and_nobody_waits(model):
    before = (model / "manifest.json").read_bytes()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), um.edit(model) as tagger:
            tagger.remove_labels("mine").labels[1 // 0]
    assert (model / "manifest.json").read_bytes() == before


def test_there_must_be_a_model(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ModelNotFoundError), um.edit(path):
            pass
    assert list(tmp_path.iterdir()) == []


@can_lock
def test_a_killed_process_keeps_nobody_waiting(held, model):
    held.kill()
    held.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with um.edit(model) as tagger:
            tagger.remove_labels("mine")
    assert "mine" not in um.load(model).labels


@can_lock
def test_a_long_wait_is_said_and_ends(held, model, monkeypatch):
    monkeypatch.setattr(model_folder, "_PATIENCE", 0.2)
    threading.Timer(1, held.kill).start()
    with pytest.warns(UserWarning, match="model is being changed elsewhere: waiting"):  # noqa: SIM117
        with um.edit(model) as tagger:
            tagger.remove_labels("mine")
    assert "mine" not in um.load(model).labels


@can_lock
def test_ctrl_c_ends_the_wait(held, model):
    before = (model / "manifest.json").read_bytes()
    command = [*COMMAND, "remove-labels", str(model), "mine"]
    default = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, **default) as process:
        first = process.stderr.readline().decode()
        assert first.startswith("umpteen: warning: ")
        assert first.endswith("model is being changed elsewhere: waiting for that to end\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"umpteen: interrupted\n"
    assert (model / "manifest.json").read_bytes() == before


def test_where_nothing_can_be_locked_a_change_in_between_is_not_undone(model, monkeypatch):
    monkeypatch.setattr(model_folder, "fcntl", None)  # as on Windows
    with um.edit(model) as tagger:
        tagger.remove_labels("mine")

    def remove_while_another_is_removed():
        with um.edit(model) as tagger:
            um.load(model).remove_labels("grain").save(model)
            tagger.remove_labels("fruit")

    with pytest.raises(ModelChangedError, match="model was changed by someone else"):
        remove_while_another_is_removed()
    assert um.load(model).labels == ["fruit", "metal"]


@can_lock
def test_another_output_leaves_the_model_alone_and_waits_for_nobody(held, model, tmp_path):
    before = (model / "manifest.json").read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["remove-labels", str(model), "mine", "-o", str(tmp_path / "other")])
    assert ended.value.code == 0
    assert (model / "manifest.json").read_bytes() == before
    assert "mine" not in um.load(tmp_path / "other").labels


@can_lock
@pytest.mark.parametrize("output", ["model", "./model/../model", "link"])
def test_the_same_folder_by_another_name_is_the_same(model, tmp_path, monkeypatch, output):
    (tmp_path / "link").symlink_to("model")
    monkeypatch.setattr(model_folder, "_PATIENCE", 600)
    at = threading.Event()

    def remove():
        with pytest.raises(SystemExit):
            main(["remove-labels", str(model), "mine", "-o", str(tmp_path / output)])
        at.set()

    with locked(model):
        changer = threading.Thread(target=remove)
        changer.start()
        assert not at.wait(0.5)
        um.load(model).remove_labels("grain").save(model)
    changer.join(60)
    assert um.load(model).labels == ["fruit", "metal"]
