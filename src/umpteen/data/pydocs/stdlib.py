"""Docstrings of the standard library, read from its source files.

Importing a module of the standard library may open a browser (`antigravity`), print a poem
(`this`) or a window (`turtledemo`), so sources are parsed, never run. Only what is written in C
has no source; `compiled` imports those few modules, harmless ones.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from umpteen.data.pydocs.libraries import is_public, shortest

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_SKIPPED = (
    "__main__ antigravity dist-packages distutils ensurepip idlelib lib2to3 ntpath nturl2path "
    "pydoc_data site-packages test tests this turtledemo"
)
# Written in one module, typed as another, with no import that says so.
_KNOWN_AS = {
    "genericpath": "os.path", "posixpath": "os.path", "_pyio": "io",
    "_collections_abc": "collections.abc",  # from 3.13 on
}  # fmt: skip


@dataclass(frozen=True)
class _Module:
    name: str
    is_package: bool
    definitions: dict[str, _Definition] = field(default_factory=dict)
    imports: list[ast.ImportFrom] = field(default_factory=list)
    exported: list[str] = field(default_factory=list)

    def public_names(self) -> list[str]:
        return self.exported or [name for name in self.definitions if is_public(name)]

    def source_of(self, statement: ast.ImportFrom) -> str:
        """The full name of the module that `from ... import` names."""
        if not statement.level:
            return statement.module or ""
        segments = self.name.split(".")
        kept = segments[: len(segments) - statement.level + self.is_package]
        return ".".join([*kept, statement.module] if statement.module else kept)


def standard_library_docstrings() -> dict[str, str]:
    """Return the docstring of each public function, class and method, by its dotted name."""
    modules = {module.name: module for module in _modules(Path(sysconfig.get_path("stdlib")))}
    names: dict[tuple[str, str], list[str]] = {}
    for module in modules.values():
        for public, home in _exports(module, modules):
            names.setdefault(home, []).append(public)
    docstrings: dict[str, str] = {}
    for (source, local), publics in names.items():
        definition = modules[source].definitions[local]
        docstrings.update(_documented(shortest(publics), definition))
    return docstrings


def _modules(folder: Path) -> Iterator[_Module]:
    skipped = set(_SKIPPED.split())
    for path in sorted(folder.rglob("*.py")):
        segments = path.relative_to(folder).with_suffix("").parts
        if skipped.isdisjoint(segments):
            is_package = segments[-1] == "__init__"
            name = ".".join(segments[:-1] if is_package else segments)
            tree = _parse(path)
            if tree is not None:
                yield _module(name, is_package, tree)


def _parse(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _module(name: str, is_package: bool, tree: ast.Module) -> _Module:
    module = _Module(name, is_package)
    for statement in _top_level(tree.body):
        if isinstance(statement, _Definition):
            module.definitions.setdefault(statement.name, statement)
        elif isinstance(statement, ast.ImportFrom):
            module.imports.append(statement)
        elif isinstance(statement, ast.Assign | ast.AugAssign):
            module.exported.extend(_exported(statement))
    return module


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, also those under `if` and `try`."""
    for statement in body:
        yield statement
        for branch in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.ExceptHandler):
                yield from _top_level(getattr(statement, branch, []))


def _exported(statement: ast.Assign | ast.AugAssign) -> list[str]:
    """The texts in `__all__ = [...]`, as far as they are written out."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
        return []
    lists = (node for node in ast.walk(statement.value) if isinstance(node, ast.List | ast.Tuple))
    elements = (element for node in lists for element in node.elts)
    values = (element.value for element in elements if isinstance(element, ast.Constant))
    return [value for value in values if isinstance(value, str)]


def _exports(module: _Module, modules: dict[str, _Module]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each public dotted name that `module` gives, with the module and name that define it."""
    known_as = _KNOWN_AS.get(module.name, module.name)
    if not is_public(known_as):
        return
    for name, home in _names_in(module, modules).items():
        if is_public(name):
            yield f"{known_as}.{name}", home


def _names_in(module: _Module, modules: dict[str, _Module]) -> dict[str, tuple[str, str]]:
    names = {name: (module.name, name) for name in module.public_names()}
    found = {name: home for name, home in names.items() if name in module.definitions}
    for statement in module.imports:
        source = modules.get(module.source_of(statement))
        if source is None or source is module:
            continue
        for public, local in _imported(statement, source):
            if _offers(module, public, statement, source) and local in source.definitions:
                found.setdefault(public, (source.name, local))
    return found


def _imported(statement: ast.ImportFrom, source: _Module) -> Iterator[tuple[str, str]]:
    for alias in statement.names:
        if alias.name == "*":
            yield from ((name, name) for name in source.public_names())
        else:
            yield alias.asname or alias.name, alias.name


def _offers(module: _Module, name: str, statement: ast.ImportFrom, source: _Module) -> bool:
    """Whether an import is there for the users of `module`, not for its own use."""
    if module.exported:
        return name in module.exported
    own_part = module.is_package and source.name.startswith(f"{module.name}.")
    return own_part or statement.names[0].name == "*"


def _documented(name: str, definition: _Definition) -> Iterator[tuple[str, str]]:
    docstring = ast.get_docstring(definition)
    if docstring:
        yield name, docstring
    if isinstance(definition, ast.ClassDef):
        for member in reversed(definition.body):
            if isinstance(member, _Definition) and is_public(member.name):
                yield from _documented(f"{name}.{member.name}", member)
