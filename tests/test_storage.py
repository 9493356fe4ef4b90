"""A saved model comes back whole, or with an error that says what to do; never half, never code."""

import errno
import json
import math
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import typeof
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import umpteen
from umpteen import ExtremeClassifier, TopK
from umpteen.errors import (
    ModelCorruptError,
    ModelNotFoundError,
    ModelPathError,
    ModelVersionError,
    NotStorableError,
    ParameterError,
    UmpteenError,
)
from umpteen.storage import folder as model_folder
from umpteen.storage import load, save, storable
from umpteen.storage.registry import find_class

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
quick = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Linear(ExtremeClassifier):
    """The simplest model with sparse weights."""

    def __init__(self, *, scale: Any = 1.0, solver: Any = None, random_state: Any = None) -> None:
        self.scale = scale
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> "Linear":
        X, Y = self._check_fit(X, Y)
        self.weights_ = sparse.csr_matrix(X.T @ Y)
        self._cache = object()
        return self

    def _topk(self, X: Any, k: int) -> TopK:
        return TopK.from_csr(sparse.csr_matrix(X @ self.weights_ * self.scale), k)


@storable
@dataclass(frozen=True)
class Box:
    """Anything, in a dataclass that would change it if it were made anew."""

    content: Any
    note: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", self.note + "!")


@pytest.fixture
def fitted() -> Linear:
    rng = np.random.default_rng(0)
    X = sparse.random(40, 30, density=0.2, format="csr", dtype=np.float32, random_state=rng)
    return Linear(scale=np.float32(0.1), random_state=3).fit(X, rng.random((40, 12)) < 0.2)


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small saves need not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def through(value: Any, path: Path, **options: Any) -> Any:
    """`value` after a save and a load."""
    save(Box(value), path)
    return load(path, **options).content


def assert_same(got: Any, expected: Any) -> None:
    """Same types, same bits, all the way down."""
    assert type(got) is type(expected)
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        assert_same(list(got.values()), list(expected.values()))
    elif sparse.issparse(expected):
        assert got.shape == expected.shape
        assert_same(
            [got.data, got.indices, got.indptr], [expected.data, expected.indices, expected.indptr]
        )
    elif isinstance(expected, np.ndarray | np.generic):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()
    elif isinstance(expected, float):
        assert math.copysign(1, got) == math.copysign(1, expected) or math.isnan(expected)
        assert got == expected or (math.isnan(got) and math.isnan(expected))
    else:
        assert got == expected


numbers = hnp.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufc")
arrays = hnp.arrays(numbers, hnp.array_shapes(min_dims=0, min_side=0, max_side=5))
texts = st.text(st.characters(), max_size=8)
plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
scalars = numbers.flatmap(lambda dtype: hnp.from_dtype(dtype).map(dtype.newbyteorder("=").type))
values = st.recursive(
    plain | arrays | scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=12,
)


# --- what was saved comes back


def test_a_loaded_model_predicts_the_same_bits(fitted: Linear, tmp_path: Path) -> None:
    X = np.random.default_rng(1).random((50, 30), dtype=np.float32)
    fitted.save(tmp_path / "deep" / "model")
    for mmap in (True, False):
        loaded = umpteen.load(tmp_path / "deep" / "model", mmap=mmap, verify=True)
        assert loaded.predict_topk(X, 5) == fitted.predict_topk(X, 5)
        assert loaded.get_params() == fitted.get_params()
        assert not hasattr(loaded, "_cache")


@pytest.mark.usefixtures("unsynced")
@quick
@given(values)
def test_every_value_keeps_its_type_and_bits(tmp_path: Path, value: Any) -> None:
    assert_same(through(value, tmp_path), value)


@pytest.mark.usefixtures("unsynced")
@quick
@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=1, max_size=20))
def test_long_lists_of_names_survive_any_character(tmp_path: Path, names: list[str]) -> None:
    assert_same(through(names * 1001, tmp_path), names * 1001)


