"""Hand arguments, open files and signals to the server; end as the process that it forks ends."""

import array
import json
import os
import signal
import socket
import sys
import time

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
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
        except OSError:  # the server has not finished its imports
            connection.close()
            time.sleep(0.05)
        else:
            return connection


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
    child = int.from_bytes(connection.recv(4), "big")
    for number in FORWARDED:
        if number != signal.SIGINT or not asked["ignores_interrupts"]:
            signal.signal(number, lambda number, _: os.kill(child, number))
    for number in files:
        os.close(number)  # readers of a pipe wait until all who may write have closed it
    code = int.from_bytes(connection.recv(4), "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
