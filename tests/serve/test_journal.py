"""What a person was told is recorded is never lost, and what was half written is never read."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import umpteen as um
from umpteen.serve.durable import append_lines, read_lines, repair_lines
from umpteen.serve.journal import Correction, Journal, Tally, read_corrections

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)
corrections = st.builds(
    Correction,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(names, max_size=3, unique=True),
    st.none() | st.lists(names, max_size=3, unique=True),
    st.none() | names,
)


def plain(one):
    return one.text, one.labels, one.suggested, one.id


@settings(max_examples=60)
@given(st.lists(st.lists(corrections, max_size=3), max_size=4))
def test_everything_that_was_recorded_is_read(tmp_path_factory, batches):
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder)
    for batch in batches:
        assert journal.append(batch, "v1") == len(batch)
    given = [one for batch in batches for one in batch]
    assert [plain(one) for one in read_corrections(folder)] == [plain(one) for one in given]
    again = Journal(folder)
    assert again.last_number == len(given)
    assert again.tally == journal.tally


@settings(max_examples=100)
@given(st.lists(corrections, min_size=1, max_size=4), st.data())
def test_a_kill_at_any_byte_leaves_whole_lines(tmp_path_factory, given_, data):
    """The file may end anywhere; lines before that stay, and the next one gets its number."""
    folder = tmp_path_factory.mktemp("journal")
    Journal(folder).append(given_, "v1")
    (path,) = folder.iterdir()
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    n_whole = content[:cut].count(b"\n")
    assert [one.number for one in read_corrections(folder)] == list(range(1, n_whole + 1))
    journal = Journal(folder)
    assert path.read_bytes() == b"".join(content.splitlines(keepends=True)[:n_whole])
    journal.append([Correction("next", ["a"])], "v2")
    assert [one.number for one in read_corrections(folder)] == list(range(1, n_whole + 2))


def test_fit_reads_the_journal(tmp_path):
    """A person trains a new model from the corrections, without any conversion."""
    given = [Correction("one\ntext", ["a", "b"], ["c"], "7"), Correction("two", [], None, "8")]
    Journal(tmp_path / "journal").append(given, "v1")
    (path,) = (tmp_path / "journal").iterdir()
    samples = um.data.read(path)
    assert samples.texts == ["one\ntext", "two"]
    assert samples.labels == [["a", "b"], []]
    assert samples.ids == ["7", "8"]


def test_there_is_a_file_for_each_day(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    monkeypatch.setattr("umpteen.serve.journal.datetime", FirstThenNextDay)
    journal.append([Correction("a", [])], "v")
    journal.append([Correction("b", [])], "v")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "2030-01-01.jsonl", "2030-01-02.jsonl"
    ]  # fmt: skip
    assert [one.text for one in read_corrections(tmp_path)] == ["a", "b"]


class FirstThenNextDay:
    days = iter([1, 2])

    @classmethod
    def now(cls, zone):
        from datetime import datetime

        return datetime(2030, 1, next(cls.days), tzinfo=zone)


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    append_lines(path, [{"a": 1}])
    real = os.write
    room = iter([5])

    def write(descriptor, content):
        left = next(room, None)
        if left is None:
            raise OSError(28, "No space left on device")
        return real(descriptor, bytes(content)[:left])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        append_lines(path, [{"b": 2}])
    assert path.read_bytes() == b'{"a": 1}\n'


def test_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\nnonsense\n[1]\n\xff\n' + b"[" * 100_000 + b'\n{"b": 2}\n{"c": 3}')
    assert list(read_lines(path)) == [{"a": 1}, {"b": 2}]
    repair_lines(path)
    assert path.read_bytes().endswith(b'{"b": 2}\n')


def test_halves_of_surrogate_pairs_are_passed_over(tmp_path):
    """Nothing that shows or learns them could take them."""
    broken = [("\ud800", "tea"), ("kettle", "\ud800")]
    lines = [{"text": text, "labels": [label], "number": 1} for text, label in broken]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(read_corrections(tmp_path)) == []


def test_people_s_changes_are_counted():
    tally = Tally()
    tally.count(Correction("", ["a", "b"], ["b", "c"]))
    tally.count(Correction("", ["a"], []))
    tally.count(Correction("", ["z"]))  # nobody knows what was suggested
    assert tally.most(2) == [
        {"label": "a", "added": 2, "removed": 0},
        {"label": "c", "added": 0, "removed": 1},
    ]


def test_every_tenth_text_is_for_validation_whoever_sends_it():
    is_aside = [Correction(f"text {i}", ["a"]).is_for_validation for i in range(5000)]
    assert 350 < sum(is_aside) < 650
    for i in range(20):
        assert Correction(f"text {i}", ["b"], ["c"]).is_for_validation is is_aside[i]


WRITER = """
import sys
from pathlib import Path
from umpteen.serve.journal import Correction, Journal
journal = Journal(Path(sys.argv[1]))
print(journal.last_number, flush=True)
while True:
    journal.append([Correction("x" * 5000, ["a"]), Correction("y", ["b"])], "v")
    print(journal.last_number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    """A real process is killed at random moments; the next one goes on where it was."""
    draw, acknowledged = random.Random(0), 0
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        first = int(child.stdout.readline())
        assert first >= acknowledged
        for _ in range(draw.randrange(1, 60)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        child.wait()
        numbers = [one.number for one in read_corrections(Path(tmp_path))]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= acknowledged


def test_lines_say_which_model_suggested(tmp_path):
    Journal(tmp_path).append([Correction("a", ["b"], ["c"])], "version-7")
    (path,) = tmp_path.iterdir()
    record = json.loads(path.read_text())
    assert record.pop("time")
    assert record == {
        "text": "a", "labels": ["b"], "suggested": ["c"], "number": 1, "version": "version-7"
    }  # fmt: skip
