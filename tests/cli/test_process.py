"""The command as a process: streams, signals, exit codes, terminals."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

import umpteen as um
from tests.forked import REAL

from .conftest import COMMAND, run

HEAVY = ("numba", "numpy", "scipy", "sklearn", "rich")


def test_help_brings_nothing_heavy():
    code = (
        "import sys\nfrom umpteen.cli import main\n"
        "try: main(['fit', '--help'])\n"
        f"except SystemExit: print([name for name in {HEAVY} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert out.decode().splitlines()[-1] == "[]"


def test_version_and_bare_command():
    assert run("--version") == (f"umpteen {um.__version__}\n", "")
    assert run()[0] == run("--help")[0]


@pytest.mark.parametrize("arguments", [["fit"], ["predikt"], ["fit", "x", "-o", "m", "--treees"]])
def test_wrong_usage_is_2(arguments):
    out, err = run(*arguments, code=2)
    assert out == ""
    assert "--help" in err
    assert "Traceback" not in err


def test_completion():
    environment = {**os.environ, "_UMPTEEN_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    done = subprocess.run(
        COMMAND, env={**environment, "COMP_WORDS": "umpteen pre"}, capture_output=True, timeout=60
    )
    assert done.stdout.decode().split() == ["predict"]


def test_results_go_to_stdout_and_nothing_else(folder, model):
    out, err = run("predict", model, folder / "test.jsonl")
    assert len([json.loads(line) for line in out.splitlines()]) == 40
    assert err == ""
    real = [*REAL, "predict", model, folder / "test.jsonl"]
    assert subprocess.run(real, capture_output=True, check=True).stdout.decode() == out


def test_stdin_of_json_and_of_plain_lines(folder, model):
    plain, _ = run("predict", model, "-", "-k", "1", stdin=b"a loaf with a crust\n\nespresso beans")
    labels = [[tag["label"] for tag in json.loads(line)["labels"]] for line in plain.splitlines()]
    assert labels == [["bread"], [], ["coffee"]]
    content = (folder / "test.jsonl").read_bytes()
    assert run("predict", model, "-", stdin=content) == run("predict", model, folder / "test.jsonl")


def test_fit_and_explain_from_stdin(folder, tmp_path):
    content = (folder / "train.jsonl").read_bytes()
    run("fit", "-", "-o", tmp_path / "m", stdin=content)
    out, _ = run("explain", tmp_path / "m", "-", stdin=b"a loaf with a crust\n")
    assert json.loads(out)["label"] == "bread"


def test_a_line_is_answered_before_the_next_one_comes(model):
    with subprocess.Popen(
        [*COMMAND, "predict", str(model), "-", "-k", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        for text, label in (("a loaf", "bread"), ("espresso", "coffee")):
            process.stdin.write(f"{text}\n".encode())
            assert select.select([process.stdout], [], [], 60)[0], "no answer"
            assert json.loads(process.stdout.readline())["labels"][0]["label"] == label
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_closed_pipe_is_silent(model, tmp_path):
    many = tmp_path / "many.txt"
    many.write_text("a loaf with a crust\n" * 20_000)
    with subprocess.Popen(
        [*COMMAND, "predict", str(model), str(many)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert json.loads(process.stdout.readline())["labels"]
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_tables_are_for_terminals(folder, model):
    shown = on_terminal("predict", model, folder / "test.jsonl", "-k", "1")
    assert shown.splitlines()[0].split() == ["text", "score", "label"]
    assert len(shown.splitlines()) == 41
    assert all(len(line) <= 70 for line in shown.splitlines())
    assert on_terminal("predict", model, folder / "test.jsonl", "--json").startswith("{")


@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_leaves_the_old_model(folder, model, tmp_path):
    old = shutil.copytree(model, tmp_path / "model")
    files = sorted(path.name for path in old.iterdir())
    error, terminal = pty.openpty()
    fit = ["fit", f"{folder}/train.jsonl", "-o", str(old), "--trees", "100000", "--no-calibrate"]
    with subprocess.Popen([*COMMAND, *fit], stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        seen = read_until(error, b"Training")
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
        seen += read_until(error, None)
        assert process.wait(60) == 130
    os.close(error)
    assert out == b""
    assert seen.decode().rstrip().endswith("umpteen: interrupted")
    assert b"Traceback" not in seen
    assert sorted(path.name for path in old.iterdir()) == files
    assert um.load(old).predict("a loaf") == um.load(model).predict("a loaf")


@pytest.mark.usefixtures("on_ctrl_c")
def test_ctrl_c_while_waiting_for_texts(tmp_path):
    with subprocess.Popen(
        [*COMMAND, "fit", "-", "-o", str(tmp_path / "m")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(b'{"text": "a", "labels": ["x"]}\n' * 10_000)
        process.stdin.flush()  # more than a pipe holds: it is being read
        time.sleep(0.3)  # and waited for
        process.send_signal(signal.SIGINT)
        answered = select.select([process.stderr], [], [], 60)[0]
        process.stdin.close()
        assert answered, "not interrupted"
        assert process.stderr.read() == b"umpteen: interrupted\n"
        assert process.wait(60) == 130
    assert not (tmp_path / "m").exists()


@pytest.mark.usefixtures("on_ctrl_c")
@pytest.mark.parametrize("on_ctrl_c", [signal.SIG_IGN], indirect=True)
def test_a_job_that_was_told_to_ignore_ctrl_c_goes_on(model):
    """`nohup umpteen ...` and jobs in the background of a script outlive the Ctrl-C of others."""
    with subprocess.Popen(
        [*COMMAND, "predict", str(model), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        for _ in range(2):
            process.stdin.write(b"a loaf with a crust\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["labels"]
            process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(60) == 0


def read_until(terminal, wanted, seconds=60):
    """What a terminal shows until it shows `wanted`, or to its end."""
    seen, end = b"", time.monotonic() + seconds
    while wanted is None or wanted not in seen:
        assert select.select([terminal], [], [], max(0, end - time.monotonic()))[0], seen
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            part = b""
        if not part:
            assert wanted is None, seen
            break
        seen += part
    return seen


def on_terminal(*arguments, columns=70):
    """What a person sees on a terminal of that width."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=terminal) as process:
        os.close(terminal)
        shown = read_until(screen, None).decode()
        assert process.wait(60) == 0
    os.close(screen)
    return shown.replace("\r\n", "\n")
