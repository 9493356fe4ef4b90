"""A manifest that has no end, or never begins, is an error that says so."""

import os
from pathlib import Path

import numpy as np
import pytest

from umpteen import NearestCentroid, load
from umpteen.errors import ModelCorruptError, ModelNotFoundError, ModelPathError
from umpteen.limits import VARIABLE


@pytest.fixture
def model() -> NearestCentroid:
    return NearestCentroid().fit(np.eye(3, dtype=np.float32), np.eye(3))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("target", ["a pipe", "/dev/zero", "/dev/null", "nowhere"])
def test_a_manifest_that_is_no_file_is_not_waited_for(
    model: NearestCentroid, tmp_path: Path, target: str
) -> None:
    model.save(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.unlink()
    if target == "a pipe":
        os.mkfifo(manifest)
    else:
        manifest.symlink_to(target)
    with pytest.raises(ModelNotFoundError, match=r"manifest\.json is not a regular file"):
        load(tmp_path)
    with pytest.raises(ModelPathError, match="nothing was changed"):
        model.save(tmp_path)


def test_a_manifest_is_not_read_without_end(
    model: NearestCentroid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path)
    manifest = tmp_path / "manifest.json"
    size = manifest.stat().st_size
    os.truncate(manifest, 10**12)  # takes neither room nor memory
    for use in (load, model.save):
        with pytest.raises(ModelCorruptError, match=rf"longer than 64MB.*{VARIABLE}=1GB"):
            use(tmp_path)
    os.truncate(manifest, size)
    load(tmp_path)
    monkeypatch.setenv(VARIABLE, "100kB")
    with manifest.open("a") as file:
        file.write(" " * 100_000)
    with pytest.raises(ModelCorruptError, match="longer than 100kB"):
        load(tmp_path)
    monkeypatch.delenv(VARIABLE)
    load(tmp_path)
