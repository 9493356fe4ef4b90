"""The peers' own virtual environment, and what a result must say about where it was made."""

import json
import os
import platform
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.systems import PEERS

BENCHMARKS = Path(__file__).resolve().parents[1]
PEERS_HOME = BENCHMARKS.parent / ".peers"
PEERS_PYTHON = PEERS_HOME / "venv" / "bin" / "python"
CONSTRAINTS = BENCHMARKS / "peers-constraints.txt"
OURS = ("umpteen", "numba", "numpy", "scipy", "scikit-learn")


def make_peers() -> None:
    """Install the peers unless they are there; one that cannot be installed fails in its rows."""
    done = PEERS_HOME / "installed"
    if done.exists() and done.read_text() == CONSTRAINTS.read_text():
        return
    venv.create(PEERS_HOME / "venv", with_pip=True)
    pip = [str(PEERS_PYTHON), "-m", "pip", "install", "--quiet", "-c", str(CONSTRAINTS)]
    codes = [subprocess.run([*pip, package]).returncode for package in PEERS.values()]
    if not any(codes):
        done.write_text(CONSTRAINTS.read_text())


def python_of(library: str) -> str:
    """The interpreter that has `library`."""
    return str(PEERS_PYTHON) if library in PEERS else sys.executable


def variables(threads: int, kernels: Path) -> dict[str, str]:
    """The environment of a worker with `threads` threads and numba's cache in `kernels`."""
    pools = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
    limits = {f"{pool}_NUM_THREADS": str(threads) for pool in pools}
    path = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **limits, "NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": path}


def results_folder(quick: bool) -> Path:
    """Where results go; those of a quick run stay out of the repository."""
    return PEERS_HOME / "quick" if quick else BENCHMARKS / "results"


def machine() -> dict[str, str | int]:
    """What the figures depend on, and nothing that names the machine."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, dict[str, str]]:
    """Of this library and what it stands on, and of the peers and what they stand on."""
    return {"umpteen": _our_versions(), "peers": _peer_versions()}


def _our_versions() -> dict[str, str]:
    found = {}
    for package in OURS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def _peer_versions() -> dict[str, str]:
    if not PEERS_PYTHON.exists():
        return {}
    command = [str(PEERS_PYTHON), "-m", "pip", "list", "--format", "json"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    wanted = {*PEERS.values(), "numpy", "scipy"}
    return {p["name"]: p["version"] for p in json.loads(listed) if p["name"] in wanted}
