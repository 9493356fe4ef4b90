"""Examples in documentation run in an empty folder, so that they may write files."""

from importlib.util import find_spec

import pytest

from tests.serve.clients.install import folder

# It runs inside Annif only.
collect_ignore = [] if find_spec("annif") else ["src/umpteen/contrib/annif/backend.py"]
if not find_spec("torch"):  # pytest leaves an empty module where an import fails
    collect_ignore += [f"src/umpteen/{each}" for each in ("aggregated/miml", "neural", "siamese")]
# tests/test_tutorials.py runs them as notebooks.
collect_ignore_glob = ["docs/tutorials/*.md"] if folder("notebook").exists() else []
NEED_PYTORCH = (
    "collapse.md", "multi-instance.md", "multihead.md", "neural.md", "siamese.md", "softmax.md",
    "classes.md",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        if request.node.path.name in NEED_PYTORCH:
            pytest.importorskip("torch", reason="needs umpteen[neural]")
        if request.node.path.parent.name == "tutorials":
            monkeypatch.syspath_prepend(request.node.path.parent)  # made_up.py
        monkeypatch.chdir(tmp_path)
