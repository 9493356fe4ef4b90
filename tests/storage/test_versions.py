"""A saved model outlives the classes that it was made of: they gain, lose and rename fields."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import BaseEstimator

from umpteen.errors import ModelCorruptError, ModelVersionError
from umpteen.storage import (
    Given,
    Index,
    Offsets,
    Shape,
    Size,
    Within,
    is_rising,
    load,
    registry,
    save,
    storable,
)
from umpteen.storage.folder import _checksum


def rewritten(path: Path, change: Any) -> Path:
    """The model in a folder with a manifest that `change` was made to."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    manifest["checksum"] = _checksum(manifest)
    file.write_text(json.dumps(manifest))
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A model of the class `Shares` in its first version."""

    @storable
    @dataclass
    class Shares:
        names: list[str]
        shares: list[float]

    _as_module(Shares)
    save(Shares(["a", "b"], [0.25, 0.75]), tmp_path)
    return tmp_path


def _as_module(cls: Any) -> Any:
    """Known by its bare name, as a class of a module is."""
    cls.__qualname__ = cls.__name__
    return storable(cls)


def _newest(**settings: Any) -> Any:
    def decorate(cls: Any) -> Any:
        cls.__qualname__ = cls.__name__
        return storable(**settings)(cls) if settings else storable(cls)

    return decorate


def test_a_field_that_is_new_gets_its_default(saved: Path) -> None:
    @_newest()
    @dataclass
    class Shares:
        names: list[str]
        shares: list[float]
        unit: str = "of one"
        notes: list[str] = field(default_factory=list)

    found = load(saved)
    assert (found.shares, found.unit, found.notes) == ([0.25, 0.75], "of one", [])


def test_a_change_of_meaning_is_made_by_its_step(saved: Path) -> None:
    def in_percent(parameters: dict[str, Any], state: dict[str, Any]) -> None:
        state["percent"] = [100 * share for share in state.pop("shares")]

    def largest(parameters: dict[str, Any], state: dict[str, Any]) -> None:
        state["largest"] = max(state["percent"])

    @_newest(version=3, upgrades={1: in_percent, 2: largest})
    @dataclass
    class Shares:
        names: list[str]
        percent: list[float]
        largest: float

    found = load(saved)
    assert (found.percent, found.largest) == ([25.0, 75.0], 75.0)
    save(found, saved)
    assert load(saved) == found  # of version 3 already: no step is made twice


def test_what_is_newer_than_this_release_is_refused_with_both_versions(saved: Path) -> None:
    def from_the_future(manifest: dict[str, Any]) -> None:
        manifest["versions"]["umpteen"] = "7.0.0"
        manifest["model"]["object"]["version"] = 2

    rewritten(saved, from_the_future)
    with pytest.raises(ModelVersionError, match=r"made by umpteen 7\.0\.0; this is \d.*--upgrade"):
        load(saved)


def test_a_class_of_ours_that_is_not_here_names_both_versions(saved: Path) -> None:
    def of_a_later_method(manifest: dict[str, Any]) -> None:
        manifest["versions"]["umpteen"] = "7.0.0"
        manifest["model"]["object"].update({"module": "umpteen.oracle", "class": "Oracle"})

    rewritten(saved, of_a_later_method)
    with pytest.raises(ModelCorruptError, match=r"'Oracle'.*made by umpteen 7\.0\.0; this is"):
        load(saved)


def test_a_field_that_went_without_a_step_is_named(saved: Path) -> None:
    @_newest()
    @dataclass
    class Shares:
        names: list[str]

    with pytest.raises(ModelCorruptError, match=r"'shares'.*version of umpteen that saved it"):
        load(saved)


def test_a_class_that_moved_is_found(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @storable
    @dataclass
    class Portions:
        names: list[str]
        shares: list[float]

    was, now = (__name__, "Shares"), (__name__, Portions.__qualname__)
    monkeypatch.setitem(registry.MOVED, was, now)
    assert isinstance(load(saved), Portions)


def test_estimators_gain_and_lose_parameters(tmp_path: Path) -> None:
    class Old(BaseEstimator):
        def __init__(self, *, knob: int = 3) -> None:
            self.knob = knob

    old = _as_module(Old)(knob=5)
    old.found_ = 1.5
    save(old, tmp_path)

    def renamed(parameters: dict[str, Any], state: dict[str, Any]) -> None:
        parameters["dial"] = 10 * parameters.pop("knob")
        state["limit_"] = 2 * state["found_"]

    @_newest(version=2, upgrades={1: renamed})
    class Old(BaseEstimator):  # type: ignore[no-redef]
        def __init__(self, *, dial: int = 0, speed: float = 1.0) -> None:
            self.dial = dial
            self.speed = speed

    found = load(tmp_path)
    assert (found.dial, found.speed, found.found_, found.limit_) == (50, 1.0, 1.5, 3.0)


# --- what fields may hold


@storable
@dataclass(eq=False)
class Lists:
    """Which labels each row has."""

    first: Annotated[npt.NDArray[np.int32], Shape("rows + 1"), Offsets("entries")]
    label: Annotated[npt.NDArray[np.int32], Shape("entries"), Index("labels")]


@storable
@dataclass(eq=False)
class Named:
    """Lists, and how many labels there are."""

    n_labels: Annotated[int, Size("labels")]
    lists: list[Annotated[Lists, Given("labels")]]
    extra: Annotated[Lists, Given("labels")] | None = None


def lists(first: Any, label: Any, kind: Any = np.int32) -> Lists:
    return Lists(np.array(first, np.int32), np.array(label, kind))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lists([0, 2, 1, 3], [0, 1, 2]), r"lists\[0\]\.first is not a list of offsets"),
        (lists([1, 3], [0, 1, 2]), r"first is not a list of offsets"),
        (lists([0, 2], [0, 1, 2]), r"first ends at 2, expected 3"),
        (lists([0, 3], [0, 1, 3]), r"label holds numbers outside the range 0 <= number < 3"),
        (lists([0, 3], [0, 1, -1]), r"label holds numbers"),
        (lists([0, 1], [[0]]), r"label has shape \(1, 1\), expected \(entries\)"),
        (lists([], []), r"first has shape \(0,\), expected \(rows \+ 1\)"),
        (lists([0, 1], [0], np.int64), r"label is an array of int64, expected"),
    ],
)
def test_what_a_field_must_not_hold_is_named(given: Lists, message: str, tmp_path: Path) -> None:
    save(Named(3, [given]), tmp_path)
    with pytest.raises(ModelCorruptError, match=message):
        load(tmp_path)
    save(Named(3, [], given), tmp_path)
    with pytest.raises(ModelCorruptError, match=message.replace(r"lists\[0\]", "extra")):
        load(tmp_path)


def test_what_a_field_may_hold_is_loaded(tmp_path: Path) -> None:
    save(Named(3, [lists([0, 0, 2], [0, 2]), lists([0], [])], None), tmp_path)
    assert load(tmp_path).lists[0].label.tolist() == [0, 2]


@pytest.mark.parametrize("size", [0, 1, 2**17 - 1, 2**17, 2**17 + 1, 3 * 2**17 + 5])
def test_every_entry_of_a_large_array_is_looked_at(size: int) -> None:
    """Arrays are checked block by block: none may fall between two blocks."""
    rising = np.arange(size, dtype=np.int32)
    assert is_rising(rising)
    assert Within(0, max(size, 1)).fault(rising, {}) is None
    for place in {0, 1, size // 2, 2**17 - 1, 2**17, size - 1} & {*range(size)}:
        wrong = rising.copy()
        wrong[place] = -1
        assert Within(0, size).fault(wrong, {})
        if place:
            assert not is_rising(wrong)
