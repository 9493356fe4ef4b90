"""`import umpteen` is light: command lines and services start at once, without optional parts."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import umpteen
from umpteen import extras

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
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


def test_what_is_missing_is_named_with_a_command_for_installs_and_clones():
    with pytest.raises(umpteen.errors.MissingExtraError) as error:
        extras.require("a_module_that_nobody_has", "skos")
    assert str(error.value) == (
        "this needs 'a_module_that_nobody_has', which is not installed: "
        "pip install 'umpteen[skos]' (in a clone: pip install -c constraints.txt '.[skos]')"
    )


def test_parts_with_pytorch_are_advised_to_take_the_small_one():
    """Otherwise, pip downloads gigabytes of CUDA to machines that have no GPU."""
    parts = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    for part in set(parts) - {"dev"}:
        has_pytorch = any(each.startswith(("torch", "umpteen[neural")) for each in parts[part])
        assert ("for CPUs" in extras.how_to_install(part)) == has_pytorch, part


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parent.rglob("test_*.py")), ids=lambda path: path.name
)
def test_tests_of_optional_parts_skip_where_they_are_missing(path):
    """A base install runs the suite as well, and an import error would stop it."""
    lines = path.read_text().splitlines()
    imports = [i for i, line in enumerate(lines) if line.startswith("import torch")]
    skips = [i for i, line in enumerate(lines) if line.startswith('pytest.importorskip("torch"')]
    assert not imports or (skips and skips[0] < imports[0])
