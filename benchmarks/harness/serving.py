"""A server in a process of its own, and a client for it."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import umpteen as um

WORDS = {
    "bread": "dough loaf knead crust flour",
    "soup": "broth ladle stock simmer bowl",
    "cheese": "rind curd milk cheddar brie",
    "knives": "blade sharpen steel edge whetstone",
    "coffee": "beans espresso grind filter crema",
    "tea": "leaves oolong kettle steep matcha",
}
_PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")


class Server:
    """`umpteen serve`, or another program that writes its address to stderr, once it is ready."""

    def __init__(
        self,
        *arguments: Any,
        program: list[str] | None = None,
        ready: str = "/readyz",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.ready = ready
        command = program or [sys.executable, "-m", "umpteen", "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)], stderr=subprocess.PIPE, text=True, env=environment
        )
        told = []
        for line in self.process.stderr or []:
            told.append(line)
            if found := _PORT.search(line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError("the server did not start:\n" + "".join(told))
        self.reader = threading.Thread(target=self._drain, daemon=True)
        self.reader.start()
        if not wait_until(self.is_ready, 60):
            raise RuntimeError("the server is not ready after a minute")

    def _drain(self) -> None:
        for _ in self.process.stderr or []:
            pass

    def is_ready(self) -> bool:
        return self.get(self.ready) is not None

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}"))

    def post(self, path: str, body: Any) -> Any:
        """What is answered, or None where nothing is."""
        headers = {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        return self._ask(urllib.request.Request(url, json.dumps(body).encode(), headers))

    def _ask(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ValueError, OSError):
            return None
        except Exception as problem:  # of http.client: the answer was cut off
            if type(problem).__module__ == "http.client":
                return None
            raise

    def megabytes(self) -> float:
        """The memory that the process holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 2**10

    def cpu_seconds(self) -> float:
        """The time that the process has used on all cores."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


def made_up(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts whose labels are plain from their words."""
    draw = random.Random(seed)
    labels = [draw.sample(sorted(WORDS), draw.choice([1, 1, 2])) for _ in range(n)]
    texts = [
        " ".join(word for label in own for word in draw.sample(WORDS[label].split(), 3))
        for own in labels
    ]
    return texts, labels


def small_taggers() -> list[um.Tagger]:
    """Three models of the same labels that answer differently."""
    return [um.Tagger().fit(*made_up(200, seed)) for seed in range(3)]


def corrections(n: int, first: int) -> list[dict[str, Any]]:
    """Texts with labels, some of them new, each with an id of its own."""
    texts, labels = made_up(n, first)
    return [
        {"id": str(first + i), "text": f"{text} {first + i}", "labels": [*own, f"new {first % 7}"]}
        for i, (text, own) in enumerate(zip(texts, labels, strict=True))
    ]
