"""Collect the documentation of this Python: all sources together."""

from umpteen.data.pydocs.assemble import Collection, assemble
from umpteen.data.pydocs.imported import compiled_docstrings, package_docstrings
from umpteen.data.pydocs.stdlib import standard_library_docstrings


def collect_here() -> Collection:
    """Return the collection of this process, with whatever was changed in it."""
    compiled, packages = compiled_docstrings(), package_docstrings()
    docstrings = compiled.docstrings | packages.docstrings | standard_library_docstrings()
    return assemble(docstrings, compiled.aliases | packages.aliases)
