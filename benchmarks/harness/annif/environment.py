"""Annif in an environment of its own."""

import subprocess
import venv

from harness.environment import BENCHMARKS, PEERS_HOME

HOME = PEERS_HOME / "annif"
ANNIF = HOME / "bin" / "python"
CONSTRAINTS = BENCHMARKS / "annif-constraints.txt"


def make_annif() -> None:
    """Install Annif unless it is there, and let it import the harness, but not this script."""
    done = HOME / "installed"
    if done.exists() and done.read_text() == CONSTRAINTS.read_text():
        return
    venv.create(HOME, with_pip=True)
    pip = [str(ANNIF), "-m", "pip", "install", "--quiet", "-c", str(CONSTRAINTS)]
    subprocess.run([*pip, "annif[omikuji]"], check=True)
    # a path file is searched after installed packages, so `annif` is not this script
    next(HOME.glob("lib/*/site-packages")).joinpath("harness.pth").write_text(f"{BENCHMARKS}\n")
    done.write_text(CONSTRAINTS.read_text())
