"""Models of earlier releases load and answer as they did then: people keep their models."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import umpteen
from umpteen.storage.folder import read_manifest, versions

from .golden import MODELS, WITH_TORCH, ask, machine

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*/*.zip"))


@pytest.fixture(params=GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param.stem in WITH_TORCH:
        pytest.importorskip("torch")
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_an_old_model_answers_as_it_did(folder: Path) -> None:
    expected = np.load(folder / "answers.npz")
    same_bits = read_manifest(folder)["versions"] == versions() and expected["machine"] == machine()
    found = ask(umpteen.load(folder, verify=True))
    assert sorted(found) == sorted(set(expected.files) - {"machine"})
    for name, answer in found.items():
        if same_bits or answer.dtype.kind != "f":
            np.testing.assert_array_equal(answer, expected[name], err_msg=name)
        else:  # another version of numpy, or another processor, may round otherwise
            np.testing.assert_allclose(answer, expected[name], 1e-4, 1e-6, err_msg=name)


def test_every_kind_of_model_is_kept() -> None:
    newest = max(
        (path.parent.name for path in GOLDEN), key=lambda name: [*map(int, name.split("."))]
    )
    kept = {path.stem for path in GOLDEN if path.parent.name == newest}
    assert kept == {*MODELS, *WITH_TORCH}


def test_golden_models_stay_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN) < 2_000_000
