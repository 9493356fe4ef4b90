"""Examples in documentation run in an empty folder, so that they may write files."""

import pytest


@pytest.fixture(autouse=True)
def _own_folder(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
