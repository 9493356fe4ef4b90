"""Install programs that tests run beside umpteen: `python tests/serve/clients/install.py`.

They are real clients of the server, MLflow, Transformers, and what runs notebooks. Each gets a
folder of its own in the cache, to be put on `PYTHONPATH`. It has what that program needs beside the
packages of this environment, so an install takes seconds, once. `make test` does this.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("annif", "label-studio-sdk", "mlflow", "notebook", "transformers")


def folder(name: str) -> Path:
    """Return where a program is, or will be: another place for other versions."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wanted = _requirements(name).read_bytes() + platform.python_version().encode()
    return cache / "umpteen" / "clients" / f"{name}-{hashlib.sha256(wanted).hexdigest()[:12]}"


def install(name: str) -> str:
    """Install a program, unless it is there; return a sentence about it."""
    place = folder(name)
    if not place.exists():
        part = place.with_name(f".{place.name}.{os.getpid()}")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
             "--no-deps", "--only-binary", ":all:", "--target", str(part),
             "-r", str(_requirements(name))],
            capture_output=True, text=True, timeout=600, env=_without_constraints(),
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(part, ignore_errors=True)
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            return f"Tests with {name} are skipped, as it cannot be installed: {reason}"
        os.replace(part, place)
    return f"Tests with {name} run: it is installed."


def make_importable(name: str) -> None:
    """Let this process import a program, if it is installed; what .venv has comes first."""
    if folder(name).exists() and str(folder(name)) not in sys.path:
        sys.path.append(str(folder(name)))


def _requirements(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.txt")


def _without_constraints() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}


if __name__ == "__main__":
    for client in NAMES:
        print(install(client), flush=True)