@pytest.mark.parametrize(
    "value",
    [
        list(range(2000)),
        [True, False] * 1000,
        [0.1, math.nan, -math.inf] * 1000,
        [1, "mixed"] * 1000,
        [2**70, -1] * 1000,
        [2**63, -1] * 1000,
        tuple(map(str, range(2000))),
        {str(i): i for i in range(2000)},
    ],
)
def test_long_lists_come_back_as_they_were(value: Any, tmp_path: Path) -> None:
    assert_same(through(value, tmp_path), value)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("shape", [(30, 20), (0, 5), (5, 0)])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_sparse_matrices_come_back(
    kind: Any, shape: tuple[int, int], index_type: type, tmp_path: Path
) -> None:
    matrix = kind(sparse.random(*shape, density=0.3, random_state=0, format="csr"))
    matrix.indices, matrix.indptr = (
        matrix.indices.astype(index_type),
        matrix.indptr.astype(index_type),
    )
    assert_same(through(matrix, tmp_path), matrix)


def test_unsorted_and_padded_sparse_matrices_are_not_taken_for_sorted_ones(tmp_path: Path) -> None:
    matrix = sparse.csr_matrix(([1.0, 2.0, 9.0], [2, 0, 1], [0, 2]), shape=(1, 3))
    matrix.data, matrix.indices = np.array([1.0, 2.0, 9.0]), np.array([2, 0, 1], np.int32)
    loaded = through(matrix, tmp_path)
    assert not loaded.has_sorted_indices
    assert not loaded.has_canonical_format
    assert loaded.toarray().tolist() == [[2.0, 0.0, 1.0]]


def test_models_inside_models_come_back(fitted: Linear, tmp_path: Path) -> None:
    outer = Linear(solver=[fitted, Box(Linear(scale=2))])
    loaded = through(outer, tmp_path)
    inner, box = loaded.solver
    assert_same(inner.weights_, fitted.weights_)
    assert box.content.scale == 2
    assert not hasattr(box.content, "n_labels_")


def test_loading_a_dataclass_computes_nothing_again(tmp_path: Path) -> None:
    save(Box(1, note="once"), tmp_path)
    assert load(tmp_path).note == "once!"


def test_views_and_fortran_order_lose_only_their_layout(tmp_path: Path) -> None:
    table = np.arange(200_000.0).reshape(400, 500)
    for view in (table.T, table[::2, ::3], np.broadcast_to(table[0], (3, 500))):
        loaded = through(view, tmp_path)
        assert loaded.flags.c_contiguous
        assert np.array_equal(loaded, view)


def test_other_tools_read_the_arrays(tmp_path: Path) -> None:
    """People inspect a model with `np.load`; the header is written by us, so check it."""
    for array in (np.array(1.5, ">f4"), np.arange(6).reshape(2, 3), np.zeros((0, 3), ">i2")):
        save(Box(array), tmp_path)
        (file,) = tmp_path.glob("*.npy")
        assert_same(np.load(file), array)


def test_mapped_arrays_can_be_changed_and_leave_the_file_alone(tmp_path: Path) -> None:
    """Kernels are compiled for ordinary arrays: a mapped one must be the same type to numba."""
    array = np.zeros((300, 300))
    mapped = through(array, tmp_path)
    assert isinstance(mapped.base, np.memmap)
    assert type(mapped) is np.ndarray
    assert mapped.flags.writeable
    assert typeof(mapped) == typeof(array)
    mapped[:] = 1.0
    assert not load(tmp_path, verify=True).content.any()


def test_a_loaded_model_can_be_saved_over_itself(tmp_path: Path) -> None:
    """Its arrays are mapped from the files that the save replaces."""
    array = np.random.default_rng(0).random((300, 300))
    save(through(Box(array), tmp_path), tmp_path)
    assert_same(load(tmp_path).content, array)


# --- what cannot be saved is refused by name, before anything is written


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": [0, {1}]}, r"Box\.content\['a'\]\[1\] is a builtins\.set"),
        (np.array(["x"]), r"Box\.content is a numpy\.ndarray of dtype <U1"),
        (np.array([None]), "dtype object"),
        (np.ma.masked_array([1], [True]), "MaskedArray"),
        (np.datetime64("2020"), "datetime64"),
        (sparse.csc_matrix((2, 2)), "csc_matrix"),
        (sparse.csr_array([1, 2]), "csr_array"),
        ({1: 2}, "has the key 1"),
        (LogisticRegression(), "LogisticRegression"),
        (len, "builtin_function"),
        (Linear(scale=len), r"Box\.content\.scale"),
    ],
)
def test_what_cannot_be_saved_is_named(value: Any, named: str, tmp_path: Path) -> None:
    save(Box("old"), tmp_path)
    with pytest.raises(NotStorableError, match=named):
        save(Box(value), tmp_path)
    assert load(tmp_path).content == "old"


