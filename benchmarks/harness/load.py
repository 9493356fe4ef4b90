"""A load generator for HTTP/1.1: so many clients, each with a connection that it keeps, no pauses.

    python -m harness.load '{"port": 8000, "path": "/v1/m/suggest", "bodies": "bodies.jsonl", ...}'

Every client sends a request, waits for the whole answer, and sends the next. Times are from the
first byte sent to the last byte received. Only addresses of this machine are asked.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

HOST = "127.0.0.1"


@dataclass
class Asked:
    """What to send, until when, and what came back."""

    requests: "cycle[bytes]"
    end: float
    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)


class Client(asyncio.Protocol):
    """A connection that asks again and again."""

    def __init__(self, asked: Asked, done: "asyncio.Future[None]") -> None:
        self.asked, self.done = asked, done
        self.received, self.wanted = bytearray(), -1

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.started = time.perf_counter()
        if self.started >= self.asked.end:
            self.finish()
            return
        self.transport.write(next(self.asked.requests))

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.wanted < 0:
            head = self.received.find(b"\r\n\r\n")
            if head < 0:
                return
            lines = bytes(self.received[:head]).lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            self.wanted = head + 4 + int(length.split(b":")[1])
        if len(self.received) >= self.wanted:
            self.asked.milliseconds.append(1e3 * (time.perf_counter() - self.started))
            self.asked.statuses[int(self.received[9:12])] += 1
            del self.received[: self.wanted]
            self.wanted = -1
            self.ask()

    def connection_lost(self, problem: Exception | None) -> None:
        if not self.done.done():
            self.asked.broken[type(problem).__name__] += 1
            self.finish()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self.transport.close()


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """What so many clients see in so many seconds."""
    loop = asyncio.get_running_loop()
    with open(job["bodies"], "rb") as file:
        requests = [request(job, line.rstrip(b"\n")) for line in file]
    asked = Asked(cycle(requests), time.perf_counter() + job["seconds"])
    waits = []
    start = time.perf_counter()
    for _ in range(job["clients"]):
        done = loop.create_future()
        waits.append(done)
        await loop.create_connection(lambda done=done: Client(asked, done), HOST, job["port"])
    await asyncio.wait(waits, timeout=job["seconds"] + 60)
    wall = time.perf_counter() - start
    return summary(asked, wall, sum(not done.done() for done in waits))


def request(job: dict[str, Any], body: bytes) -> bytes:
    kind = job.get("type", "application/json")
    head = f"POST {job['path']} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {kind}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def summary(asked: Asked, wall: float, stuck: int) -> dict[str, Any]:
    times = asked.milliseconds or [float("nan")]
    p50, p99 = np.percentile(times, [50, 99])
    return {
        "per_second": round(asked.statuses[200] / wall, 1),
        "p50": round(float(p50), 2),
        "p99": round(float(p99), 2),
        "worst": round(max(times), 1),
        "statuses": {str(status): n for status, n in sorted(asked.statuses.items())},
        "broken": dict(asked.broken),
        "stuck": stuck,
    }


def main() -> None:
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    print(json.dumps(run(load(json.loads(sys.argv[1])))))


if __name__ == "__main__":
    main()
