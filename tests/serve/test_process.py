"""The real process: started from the command line, killed, asked nonsense, and asked again."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

import umpteen as um
from umpteen.cli import main
from umpteen.cli.serve import _hosts
from umpteen.serve import Settings, connections, open_models
from umpteen.serve.state import State

if os.name != "posix":
    pytest.skip("signals as POSIX has them", allow_module_level=True)

COMMAND = [sys.executable, "-m", "umpteen", "serve"]
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Process:
    """A server, and what it writes to stderr."""

    def __init__(self, *arguments):
        self.child = subprocess.Popen(
            [*COMMAND, *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE, text=True
        )
        self.lines = []
        for line in self.child.stderr:
            self.lines.append(line)
            if found := _ADDRESS.search(line):
                self.address = found[0]
                break
        else:
            raise AssertionError("".join(self.lines))
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.child.stderr))
        self.reader.start()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def suggest(self, text):
        found = self.ask("/v1/kitchen/suggest", {"text": text, "k": 3})
        return [one["label"] for one in found["results"][0]["labels"]]

    def wait_until_learned(self):
        for _ in range(600):
            learning = self.ask("/v1/kitchen")["learning"]
            if not learning["running"]:
                return learning
            time.sleep(0.2)
        raise AssertionError("still learning after two minutes")

    def end(self, how=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(how)
        code = self.child.wait(30)
        self.reader.join(30)
        return code


@pytest.fixture
def start():
    started = []

    def start(*arguments):
        started.append(Process(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.end(signal.SIGKILL)


@pytest.fixture
def command(capsys):
    """Run the command in this process; it ends, as it does not get to serve."""

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main(["serve", *map(str, arguments)])
        return exit_.value.code, capsys.readouterr().err

    return run


def corrections(n=12):
    return {"items": [{"text": f"juggling clubs and rings {i}", "labels": ["juggling"],
                       "suggested": ["tea"]} for i in range(n)]}  # fmt: skip


def test_a_person_s_loop_survives_a_kill(start, command, model):
    """Teach a new label, see it suggested, kill the server, see it again, and take it back."""
    server = start(model)
    assert "juggling" not in server.suggest("clubs and rings")
    assert server.ask("/v1/kitchen/learn", corrections()) == {"recorded": 12}
    server.end(signal.SIGKILL)

    server = start(model)
    assert server.ask("/v1/kitchen")["learning"]["pending"] == 12
    server.ask("/v1/kitchen/apply", {})
    learning = server.wait_until_learned()
    assert (learning["pending"], learning["curve"][-1]["applied"]) == (0, True), server.lines
    assert server.suggest("clubs and rings")[0] == "juggling"
    server.end(signal.SIGKILL)

    (served,) = open_models([str(model)], Settings()).values()
    assert served.snapshot.tagger.predict("clubs and rings", k=1)[0][0] == "juggling"
    served.state.close()
    assert "juggling" not in um.load(model).labels  # the trained model is untouched
    code, said = command(model, "--rollback")
    assert code == 0
    assert "back to" in said
    server = start(model)
    assert "juggling" not in server.suggest("clubs and rings")
    assert server.ask("/v1/kitchen")["learning"]["pending"] == 0
    assert server.end() == -signal.SIGTERM


def test_a_signal_reloads_and_a_signal_ends(start, model, tagger):
    server = start(model, "--no-learn")
    before = server.ask("/v1/kitchen")["version"]
    um.Tagger(calibrate=False).fit(["dough", "kettle"] * 5, ["bread", "tea"] * 5).save(model)
    server.child.send_signal(signal.SIGHUP)
    for _ in range(200):
        if server.ask("/v1/kitchen")["version"] != before:
            break
        time.sleep(0.1)
    assert server.ask("/v1/kitchen")["n_labels"] == 2

    answers = []
    long = {"texts": ["dough and kettle " * 2000] * 200}
    asking = threading.Thread(
        target=lambda: answers.append(server.ask("/v1/kitchen/suggest", long))
    )
    asking.start()
    time.sleep(0.2)
    assert server.end(signal.SIGTERM) == -signal.SIGTERM
    asking.join(30)
    assert len(answers[0]["results"]) == 200  # what ran was finished
    with pytest.raises(urllib.error.URLError):
        server.ask("/livez")
    assert not any("Traceback" in line for line in server.lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["MODEL"], "in use by another server"),
        (["MODEL", "--no-learn", "--port", "PORT"], "stop the process that uses it"),
        (["MODEL", "--no-learn", "--host", "nowhere.invalid"], "check --host"),
        (["NOTHING"], "there is no folder"),
        (["MODEL/manifest.json"], "manifest.json is a file"),
        (["projects=MODEL"], "cannot be the name of a model"),
        (["MODEL", "--max-body", "much"], "not a size"),
        (["MODEL", "MODEL", "--validation", "x"], "one model only"),
        (["MODEL", "--rollback", "--to", "nonsense"], "in use by another server"),
    ],
    ids=" ".join,
)
def test_mistakes_are_told(command, model, tmp_path, arguments, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        state, port = State(tmp_path / "kitchen.serve"), taken.getsockname()[1]
        places = {"MODEL": model, "NOTHING": tmp_path / "nothing", "PORT": port}
        for name, place in places.items():
            arguments = [one.replace(name, str(place)) for one in arguments]
        code, said = command(*arguments)
        state.close()
    assert code == 1
    assert words in said
    assert "Traceback" not in said


def test_names_of_the_machine_count_only_where_others_reach_it():
    assert _hosts("127.0.0.1", []) == ("localhost", "127.0.0.1")
    named = _hosts("0.0.0.0", ["Tags.Example.org."])
    assert named == ("localhost", "0.0.0.0", socket.gethostname().lower(), "tags.example.org")


@pytest.fixture
def port(in_a_thread, saved, monkeypatch):
    monkeypatch.setattr(connections, "_PATIENCE", 0.3)
    return in_a_thread(saved, careful=True)


def answer_to(port, *sent, pause=0.0, timeout=10):
    """What the server sends until it closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        try:
            for part in sent:
                connection.sendall(part)
                time.sleep(pause)
            while part := connection.recv(65536):
                received += part
        except ConnectionError:
            pass
    return received