def test_a_value_that_holds_itself_is_refused(tmp_path: Path) -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotStorableError, match="holds itself"):
        save(Box(value), tmp_path)


@pytest.mark.parametrize("state", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_generator_as_random_state_is_refused_with_advice(state: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="random_state=0"):
        save(Linear(random_state=state), tmp_path)


def test_only_marked_classes_are_models(tmp_path: Path) -> None:
    with pytest.raises(NotStorableError, match="storable"):
        save([1, 2], tmp_path)
    with pytest.raises(TypeError, match="above @dataclass"):
        storable(Path)


# --- nothing of the user's is lost


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "0.npy"])
def test_a_folder_with_other_files_is_never_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(ModelPathError, match="nothing was changed"):
        save(Box(1), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "{}"


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelPathError, match="is a file"):
        save(Box(1), tmp_path / "file")
    with pytest.raises(ModelPathError, match="below a file"):
        save(Box(1), tmp_path / "file" / "model")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_save_removes_the_old_arrays_and_nothing_else(tmp_path: Path) -> None:
    save(Box([np.arange(3)] * 4), tmp_path)
    (tmp_path / "README.md").write_text("mine")
    save(Box(np.arange(3)), tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 1
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", range(5))
def test_a_save_that_fails_leaves_the_old_model_and_no_litter(
    problem: BaseException, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(Box([np.arange(3), np.arange(4)]), tmp_path)
    before = sorted(tmp_path.iterdir())
    calls = iter(range(100))

    def fsync(handle: int) -> None:
        if next(calls) == step:
            raise problem

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(type(problem)):
            save(Box([np.ones(3), np.ones(4)]), tmp_path)
    first, second = load(tmp_path, verify=True).content
    replaced = step == 4  # the manifest was in place: its arrays must be too
    assert (first[0] == 1.0) is np.bool_(replaced)
    assert len(first) + len(second) == 7
    assert (sorted(tmp_path.iterdir()) == before) is not replaced
    assert len(list(tmp_path.iterdir())) == 3


# --- killed at any moment: the old model or the new one


def in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def numbered(number: int) -> Box:
    """A model whose parts all carry its number, so that a mixture would show."""
    shape = (number % 3 + 1) * 2000
    return Box([np.full(shape, number), {"part": np.full(shape, number)}, number], note=str(number))


def number_of(model: Box) -> int:
    array, inner, number = model.content
    assert (array == number).all()
    assert (inner["part"] == number).all()
    assert model.note == f"{number}!"
    return int(number)


@needs_fork
def test_killed_at_every_single_step_of_a_save(tmp_path: Path) -> None:
    save(numbered(1), tmp_path)

    def die_at(step: int) -> None:
        steps = iter(range(step))

        def count(event: str, arguments: Any) -> None:
            if event in ("open", "os.rename", "os.remove") and next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        save(numbered(2), tmp_path)

    seen = []
    for step in range(100):
        _, status = os.waitpid(in_child(lambda step=step: die_at(step)), 0)
        seen.append(number_of(load(tmp_path, verify=True)))
        if status == 0:
            break
        save(numbered(1), tmp_path)
        assert len(list(tmp_path.iterdir())) == 3
    assert status == 0
    assert seen == sorted(seen), "once the new model is in place it stays"
    assert seen.count(1) >= 5
    assert seen.count(2) >= 2


@needs_fork
def test_killed_at_random_moments(tmp_path: Path) -> None:
    save(numbered(0), tmp_path)

    def save_for_ever() -> None:
        number = 0
        while True:
            number += 1
            save(numbered(number), tmp_path)

    for _ in range(25):
        child = in_child(save_for_ever)
        time.sleep(random.uniform(0.0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        number_of(load(tmp_path, verify=True))


@needs_fork
def test_a_first_save_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    def die_before_the_manifest() -> None:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        save(numbered(1), tmp_path / "new")

    os.waitpid(in_child(die_before_the_manifest), 0)
    with pytest.raises(ModelNotFoundError, match="completely saved"):
        load(tmp_path / "new")
    save(numbered(2), tmp_path / "new")
    assert number_of(load(tmp_path / "new")) == 2
    assert len(list((tmp_path / "new").iterdir())) == 3


def test_saving_and_loading_at_the_same_time(tmp_path: Path) -> None:
    """A server reloads while training saves, and two trainings save to one path."""
    save(numbered(0), tmp_path)

    def save_many(start: int) -> None:
        for number in range(start, start + 15):
            save(numbered(number), tmp_path)

    threads = [threading.Thread(target=save_many, args=(start,)) for start in (100, 200)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        number_of(load(tmp_path, verify=True))
    assert number_of(load(tmp_path)) in (114, 214)
    assert len(list(tmp_path.iterdir())) == 3


# --- damaged folders


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intact")
    matrix = sparse.csr_matrix(np.eye(4, dtype=np.float32))
    inner = Box([np.float32(2), (1, math.inf), {"key": np.arange(6).reshape(2, 3)}])
    save(Linear(scale=[matrix, inner], solver=[*map(str, range(1200))]), path)
    return path


def damaged(intact: Path, path: Path) -> Path:
    shutil.rmtree(path / "copy", ignore_errors=True)
    return Path(shutil.copytree(intact, path / "copy"))


def loads_or_explains(path: Path) -> None:
    for verify in (False, True):
        with suppress(UmpteenError):
            load(path, verify=verify)


def resign(path: Path, manifest: dict[str, Any]) -> None:
    """As someone would who edits a manifest on purpose."""
    manifest["checksum"] = model_folder._checksum(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_missing_model_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, message in {"nowhere": "no folder", "file": "is a file", "": "no manifest"}.items():
        with pytest.raises(ModelNotFoundError, match=message):
            load(tmp_path / path)


def test_a_missing_array_is_named(intact: Path, tmp_path: Path) -> None:
    for file in intact.glob("*.npy"):
        copy = damaged(intact, tmp_path)
        (copy / file.name).unlink()
        with pytest.raises(ModelCorruptError, match=f"{file.name} is missing"):
            load(copy)


def test_a_truncated_array_is_named(intact: Path, tmp_path: Path) -> None:
    for file in intact.glob("*.npy"):
        copy = damaged(intact, tmp_path)
        os.truncate(copy / file.name, file.stat().st_size - 1)
        with pytest.raises(ModelCorruptError, match=rf"{file.name} has .* bytes, expected"):
            load(copy)


def test_a_changed_number_is_found_on_request(intact: Path, tmp_path: Path) -> None:
    for file in intact.glob("*.npy"):
        copy = damaged(intact, tmp_path)
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        (copy / file.name).write_bytes(data)
        with pytest.raises(ModelCorruptError, match="was changed"):
            load(copy, verify=True)


def test_an_edited_manifest_is_found(intact: Path, tmp_path: Path) -> None:
    copy = damaged(intact, tmp_path)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"inf"', '"nan"'))
    with pytest.raises(ModelCorruptError, match="edited"):
        load(copy)


def test_a_newer_format_asks_for_an_upgrade(intact: Path, tmp_path: Path) -> None:
    copy = damaged(intact, tmp_path)
    manifest = json.loads((copy / "manifest.json").read_text())
    resign(copy, manifest | {"format": 2, "versions": {"umpteen": "9.8"}})
    with pytest.raises(ModelVersionError, match=r"9\.8.*upgrade umpteen"):
        load(copy)


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "a/b.npy", "", "0.npy"])
def test_files_outside_of_the_folder_are_never_opened(
    name: str, intact: Path, tmp_path: Path
) -> None:
    copy = damaged(intact, tmp_path)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["arrays"][0]["file"] = name
    resign(copy, manifest)
    with pytest.raises(ModelCorruptError, match="no save writes"):
        load(copy)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_deeply_nested_manifest_is_an_error(depth: int, intact: Path, tmp_path: Path) -> None:
    copy = damaged(intact, tmp_path)
    manifest = (intact / "manifest.json").read_text()
    nested = "[" * depth + "]" * depth
    (copy / "manifest.json").write_text(manifest.replace('"inf"', nested))
    with pytest.raises(ModelCorruptError):
        load(copy)


@pytest.mark.parametrize(
    ("module", "name"),
    [("this", "Zen"), ("umpteen.base", "ExtremeClassifier"), ("umpteen.__main__", "Box2")],
)
def test_classes_that_are_not_ours_are_not_even_imported(module: str, name: str) -> None:
    with pytest.raises(ModelCorruptError, match="does not exist here"):
        find_class(module, name)
    assert {"this", "umpteen.__main__"}.isdisjoint(sys.modules)


def test_a_class_of_ours_that_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old models must load after modules were renamed."""
    monkeypatch.setattr(umpteen, "Linear", Linear, raising=False)
    assert find_class("umpteen.no_longer_here", "Linear").cls is Linear
    assert find_class("__main__", "Linear").cls is Linear


def test_a_dataclass_with_other_fields_is_refused(tmp_path: Path) -> None:
    @storable
    @dataclass
    class Other:
        old: int

    save(Other(1), tmp_path)
    Other.__dataclass_fields__["new"] = Box.__dataclass_fields__["content"]
    with pytest.raises(ModelCorruptError, match=r"fields \['old'\], but here"):
        load(tmp_path)


def test_an_estimator_without_that_parameter_names_the_versions(tmp_path: Path) -> None:
    @storable
    class Old(BaseEstimator):
        def __init__(self, gone: int = 1) -> None:
            self.gone = gone

    save(Old(), tmp_path)
    Old.__init__ = lambda self: None  # type: ignore[method-assign,misc,assignment]
    with pytest.raises(ModelCorruptError, match=r"gone.*saved with.*umpteen"):
        load(tmp_path)


@quick
@given(data=st.data())
def test_damaged_files_give_a_model_or_an_explanation(
    intact: Path, tmp_path: Path, data: st.DataObject
) -> None:
    copy = damaged(intact, tmp_path)
    file = data.draw(st.sampled_from(sorted(copy.iterdir())))
    content = bytearray(file.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.sampled_from([start, start + 1, start + 8, len(content)]))
    content[start:end] = data.draw(st.binary(max_size=12))
    file.write_bytes(content)
    loads_or_explains(copy)


@quick
@given(st.binary(max_size=300))
def test_any_bytes_as_a_manifest_give_an_explanation(
    intact: Path, tmp_path: Path, content: bytes
) -> None:
    copy = damaged(intact, tmp_path)
    (copy / "manifest.json").write_bytes(content)
    with pytest.raises(ModelCorruptError):
        load(copy)


def nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON document, as container and key."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    places = [(tree, key) for key in keys]
    inner = [tree[key] for key in keys if isinstance(tree[key], dict | list)]
    return places + [place for child in inner for place in nodes(child)]


json_values = st.recursive(
    plain | st.integers(-3, 12) | st.sampled_from(["<f4", "object", "Linear", "umpteen.base"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["array", "texts", "numbers", "tuple", "csr_array", "float", "scalar"]),
            inner,
            min_size=1,
            max_size=1,
        )
    ),
    max_leaves=5,
)


@pytest.mark.usefixtures("unsynced")
@settings(quick, max_examples=300)
@given(data=st.data())
def test_manifests_edited_with_skill_give_a_model_or_an_explanation(
    intact: Path, tmp_path: Path, data: st.DataObject
) -> None:
    copy = damaged(intact, tmp_path)
    manifest = json.loads((copy / "manifest.json").read_text())
    places = [place for place in nodes(manifest) if place[1] != "checksum"]
    container, key = data.draw(st.sampled_from(places))
    container[key] = data.draw(json_values)
    resign(copy, manifest)
    loads_or_explains(copy)
    try:
        save(Box(1), copy)
    except UmpteenError:
        return
    assert load(copy).content == 1
