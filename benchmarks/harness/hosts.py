"""Machines that are namespaces of this one: each has its own network, processes, name and memory.

They are joined by a bridge that leads nowhere else. It needs Linux, root and iproute2. All ends
with the block: processes, networks and mounts.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

PREFIX = "umpt"  # of all interfaces and namespaces; names have at most 15 letters
NETWORK = "10.213.77"
ROOM = "1G"  # of each machine's /dev/shm
PRIVATE = ("/dev/shm", "/tmp/ray")

START = """
set -e
hostname {name}
mount --bind {names}/hosts /etc/hosts
mount --bind {names}/resolv.conf /etc/resolv.conf
for folder in {folders}; do mount -t tmpfs -o size={room},mode=1777 tmpfs $folder; done
echo started
exec sleep 3600
"""


class Machine:
    """A machine that is on until `power_off`."""

    def __init__(self, name: str, number: int, names: Path) -> None:
        self.name, self.address = name, f"{NETWORK}.{number}"
        self._space, self._ends = f"{PREFIX}-{number}", (f"{PREFIX}v{number}", f"{PREFIX}w{number}")
        outer, inner = self._ends
        ip("netns", "add", self._space)
        ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", self._space)
        ip("link", "set", outer, "master", f"{PREFIX}b", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"{self.address}/24", "dev", inner),
            ("link", "set", inner, "up"),
            ("route", "add", "default", "via", f"{NETWORK}.254"),  # nobody is there
        ):
            ip("-n", self._space, *words)
        folders = " ".join(PRIVATE)
        script = START.format(name=name, names=names, folders=folders, room=ROOM)
        self._init = subprocess.Popen(
            ["ip", "netns", "exec", self._space, "unshare", "--pid", "--fork", "--kill-child",
             "--mount", "--mount-proc", "--uts", "--ipc", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._init.stdout is not None
        if self._init.stdout.readline() != "started\n":
            raise RuntimeError(f"{name} did not start")
        children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children")
        self._pid = int(children.read_text())  # the first process of the machine

    def start(self, *words: str, **more: Any) -> "subprocess.Popen[str]":
        """Start a command on the machine."""
        prefix = ["nsenter", "--target", str(self._pid), "--net", "--pid", "--mount", "--uts"]
        return subprocess.Popen(
            [*prefix, "--ipc", "--", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, **more,
        )  # fmt: skip

    def run(self, *words: str, seconds: float = 240) -> str:
        """Run a command on the machine; return what it prints, or raise it if the command fails."""
        process = self.start(*words)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise RuntimeError(f"{self.name}: {' '.join(words)} took too long:\n{output}") from None
        if process.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(words)} failed:\n{output}")
        return output

    def power_off(self) -> None:
        """End all processes of the machine at once, and cut its cable."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._init.wait(30)
        for words in (("link", "del", self._ends[0]), ("netns", "del", self._space)):
            with suppress(RuntimeError):
                ip(*words)


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def why_not() -> str | None:
    """Say what is missing here, if anything."""
    missing = [name for name in ("ip", "unshare", "nsenter") if which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}: install iproute2 and util-linux"
    if os.geteuid() != 0:
        return "needs root, for namespaces"
    return None


@contextmanager
def machines(names: list[str]) -> Iterator[list[Machine]]:
    """Yield machines that reach each other by their names; they are gone after the block."""
    if reason := why_not():
        raise SystemExit(reason)
    for folder in PRIVATE:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        lines = [f"{NETWORK}.{i} {name}" for i, name in enumerate(names, 1)]
        (Path(place) / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        # Other names are refused at once; otherwise gRPC waits for an answer from the network.
        (Path(place) / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        Path(place).chmod(0o755)
        running: list[Machine] = []
        ip("link", "add", f"{PREFIX}b", "type", "bridge")
        try:
            ip("link", "set", f"{PREFIX}b", "up")
            for i, name in enumerate(names, 1):
                running.append(Machine(name, i, Path(place)))
            yield running
        finally:
            for machine in running:
                machine.power_off()
            ip("link", "del", f"{PREFIX}b")


def wait_until(is_so: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(f"nothing happened for {seconds:g} seconds")
        time.sleep(0.1)
