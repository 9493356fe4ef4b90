"""Docstrings of objects that are there to be asked: numpy, scipy, scikit-learn, C modules.

Much of these is written in C or puts its docstrings together at import, so their sources do not
hold them. Their public modules are dependencies of this package and safe to import; what prints,
patches or downloads is left out (`_SKIPPED`).
"""

import inspect
import pkgutil
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from umpteen.data.pydocs.libraries import is_public, shortest

PACKAGES = ("numpy", "scipy", "sklearn")

_SKIPPED = frozenset(
    {
        "numpy.core",  # the old name of a private package
        "numpy.distutils",
        "numpy.f2py",
        "numpy.matlib",
        "numpy.testing.print_coercion_tables",
        "numpy.typing.mypy_plugin",
        "scipy.linalg.blas",  # thousands of "Wrapper for ``sgesv``."
        "scipy.linalg.cython_blas",
        "scipy.linalg.cython_lapack",
        "scipy.linalg.lapack",
        "scipy.special.cython_special",
        "sklearn.experimental",  # importing it switches features on
        "sklearn.externals",
        "sklearn.utils.estimator_checks",
        "sklearn.utils.fixes",
    }
)
_COMPILED = (
    "array atexit binascii bisect builtins bz2 cmath codecs collections contextvars csv datetime "
    "decimal errno faulthandler fcntl functools gc grp hashlib heapq io itertools lzma marshal "
    "math mmap operator os pickle pwd random re resource select signal socket sqlite3 ssl struct "
    "sys syslog termios threading time tracemalloc types unicodedata weakref zlib zoneinfo"
)


class Found(NamedTuple):
    """What introspection found: docstrings by name, and the other names of the same objects."""

    docstrings: dict[str, str]
    aliases: dict[str, str]


def compiled_docstrings() -> Found:
    """Return docstrings of the builtins and of the standard library's modules written in C."""
    return _collect(_import_all(_COMPILED.split()))


def package_docstrings() -> Found:
    """Return docstrings of numpy, scipy and scikit-learn, each under its shortest public name."""
    for package in PACKAGES:
        import_module(package)  # without one of these the data set would be another
    names = (name for package in PACKAGES for name in _public_modules(package))
    return _collect(_import_all(names))


def _public_modules(name: str) -> Iterator[str]:
    """The package `name` and its public modules, found without importing them."""
    yield name
    module = _import(name)
    for info in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        last = info.name.rpartition(".")[2]
        if info.name not in _SKIPPED and is_public(last) and last not in ("tests", "conftest"):
            yield from _public_modules(info.name) if info.ispkg else [info.name]


def _import_all(names: Iterable[str]) -> list[ModuleType]:
    modules = (_import(name) for name in names)
    return [module for module in modules if module is not None]


def _import(name: str) -> ModuleType | None:
    """The module, or None where this installation lacks it or something it needs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    except MemoryError:  # that says nothing about the installation
        raise
    except Exception:
        return None


def _collect(modules: list[ModuleType]) -> Found:
    objects: dict[int, Any] = {}
    names: dict[int, list[str]] = {}
    for module in modules:
        for name, thing in _members(module):
            objects[id(thing)] = thing
            names.setdefault(id(thing), []).append(name)
    docstrings: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for key, thing in objects.items():
        canonical = shortest(names[key], own_name=str(getattr(thing, "__name__", "")))
        docstrings.update(_documented(canonical, thing))
        aliases.update(dict.fromkeys(names[key], canonical))
    return Found(docstrings, aliases)


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public objects of a module with their dotted names; builtins have no prefix."""
    prefix = "" if module.__name__ == "builtins" else f"{module.__name__}."
    for name in sorted(getattr(module, "__all__", None) or vars(module)):
        thing = _attribute(module, name)
        if is_public(name) and not inspect.ismodule(thing) and _is_at_home(thing, module):
            yield f"{prefix}{name}", thing


def _attribute(module: ModuleType, name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(module, name)
    except Exception:
        return None


def _is_at_home(thing: Any, module: ModuleType) -> bool:
    """Without `__all__`, a module also shows what it imported for its own use."""
    if hasattr(module, "__all__"):
        return True
    home = str(getattr(thing, "__module__", None) or module.__name__)
    return home.lstrip("_") == module.__name__ or home.startswith(f"{module.__name__}.")


def _documented(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    docstring = _own_docstring(thing)
    if docstring:
        yield name, docstring
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            docstring = _own_docstring(value)
            if is_public(member) and docstring and not _is_generated(member):
                yield f"{name}.{member}", docstring


def _own_docstring(thing: Any) -> str | None:
    """The docstring, unless it is just that of the object's type."""
    docstring = getattr(thing, "__doc__", None)
    if not isinstance(docstring, str):
        return None
    of_type = type(thing).__doc__
    inherited = isinstance(of_type, str) and of_type in docstring
    return None if inherited else inspect.cleandoc(docstring)


def _is_generated(member: str) -> bool:
    """Whether scikit-learn makes the method for every estimator: `set_fit_request`."""
    return member.startswith("set_") and member.endswith("_request")
