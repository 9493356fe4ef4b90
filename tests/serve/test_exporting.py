"""A model that is trained again learns what people meant, not what they took back."""

import json

import pytest

import umpteen as um
from umpteen.cli import main
from umpteen.serve.exporting import valid_corrections
from umpteen.serve.journal import Correction
from umpteen.serve.learning import learn
from umpteen.serve.state import State, state_folder

from .test_learning import vandalism


@pytest.fixture
def state(model):
    found = State(state_folder(model, None))
    yield found
    found.close()


def record(state, model, *corrections):
    state.journal.append(corrections, state.versions.current(model).version)


def labels(state):
    return {one.text: one.labels for one in valid_corrections(state.folder)}


def test_only_the_last_word_on_a_text_counts(state, model):
    record(state, model, Correction("a", ["tea"]), Correction("b", ["soup"]))
    record(state, model, Correction("a", ["coffee"]))
    assert labels(state) == {"a": ["coffee"], "b": ["soup"]}


def test_what_was_undone_is_left_out_and_an_earlier_word_counts_again(serving, model):
    served = serving(model, learns=True).app.state.server.models["kitchen"]
    state = served.state
    record(state, model, Correction("a", ["tea"]))
    served.adopt(learn(state.folder, served.current, 1), served.current)
    before = served.current.version
    record(state, model, Correction("a", ["soup"]), *juggling(20))
    served.adopt(learn(state.folder, served.current, 21), served.current)
    assert served.roll_back().version == before
    record(state, model, Correction("b", ["soup"]))
    assert labels(state) == {"a": ["tea"], "b": ["soup"]}


def juggling(n):
    return [Correction(f"juggling clubs and rings {i}", ["juggling"]) for i in range(n)]


def test_what_was_refused_is_left_out_and_never_tried_again(state, model):
    """One batch of nonsense would else spoil all others when a new model learns the journal."""
    record(state, model, Correction("how about dough loaf crust", ["bread"]))
    current = state.versions.current(model)
    kept = learn(state.folder, current, state.journal.last_number).version
    record(state, model, *vandalism())
    outcome = learn(state.folder, kept, state.journal.last_number)
    assert not outcome.applied
    state.versions.choose(outcome.version, model)
    record(state, model, Correction("kettle", ["tea"]))
    expected = {"how about dough loaf crust": ["bread"], "kettle": ["tea"]}
    assert labels(state) == expected

    um.Tagger(calibrate=False).fit(["a kettle", "dough"] * 30, [["tea"], ["bread"]] * 30).save(
        model
    )
    fresh = state.versions.current(model)  # trained again
    assert fresh.position == 0
    assert labels(state) == expected
    assert fresh.n_waiting(state.journal.last_number) == 2
    assert [n for n in range(1, 153) if fresh.waits(n)] == [1, 152]


def test_the_command_writes_what_fit_reads_while_a_server_runs(state, model, tmp_path, capsys):
    record(state, model, Correction("two\nlines", ["a, b", "é"]), Correction("nothing fits", []))
    file = tmp_path / "corrections.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(model), "--export-corrections", str(file)])
    assert not ended.value.code, capsys.readouterr().err
    assert "2 corrections" in capsys.readouterr().err
    samples = um.data.read(file)
    assert samples.texts == ["two\nlines", "nothing fits"]
    assert [list(own) for own in samples.labels] == [["a, b", "é"], []]
    assert [set(json.loads(line)) for line in file.open()] == [{"text", "labels"}] * 2


def test_a_model_without_corrections_is_told(saved, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(saved), "--export-corrections", str(tmp_path / "a.jsonl")])
    assert ended.value.code
    assert "there are no corrections" in capsys.readouterr().err
