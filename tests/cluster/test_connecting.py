"""Clusters that cannot be used: an answer at once, and what to do."""

import socket
import subprocess
import sys

import pytest

import umpteen as um
from umpteen.cluster import connecting
from umpteen.errors import ClusterConnectionError, ClusterMemoryError


@pytest.mark.parametrize("address", ["nowhere", "ray://", "host:many", ""])
def test_an_address_that_is_none_is_refused(address):
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    with pytest.raises(ClusterConnectionError, match="expected"), um.cluster.ray(address):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_that_does_not_answer_is_refused_at_once(scheme):
    """Ray itself tries for minutes."""
    pytest.importorskip("ray", reason="needs the extra `cluster`")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no one listens
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(ClusterConnectionError, match="nothing answers"),
            um.cluster.ray(address),
        ):
            pass


def test_little_shared_memory_is_refused(monkeypatch):
    """Ray would put the object store on the disk, where everything takes ten times as long."""
    monkeypatch.setattr(connecting, "_LEAST_STORE", 10**18)
    if connecting._SHARED_MEMORY.is_dir():
        with pytest.raises(ClusterMemoryError, match="--shm-size"):
            connecting._store_bytes()


def test_without_ray_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import umpteen as um\n"
        "try:\n    um.cluster.ray('local').__enter__()\n"
        "except um.errors.MissingExtraError as error:\n    print(error)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "umpteen[cluster]" in output.stdout
