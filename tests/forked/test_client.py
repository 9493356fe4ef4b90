"""A command whose server is gone has failed: no test may take that for success."""

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.forked import COMMAND, REAL


@pytest.mark.skipif(COMMAND == REAL, reason="nothing is forked here")
def test_a_server_that_ends_is_a_failure():
    with (
        tempfile.TemporaryDirectory(prefix="umpteen-") as place,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.bind(f"{place}/socket")
        server.listen(1)
        command = [sys.executable, str(Path(__file__).with_name("client.py")), f"{place}/socket"]
        client = subprocess.Popen([*command, "--version"])
        connection, _ = server.accept()
        size = int.from_bytes(connection.recv(4), "big")
        connection.recv(size, socket.MSG_WAITALL)
        connection.close()
        assert client.wait(60) == 70


@pytest.mark.skipif(COMMAND == REAL, reason="nothing is forked here")
def test_the_server_is_silent():
    """Python 3.12 warns of every fork of a process with threads."""
    code = "import subprocess, tests.forked as f; subprocess.run([*f.COMMAND, '--version'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("umpteen ")
    assert done.stderr == ""
