"""Hand arguments, open files and signals to the server; end as the process that it forks ends."""

import array
import json
import os
import signal
import socket
import sys
import time

PATIENCE = 120  # seconds, for imports on a busy machine
NO_SERVER = 70
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def open_files() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:  # that of listdir itself
            continue
        found.append(int(name))
    return sorted(found)


def connected(address: str) -> socket.socket:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
        except OSError:  # the server has not finished its imports
            connection.close()
            time.sleep(0.05)
        else:
            return connection
    sys.stderr.write(f"the server of {sys.argv[0]} does not answer\n")
    sys.exit(NO_SERVER)


def received(connection: socket.socket) -> int:
    """Return a number from the server; end if it was killed, not as if all were well."""
    try:
        content = connection.recv(4)
    except ConnectionError:
        content = b""
    if not content:
        os._exit(NO_SERVER)
    return int.from_bytes(content, "big", signed=True)


def main() -> None:
    files = open_files()
    connection = connected(sys.argv[1])
    asked = {
        "arguments": sys.argv[2:],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "files": files,
        "ignores_interrupts": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    }
    content = json.dumps(asked).encode("utf-8", "surrogateescape")
    header = len(content).to_bytes(4, "big")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    connection.sendmsg([header], rights)
    connection.sendall(content)
    child = received(connection)
    for number in FORWARDED:
        if number != signal.SIGINT or not asked["ignores_interrupts"]:
            signal.signal(number, lambda number, _: os.kill(child, number))
    for number in files:
        os.close(number)  # readers of a pipe wait until all who may write have closed it
    code = received(connection)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
