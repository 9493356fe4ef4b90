"""Models that somebody tampered with, checksums corrected, and what becomes of who uses them.

    python -m tests.storage.tampering 10000 [first case]

runs that many cases over all golden models and counts how they end. Each case is loaded and asked
in a process of its own kind: an answer and one of our errors are fine, and nothing else is. NaN,
unsorted scores, and a label that does not exist or comes twice are faults as well.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a forked process has no threads of its parent

import numpy as np

import umpteen
from umpteen.errors import UmpteenError
from umpteen.storage.arrays import _bytes, _header
from umpteen.storage.folder import _checksum

from .golden import WITH_TORCH, ask

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*/*.zip"))
SECONDS = 120  # a case that takes longer hangs; a kernel for another type may be compiled meanwhile
ROOM = 6 << 30  # bytes: a case that takes more would bring the machine down

Random = np.random.Generator
Case = tuple[Path, int]


class Folder:
    """A model folder that can be changed and written down again with checksums that fit."""

    def __init__(self, archive: Path) -> None:
        with zipfile.ZipFile(archive) as files:
            self.manifest = json.loads(files.read("manifest.json"))
            self.arrays = [
                np.frombuffer(files.read(entry["file"]), np.uint8)[-_n_bytes(entry) or 1 << 62 :]
                .view(entry["dtype"])
                .reshape(entry["shape"])
                .copy()
                for entry in self.manifest["arrays"]
            ]

    def write(self, folder: Path) -> None:
        """As `save` would, but for waiting for the disk."""
        entries = []
        for number, array in enumerate(self.arrays):
            file = folder / f"{0:012x}-{number}.npy"
            array = np.ascontiguousarray(array).reshape(array.shape)
            content = _header(array.dtype, array.shape) + bytes(_bytes(array))
            file.write_bytes(content)
            entries.append(
                {
                    "file": file.name, "dtype": array.dtype.str, "shape": list(array.shape),
                    "bytes": len(content), "crc32": zlib.crc32(_bytes(array)),
                }
            )  # fmt: skip
        self.manifest["arrays"] = entries
        self.manifest["checksum"] = _checksum(self.manifest)
        (folder / "manifest.json").write_text(json.dumps(self.manifest))


def _n_bytes(entry: dict[str, Any]) -> int:
    return int(np.prod(entry["shape"], dtype=int)) * np.dtype(entry["dtype"]).itemsize


# --- what is done to arrays


def flip_bits(array: np.ndarray, random: Random) -> np.ndarray:
    content = array.reshape(-1).view(np.uint8)
    for place in random.integers(len(content), size=random.integers(1, 9)):
        content[place] ^= np.uint8(1 << random.integers(8))
    return array


def set_extremes(array: np.ndarray, random: Random) -> np.ndarray:
    flat = array.reshape(-1)
    places = random.integers(len(flat), size=random.integers(1, 5))
    flat[places] = _extreme(array.dtype, random)
    return array


def fill_with_extreme(array: np.ndarray, random: Random) -> np.ndarray:
    array[...] = _extreme(array.dtype, random)
    return array


def _extreme(dtype: np.dtype, random: Random) -> Any:
    if dtype.kind == "f":
        return random.choice([np.nan, np.inf, -np.inf, 0, -1, np.finfo(dtype).max, 1e-40])
    if dtype.kind == "b":
        return bool(random.integers(2))
    info = np.iinfo(dtype)
    near = int(random.integers(0, 64))
    values = [info.min, info.max, 0, near, min(info.max, 1 << 20)]
    return dtype.type(values[random.integers(len(values))] if info.min == 0 else
                      [*values, -1, -near][random.integers(len(values) + 2)])  # fmt: skip


def fill_with_noise(array: np.ndarray, random: Random) -> np.ndarray:
    content = random.integers(256, size=array.nbytes, dtype=np.uint8)
    return content.view(array.dtype).reshape(array.shape)


def cut_short(array: np.ndarray, random: Random) -> np.ndarray:
    return array[: random.integers(len(array))] if array.ndim else array


def make_longer(array: np.ndarray, random: Random) -> np.ndarray:
    return np.concatenate([array, array[: 1 + random.integers(len(array))]])


def turn_around(array: np.ndarray, random: Random) -> np.ndarray:
    return array[::-1]


def shuffle(array: np.ndarray, random: Random) -> np.ndarray:
    return random.permutation(array)


def change_type(array: np.ndarray, random: Random) -> np.ndarray:
    return array.astype(random.choice(["<i2", "<i4", "<i8", "<f4", "<f8", "|u1", ">i4", "<c8"]))


def change_shape(array: np.ndarray, random: Random) -> np.ndarray:
    return array.T if array.ndim > 1 and random.integers(2) else array.reshape(-1, 1)


def scale_up(array: np.ndarray, random: Random) -> np.ndarray:
    return (array * array.dtype.type(2)).astype(array.dtype)


ARRAY_CHANGES: list[Callable[[np.ndarray, Random], np.ndarray]] = [
    flip_bits, set_extremes, fill_with_extreme, fill_with_noise, cut_short, make_longer,
    turn_around, shuffle, change_type, change_shape, scale_up,
]  # fmt: skip


# --- what is done to the manifest


def places_in(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    for key in content if isinstance(content, dict) else range(len(content)):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places_in(content[key])


def _any_place(manifest: dict[str, Any], random: Random) -> tuple[Any, Any]:
    places = list(places_in(manifest["model"]))
    return places[random.integers(len(places))]


def replace_value(manifest: dict[str, Any], random: Random) -> None:
    strange: list[Any] = [
        None, True, 0, -1, 1, 2, 2**31, 10**9, 10**18, 0.5, "text", "umpteen", [], {}, [1, 2],
        {"float": "nan"}, {"array": 0}, {"array": 3}, {"tuple": []},
    ]  # fmt: skip
    container, key = _any_place(manifest, random)
    container[key] = strange[random.integers(len(strange))]


def change_number(manifest: dict[str, Any], random: Random) -> None:
    places = [
        (container, key)
        for container, key in places_in(manifest["model"])
        if type(container[key]) in (int, float)
    ]
    container, key = places[random.integers(len(places))]
    changed = [container[key] + 1, container[key] - 1, -container[key], 10**6, 10**12, 2**63 - 1]
    container[key] = changed[random.integers(len(changed))]


def exchange_values(manifest: dict[str, Any], random: Random) -> None:
    (one, key), (other, other_key) = _any_place(manifest, random), _any_place(manifest, random)
    copied = json.loads(json.dumps([one[key], other[other_key]]))
    one[key] = copied[1]
    other[other_key] = copied[0]


def drop_value(manifest: dict[str, Any], random: Random) -> None:
    container, key = _any_place(manifest, random)
    del container[key]


def rename_class(manifest: dict[str, Any], random: Random) -> None:
    objects = [
        container[key]
        for container, key in places_in({"model": [manifest["model"]]})
        if key == "object"
    ]
    one, other = (objects[random.integers(len(objects))] for _ in range(2))
    one["class"], one["module"] = other["class"], other["module"]


MANIFEST_CHANGES = [replace_value, change_number, exchange_values, drop_value, rename_class]


def tampered(archive: Path, seed: int) -> tuple[Folder, str]:
    """A changed model, and what was changed."""
    random = np.random.default_rng([seed, zlib.crc32(archive.stem.encode())])
    folder = Folder(archive)
    kind = random.integers(10)
    some = [number for number, array in enumerate(folder.arrays) if array.size]
    if kind < 7:
        number = some[random.integers(len(some))]
        change = ARRAY_CHANGES[random.integers(len(ARRAY_CHANGES))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folder.arrays[number] = change(folder.arrays[number], random)
        return folder, f"{change.__name__} of array {number}"
    if kind == 7:
        one, other = random.choice(some, 2)
        folder.arrays[one], folder.arrays[other] = folder.arrays[other], folder.arrays[one]
        return folder, f"exchange of arrays {one} and {other}"
    change_manifest = MANIFEST_CHANGES[random.integers(len(MANIFEST_CHANGES))]
    change_manifest(folder.manifest, random)
    return folder, change_manifest.__name__


# --- what becomes of it


def use(folder: Path) -> str:
    """How a load and a few questions end."""
    try:
        model = umpteen.load(folder)
        fault = broken_promise(ask(model), getattr(model, "n_labels_", None))
    except UmpteenError as error:
        return f"error: {type(error).__name__}"
    except MemoryError:
        return "FAULT: MemoryError"
    except Exception as error:
        return f"FAULT: {type(error).__name__}: {str(error)[:200]}"
    return f"FAULT: {fault}" if fault else "answer"


def broken_promise(answers: dict[str, np.ndarray], n_labels: int | None) -> str:
    """What an answer says that no answer of ours may say, or ""."""
    if any(each.dtype.kind == "f" and np.isnan(each).any() for each in answers.values()):
        return "NaN in the answer"
    if "labels" not in answers:
        return ""
    labels, scores = answers["labels"], answers["scores"]
    if ((labels < 0) != (scores == -np.inf)).any():
        return "a score without a label, or a label without one"
    if (scores[:, 1:] > scores[:, :-1]).any():
        return "unsorted scores"
    if labels.size and n_labels is not None and labels.max() >= n_labels:
        return f"label {labels.max()} of {n_labels}"
    if any(len(set(row)) < len(row) for row in (row[row >= 0].tolist() for row in labels)):
        return "a label twice in a row"
    return ""


def outcomes(cases: list[Case]) -> Iterator[tuple[Case, str, str]]:
    """How each case ends: (case, what was changed, what became of it)."""
    rest = list(cases)
    while rest:
        n_done = 0
        for case, what, end in _in_a_child(rest):
            yield case, what, end
            n_done += 1
        rest = rest[n_done:]


def _in_a_child(cases: list[Case]) -> Iterator[tuple[Case, str, str]]:
    """The ends of cases in one forked process, until one of them ends the process itself."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_child(cases, writing)
    os.close(writing)
    with os.fdopen(reading) as lines:
        for case in cases:
            what, end = lines.readline().rstrip("\n"), lines.readline().rstrip("\n")
            if not end:
                _, status = os.waitpid(child, 0)
                name = signal.Signals(os.WTERMSIG(status)).name if status & 127 else str(status)
                yield case, what, "FAULT: hang" if name == "SIGALRM" else f"FAULT: {name}"
                return
            yield case, what, end
    os.waitpid(child, 0)


