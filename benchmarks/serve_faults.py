"""What a server does when it is killed, flooded, or asked nonsense.

    python benchmarks/serve_faults.py
    python benchmarks/serve_faults.py --kills 20 --seconds 10 --idle 1000
    python benchmarks/serve_faults.py --parts floods

A small model is served by `umpteen serve`, in a process of its own on this machine.

Kills: while clients ask and teach, the model learns, and its folder is replaced, the process gets
SIGKILL at a random moment and is started again. Lost is a correction that was acknowledged and is
not in the journal. Mixed is an answer that differs from what `umpteen.load` of the version that it
names answers. Floods: random bytes, bodies without end, clients that send a byte at a time, and
connections on which nothing is sent; meanwhile one client asks as usual. Memory is that of the
process before, at its most, and after. A part that is measured again replaces its figures only.
"""

import argparse
import json
import os
import random
import resource
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.environment import machine, results_folder, versions
from harness.report import made_by, table_lines, write_results
from harness.serving import Server, corrections, small_taggers, wait_until
from rich.console import Console

import umpteen as um

TEXTS = ["dough loaf flour", "kettle of oolong leaves", "sharpen the blade of steel", "beans"]
POST = b"POST /v1/kitchen/suggest HTTP/1.1\r\nHost: localhost\r\n"
LOG = Console(stderr=True)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60, help="of each flood")
    parser.add_argument("--idle", type=int, default=10_000, help="connections without a word")
    parser.add_argument(
        "--parts", nargs="+", choices=("kills", "floods"), default=["kills", "floods"]
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    allow_connections(options.idle)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "kitchen"
        taggers = small_taggers()
        taggers[0].save(folder)
        if "kills" in options.parts:
            for killed in Kills(folder, taggers, random.Random(options.seed)).run(options.kills):
                note(options, kills=killed)
            taggers[0].save(folder)
        if "floods" in options.parts:
            note(options, floods=[flood(name, folder, options) for name in FLOODS])
    Console().print((results_file(options).with_suffix(".md")).read_text(), markup=False)


def whole(arguments: list[str]) -> list[str]:
    return [one for one in arguments if one not in ("--parts", "kills", "floods")]


def results_file(options: argparse.Namespace) -> Path:
    is_quick = options.kills < 200 or options.seconds < 60 or options.idle < 10_000
    return results_folder(is_quick) / "serve_faults.json"


def note(options: argparse.Namespace, **measured: Any) -> None:
    """Write a part of the results, beside those of earlier runs."""
    file = results_file(options)
    results: Row = {"kills": {}, "floods": []} | (
        json.loads(file.read_text()) if file.exists() else {}
    )
    results.pop("note", None)  # about the earlier figures
    results |= measured | {
        "command": shlex.join(["python", "benchmarks/serve_faults.py", *whole(sys.argv[1:])]),
        "machine": machine(), "versions": versions(),
    }  # fmt: skip
    write_results(results, file, page(results))


class Kills:
    """Clients of a server that is killed again and again, and what they saw."""

    def __init__(self, folder: Path, taggers: list[um.Tagger], draw: random.Random) -> None:
        self.folder, self.taggers, self.draw = folder, taggers, draw
        self.acknowledged: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.expected: dict[str, Any] = {}  # answers of each version
        self.number = 0

    def run(self, n_kills: int) -> Iterator[Row]:
        """Yield what was seen so far, after each kill and at the end."""
        state = self.folder.parent / "kitchen.serve"
        for kill in range(n_kills):
            server = Server(self.folder, "--learn-after", "5", "--keep", "100000")
            stop = threading.Event()
            clients = [
                threading.Thread(target=client, args=(server, stop))
                for client in (self.teach, self.ask, self.ask, self.replace)
            ]
            for client in clients:
                client.start()
            time.sleep(self.draw.uniform(0.2, 10.0))
            server.kill()
            stop.set()
            for client in clients:
                client.join()
            self.counts["kills"] += 1
            self.check(state)
            LOG.print(f"{kill + 1} kills: {dict(self.counts)}")
            yield dict(self.counts)
        self.counts["versions"] = len(list((state / "versions").iterdir()))
        self.counts["left to learn"] = self.learn_the_rest()
        yield dict(self.counts)

    def learn_the_rest(self) -> int:
        """What the last server leaves of the corrections, if it has five minutes."""
        server = Server(self.folder, "--learn-after", "1")

        def pending() -> int:
            return int(
                (server.get("/v1/kitchen") or {"learning": {"pending": -1}})["learning"]["pending"]
            )

        wait_until(lambda: pending() == 0, 300)
        left = pending()
        server.stop()
        return left

    def teach(self, server: Server, stop: threading.Event) -> None:
        while not stop.is_set():
            items = corrections(self.draw.randrange(1, 4), self.number)
            self.number += len(items)
            if server.post("/v1/kitchen/learn", {"items": items}) is not None:
                self.acknowledged.update(item["id"] for item in items)
            time.sleep(0.05)

    def ask(self, server: Server, stop: threading.Event) -> None:
        while not stop.is_set():
            found = server.post("/v1/kitchen/suggest", {"texts": TEXTS, "k": 5})
            if found is not None:
                self.counts["answers"] += 1
                self.counts["mixed"] += not self.is_right(found)

    def is_right(self, found: Row) -> bool:
        """Whether an answer is that of the version which it names, loaded from disk."""
        version = found["version"]
        if version not in self.expected:
            place = self.folder.parent / "kitchen.serve" / "versions" / version / "model"
            self.expected[version] = um.load(place).predict(TEXTS, k=5)
        answered = [
            [(one["label"], one["probability"]) for one in result["labels"]]
            for result in found["results"]
        ]
        return bool(answered == self.expected[version])

    def replace(self, server: Server, stop: threading.Event) -> None:
        """Someone trains the model anew, now and then."""
        while not stop.wait(self.draw.uniform(1.0, 4.0)):
            self.draw.choice(self.taggers).save(self.folder)
            found = server.post("/v1/kitchen/reload", {})
            self.counts["reloads"] += found is not None and found["changed"]

    def check(self, state: Path) -> None:
        recorded: set[str] = set()
        for path in (state / "journal").glob("*.jsonl"):
            lines = path.read_bytes().split(b"\n")
            self.counts["torn lines"] += lines[-1] != b""
            recorded.update(json.loads(line)["id"] for line in lines[:-1])
        self.counts["acknowledged"] = len(self.acknowledged)
        self.counts["lost"] = len(self.acknowledged - recorded)


def flood(name: str, folder: Path, options: argparse.Namespace) -> Row:
    """One kind of nonsense, for a while, and how an ordinary client fares meanwhile."""
    LOG.print(name)
    shutil.rmtree(folder.parent / "kitchen.serve", ignore_errors=True)
    server = Server(folder)
    server.post("/v1/kitchen/suggest", {"texts": TEXTS})
    before, peak, stop = server.megabytes(), [0.0], threading.Event()
    answered: Counter[str] = Counter()
    worst = [0.0]

    def ask() -> None:
        while not stop.is_set():
            start = time.perf_counter()
            found = server.post("/v1/kitchen/suggest", {"texts": TEXTS})
            answered["answered" if found is not None else "refused"] += 1
            worst[0] = max(worst[0], time.perf_counter() - start)
            peak[0] = max(peak[0], server.megabytes())
            time.sleep(0.02)

    client = threading.Thread(target=ask)
    client.start()
    sent = FLOODS[name](server.port, options)
    stop.set()
    client.join()
    alive = wait_until(lambda: server.post("/v1/kitchen/suggest", {"texts": TEXTS}) is not None, 30)
    after = server.megabytes()
    server.stop()
    return {
        "flood": name, "sent": sent, **answered, "worst_ms": round(1e3 * worst[0]), "alive": alive,
        "before_mb": before, "peak_mb": peak[0], "after_mb": after,
    }  # fmt: skip


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def random_bytes(port: int, options: argparse.Namespace) -> str:
    draw, end, n = random.Random(options.seed), time.monotonic() + options.seconds, 0
    heads = [b"", POST + b"Content-Length: 99\r\n\r\n"]
    while time.monotonic() < end:
        try:
            with connect(port) as connection:
                connection.sendall(draw.choice(heads) + draw.randbytes(draw.randrange(1, 3000)))
            n += 1
        except OSError:
            continue
    return f"{n:,} connections"


def endless_bodies(port: int, options: argparse.Namespace) -> str:
    """Twenty clients at a time, each with a body that does not end."""
    end, total = time.monotonic() + options.seconds, [0]
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"

    def send() -> None:
        while time.monotonic() < end:
            try:
                with connect(port) as connection:
                    connection.sendall(head)
                    while time.monotonic() < end:
                        connection.sendall(chunk)
                        total[0] += len(chunk)
            except OSError:
                continue

    in_threads(send, 20)
    return f"{total[0] / 1e6:,.0f} MB"


def slow_clients(port: int, options: argparse.Namespace) -> str:
    """Two hundred clients that send a byte each second, and never a whole request."""
    end = time.monotonic() + options.seconds
    request = POST + b"Content-Length: 5000\r\n\r\n{"
    n = [0]

    def send() -> None:
        while time.monotonic() < end:
            try:
                with connect(port) as connection:
                    for byte in request + b"a" * 5000:
                        if time.monotonic() > end:
                            return
                        connection.sendall(bytes([byte]))
                        n[0] += 1
                        time.sleep(1)
            except OSError:
                continue

    in_threads(send, 200)
    return f"{n[0]:,} bytes"


def idle_connections(port: int, options: argparse.Namespace) -> str:
    """All at once, and kept until the server closes them."""
    connections = []
    try:
        for _ in range(options.idle):
            connections.append(connect(port))
        time.sleep(min(options.seconds, 15))
        return f"{len(connections):,} connections"
    finally:
        for connection in connections:
            connection.close()


FLOODS = {
    "random bytes": random_bytes,
    "bodies without end": endless_bodies,
    "slow clients": slow_clients,
    "idle connections": idle_connections,
}


def in_threads(function: Any, n: int) -> None:
    threads = [threading.Thread(target=function) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def allow_connections(n: int) -> None:
    """Raise the limit of open files; the server raises its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n + 1000
    if hard not in (resource.RLIM_INFINITY,) and hard < wanted:
        sys.exit(f"{n:,} connections need {wanted:,} open files, and {hard:,} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def page(results: Row) -> str:
    killed = results["kills"]
    counted = ["kills", "reloads", "versions", "answers", "mixed", "acknowledged", "lost",
               "left to learn"]  # fmt: skip
    kills = [counted, [f"{killed[one]:,}" if one in killed else "not known" for one in counted]]
    floods = [["flood", "sent", "ordinary answers", "refused", "slowest, ms", "alive", "MB before",
               "at most", "after"]]  # fmt: skip
    for row in results["floods"]:
        told = [f"{row.get(key, 0):,}" for key in ("answered", "refused", "worst_ms")]
        memory = [f"{row[key]:,.0f}" for key in ("before_mb", "peak_mb", "after_mb")]
        floods.append([row["flood"], row["sent"], *told, "yes" if row["alive"] else "no", *memory])
    told = f"{made_by(results)} {results.get('note', '')}".strip()
    parts = ["# Faults of the server", told, table_lines(kills), table_lines(floods)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
