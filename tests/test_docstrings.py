"""Public docstrings are whole sentences in the field's own words; so are names."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "umpteen"
VERBS = {
    "Add", "Allow", "Alternate", "Answer", "Append", "Apply", "Ascend", "Assign", "Average",
    "Bring", "Build", "Check", "Choose", "Close", "Collect", "Compare", "Compute", "Continue",
    "Convert", "Count", "Cut", "Describe", "Draw", "Estimate", "Evaluate", "Exit", "Explain",
    "Fill", "Find", "Fit", "Forget", "Give", "Go", "Group", "Grow", "Halve", "Hold", "Import",
    "Join", "Keep", "Learn", "Leave", "Let", "Link", "Load", "Lock", "Lower", "Make", "Minimise",
    "Move", "Number", "Offer", "Open", "Pass", "Permute", "Predict", "Prepare", "Print", "Push",
    "Put", "Raise", "Read", "Redirect", "Refuse", "Remember", "Remove", "Reorder", "Replace",
    "Return", "Run", "Save", "Scale", "Score", "Search", "Send", "Serve", "Set", "Show", "Sort",
    "Step", "Stop", "Store", "Take", "Teach", "Tell", "Train", "Turn", "Unlock", "Update", "Use",
    "Wait", "Warn", "Write", "Yield",
}  # fmt: skip
WORDS = re.compile(
    r"\b(strange|judg(e|ed|es|ing)|put aside|held[ -]out|(runs?|pairs) of (two )?words|at rest)\b",
    re.I,
)
NAMES = {
    "at_rest", "beside", "choosing", "courses", "draws", "held_out", "is_strange", "judge",
    "judged", "judging", "known", "parts", "plane", "signs", "starting", "way", "ways",
}  # fmt: skip

each_module = pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)


def public(body):
    """The public classes and functions, those inside of public classes included."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def decorators(node):
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def documented(path):
    """Public nodes and the first paragraph of their docstrings, without overloads."""
    for node in public(ast.parse(path.read_text("utf-8")).body):
        if "overload" not in decorators(node) and ast.get_docstring(node):  # or it is inherited
            yield node, " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


@each_module
def test_docstrings_open_with_a_sentence(path):
    for node, opening in documented(path):
        assert opening.endswith((".", ":")), f"{node.name}: {opening!r} is no whole sentence"
        assert not WORDS.search(opening), f"{node.name}: {opening!r} has a word of our own"
        is_function = isinstance(node, ast.FunctionDef)
        if is_function and not any("property" in one for one in decorators(node)):
            verb = opening.split()[0].rstrip(",")
            assert verb in VERBS, f"{node.name}: {opening!r} does not open with a verb in VERBS"


@each_module
def test_names_are_those_of_the_field(path):
    tree = ast.parse(path.read_text("utf-8"))
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    named |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert not named & NAMES, "use the words of docs/glossary.md"
