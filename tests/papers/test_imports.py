"""Papers and benchmarks are users of the package: they can do what any user can, and no more."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import umpteen

ROOT = Path(__file__).parents[2]
FOLDERS = ("papers", "benchmarks")
# Benchmarks of what the package does inside.
KNOWN = {
    "benchmarks/aggregated.py", "benchmarks/aggregated_baseline.py",
    "benchmarks/aggregated_choices.py", "benchmarks/aggregated_numbers.py",
    "benchmarks/cluster.py", "benchmarks/cluster_memory.py", "benchmarks/cluster_plan.py",
    "benchmarks/cold_start.py",
    "benchmarks/harness/metered.py", "benchmarks/head_codes.py", "benchmarks/heads.py",
    "benchmarks/new_labels.py", "benchmarks/siamese.py", "benchmarks/siamese_speed.py",
    "benchmarks/softmax.py", "benchmarks/softmax_choices.py", "benchmarks/tagger.py",
}  # fmt: skip
NEED_PYTORCH = ("umpteen.collapse", "umpteen.multihead", "umpteen.neural", "umpteen.siamese")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imports(source):
    """What a file imports from the package, as pairs of a module and a name ('' if none)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def is_public(module, name):
    if module.partition(".")[0] != "umpteen":
        return True
    if module == "umpteen":
        return not name or name in umpteen.__all__
    if module.removeprefix("umpteen.") not in umpteen.__all__:
        return False
    if not name or module == "umpteen.errors":
        return True
    return name in import_module(module).__all__


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names_are_imported(path):
    place = path.relative_to(ROOT).as_posix()
    if place in KNOWN:
        return
    found = set(imports(path.read_text("utf-8")))
    if any(module in NEED_PYTORCH for module, _ in found):
        pytest.importorskip("torch", reason="needs umpteen[neural]")
    private = [f"{module}: {name}" for module, name in found if not is_public(module, name)]
    assert not private, f"{place} imports private names: {private}"


def test_private_names_are_found():
    source = "import umpteen.storage\nfrom umpteen.neural.network import Network"
    assert not any(is_public(*pair) for pair in imports(source))
    assert all(is_public(*pair) for pair in imports("from umpteen import LabelTree, data"))
