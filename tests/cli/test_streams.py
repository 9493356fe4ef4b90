"""Streams that a person closed, or that take nothing more, are no reason for a traceback."""

import json
import os
import shlex
import subprocess

import pytest

from .conftest import COMMAND

COMMANDS = {
    "predict": "predict {model} {folder}/test.jsonl -k 1",
    "stdin": "predict {model} - -k 1",
    "convert": "convert {folder}/test.jsonl - --to csv",
    "help": "--help",
    "error": "predict {folder}/none -",
}
READS_STDIN = ("stdin",)
FAILS = {"error": 1}


def in_shell(command, redirection, model, folder):
    line = shlex.join(COMMAND) + " " + COMMANDS[command].format(model=model, folder=folder)
    return subprocess.run(
        ["bash", "-c", f"{line} {redirection}"],
        input=b"a loaf with a crust\n",
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_who_closes_an_output_wants_nothing_of_it(model, folder, command, closed):
    done = in_shell(command, closed, model, folder)
    assert done.returncode == FAILS.get(command, 0), done.stderr
    assert b"Traceback" not in done.stderr
    if closed == ">&-":
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == (command in ("convert", "error"))
    else:
        assert done.stderr == b""
        assert bool(done.stdout) == (command not in FAILS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_stdin_is_an_error_only_for_who_reads_it(model, folder, command):
    done = in_shell(command, "<&-", model, folder)
    assert b"Traceback" not in done.stderr
    if command in READS_STDIN:
        assert done.returncode == 1
        assert done.stderr.startswith(b"umpteen: error: stdin (-) is closed: give the name")
        assert done.stderr.count(b"\n") == 1
    else:
        assert done.returncode == FAILS.get(command, 0)


def test_a_model_is_not_written_into_by_what_was_meant_for_stdout(folder, tmp_path):
    fit = f"fit {folder}/train.jsonl -o {tmp_path}/m"
    line = f"{shlex.join(COMMAND)} {fit} <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", line], timeout=60).returncode == 0
    check = [*COMMAND, "predict", tmp_path / "m", folder / "test.jsonl", "-k", "1"]
    answers = subprocess.run(check, capture_output=True, check=True, timeout=60).stdout
    assert len([json.loads(answer) for answer in answers.splitlines()]) == 40


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["predict", "convert", "help"])
def test_a_full_disk_is_one_line(model, folder, command):
    done = in_shell(command, ">/dev/full", model, folder)
    assert done.returncode == 1
    assert done.stderr == b"umpteen: error: the output: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_no_room_for_remarks_does_not_stop_the_work(model, folder):
    done = in_shell("convert", "2>/dev/full", model, folder)
    assert done.returncode == 0
    assert done.stdout == in_shell("convert", "", model, folder).stdout