def _be_the_child(cases: list[Case], writing: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    for archive, seed in cases:
        folder, what = tampered(archive, seed)
        os.write(writing, f"{what}\n".encode())
        with tempfile.TemporaryDirectory() as path:
            folder.write(Path(path))
            signal.alarm(SECONDS)
            end = use(Path(path))
            signal.alarm(0)
        os.write(writing, (end.replace("\n", " ") + "\n").encode())
    os._exit(0)


def warm_up(archives: list[Path]) -> None:
    """Compile all that the cases need, so that no case has to.

    But for searches by FAISS, whose threads a forked process would wait for in vain.
    """
    for archive in archives:
        if archive.stem in ("LabelIndex-hnsw", "SiameseXML-fixed"):
            continue
        with tempfile.TemporaryDirectory() as path:
            Folder(archive).write(Path(path))
            end = use(Path(path))
            assert end == "answer", (archive, end)


def main() -> None:
    n_cases, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    models = [path for path in GOLDEN if path.stem not in WITH_TORCH or find_spec("torch")]
    warm_up(models)
    began, ends = time.perf_counter(), Counter()
    cases = [(models[i % len(models)], i) for i in range(first, first + n_cases)]
    for (archive, seed), what, end in outcomes(cases):
        ends[end.split(":")[0] + (end[5:] if end.startswith("error") else "")] += 1
        if end.startswith("FAULT"):
            print(f"{archive.stem} {seed}: {what}: {end}", flush=True)
    print(f"{n_cases} cases in {time.perf_counter() - began:.0f} s: {dict(ends.most_common())}")
    sys.exit(1 if ends["FAULT"] else 0)


if __name__ == "__main__":
    main()