GET = b"GET /livez HTTP/1.1\r\nHost: a\r\n"


def test_heads_without_end_are_refused(port):
    assert b"400" in answer_to(port, GET + b"X: " + b"a" * 200_000)
    assert b"400" in answer_to(port, b"GET /" + b"a" * 200_000)


def test_fields_after_a_body_are_not_kept(port, monkeypatch):
    """They come without end as well, and nothing else would count them."""
    kept = []
    monkeypatch.setattr(
        connections.HttpToolsProtocol, "on_header", lambda _, name, value: kept.append(name)
    )
    chunked = GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"After: a\r\n" * 1000 + b"\r\n"
    assert b"200 OK" in answer_to(port, chunked + GET + b"Connection: close\r\n\r\n")
    assert kept == [b"Host", b"Transfer-Encoding", b"Host", b"Connection"]


def test_the_rest_of_a_refused_request_is_not_waited_for(port):
    """Or anyone could keep connections for ever, without a key."""
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n"
    for head in (b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n",
                 b"POST /v1/kitchen/suggest HTTP/1.1\r\nHost: evil.example\r\n"):  # fmt: skip
        assert answer_to(port, head + endless).startswith(b"HTTP/1.1 4")
    whole = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
    last = GET + b"Connection: close\r\n\r\n"
    assert answer_to(port, whole + whole + last).count(b"HTTP/1.1 ") == 3


def test_silence_is_not_waited_for(port):
    assert answer_to(port) == b""
    assert answer_to(port, GET[:10]) == b""
    slowly = [bytes([byte]) for byte in GET[:10]]
    assert answer_to(port, *slowly, pause=0.05) == b""


def test_a_connection_may_be_used_again_after_a_while(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(GET + b"\r\n")
            received = b""
            while b"alive" not in received:  # head and body may come one after the other
                part = connection.recv(65536)
                assert part
                received += part
            assert b"200 OK" in received
            time.sleep(0.4)  # longer than a head may take


def test_random_bytes_do_not_stop_it(port):
    draw = random.Random(0)
    for _ in range(60):
        head = draw.choice([b"", b"POST /v1/kitchen/suggest HTTP/1.1\r\nHost: localhost\r\n",
                            b"POST /v1/kitchen/suggest HTTP/1.1\r\nContent-Length: 50\r\n\r\n",
                            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"])  # fmt: skip
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head + draw.randbytes(draw.randrange(1, 500)))
    assert b"200 OK" in answer_to(port, GET + b"Connection: close\r\n\r\n")
