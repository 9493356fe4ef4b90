"""Import everything, then fork a process for each client, until killed."""

import array
import fcntl
import json
import os
import select
import signal
import socket
import sys
import warnings

import typer._click.decorators  # noqa: F401
from numba.core.registry import cpu_target

import umpteen.cli.app
import umpteen.demo
import umpteen.ensemble
import umpteen.report  # noqa: F401
from umpteen.cli import main

MOST_FILES = 64


def received(connection: socket.socket) -> tuple[dict, list[int]]:
    rights = array.array("i")
    header, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(MOST_FILES * 4))
    for _, _, data in ancillary:
        rights.frombytes(data)
    content = b""
    while len(content) < int.from_bytes(header, "big"):
        content += connection.recv(1 << 16)
    return json.loads(content.decode("utf-8", "surrogateescape")), list(rights)


def become(asked: dict, rights: list[int]) -> None:
    """Take over the client's files, folder, environment and arguments."""
    above = max([*asked["files"], *map(int, os.listdir("/proc/self/fd"))]) + 1
    moved = [fcntl.fcntl(right, fcntl.F_DUPFD, above) for right in rights]
    os.closerange(0, above)
    for number, right in zip(asked["files"], moved, strict=True):
        os.dup2(right, number)
        os.close(right)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["umpteen", *asked["arguments"]]
    handler = signal.SIG_IGN if asked["ignores_interrupts"] else signal.default_int_handler
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.stdin = sys.__stdin__ = _stream(0, sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, sys.stderr)


def _stream(number: int, before):
    """Open a standard stream as Python does at its start; None if it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    buffering = 1 if number == 2 or os.isatty(number) else -1
    mode = "r" if number == 0 else "w"
    encoding, errors = before.encoding, before.errors
    return open(number, mode, buffering, encoding=encoding, errors=errors, closefd=False)


def serve(listening: socket.socket) -> bool:
    """Fork a process for each client; return in each of them, only."""
    clients: dict[int, socket.socket] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready = select.select([listening, woken, *clients.values()], [], [])[0]
        if woken in ready:
            os.read(woken, 1024)
            report_ended(clients)
        for child, client in list(clients.items()):
            if client in ready and client.recv(1) == b"":  # the client was killed
                os.kill(child, signal.SIGKILL)
                clients[child].close()
                del clients[child]
        if listening in ready:
            client, _ = listening.accept()
            asked, rights = received(client)
            child = forked()
            if child == 0:
                signal.set_wakeup_fd(-1)
                become(asked, rights)
                return True
            for right in rights:
                os.close(right)
            client.sendall(child.to_bytes(4, "big"))
            clients[child] = client


def forked() -> int:
    """Fork; BLAS and jemalloc, whose threads Python 3.12 warns of, are ready for that."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return os.fork()


def report_ended(clients: dict[int, socket.socket]) -> None:
    while clients:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        client = clients.pop(child, None)
        if client is not None:
            code = os.waitstatus_to_exitcode(status)
            client.sendall(code.to_bytes(4, "big", signed=True))
            client.close()


cpu_target.target_context.refresh()  # half a second of the first kernel in a process
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen(64)
serve(listening)
main()
