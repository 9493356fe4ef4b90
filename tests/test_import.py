"""`import umpteen` is light: command lines and services start at once, without optional parts."""

import subprocess
import sys
from pathlib import Path

import pytest

import umpteen

HEAVY = ("matplotlib", "numba", "numpy", "scipy", "sklearn", "torch")


def test_import_brings_nothing_heavy():
    code = f"import sys, umpteen; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("name", umpteen.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(umpteen)
    try:
        assert getattr(umpteen, name) is not None
    except umpteen.errors.MissingExtraError as missing:
        pytest.skip(str(missing))


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="no attribute 'LabelThree'"):
        umpteen.LabelThree  # noqa: B018


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parent.rglob("test_*.py")), ids=lambda path: path.name
)
def test_tests_of_optional_parts_skip_where_they_are_missing(path):
    """A base install runs the suite as well, and an import error would stop it."""
    lines = path.read_text().splitlines()
    imports = [i for i, line in enumerate(lines) if line.startswith("import torch")]
    skips = [i for i, line in enumerate(lines) if line.startswith('pytest.importorskip("torch"')]
    assert not imports or (skips and skips[0] < imports[0])
