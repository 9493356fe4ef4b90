"""A data set as files that both systems read; labels are positions in the vocabulary."""

import json
import lzma
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LANGUAGES = {
    "cpv-it": ("it", "italian"),
    "cooking": ("en", "english"),
    "eurlex57k": ("en", "english"),
}
FIRST = {"eurlex57k": 10_000}  # so many training texts, where not all
VALIDATION = 0.15

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Texts and their labels, as ids."""

    texts: list[str]
    labels: list[list[int]]


@dataclass(frozen=True)
class Files:
    """One folder: `train.jsonl`, `test.jsonl`, `vocabulary.jsonl` and `language.json`."""

    folder: Path

    def part(self, name: str) -> Part:
        rows = _read(self.folder / f"{name}.jsonl")
        return Part([row["text"] for row in rows], [row["labels"] for row in rows])

    @property
    def vocabulary(self) -> list[Row]:
        """Of every label: its `label`, its `names` with the preferred one first, its `parents`."""
        return _read(self.folder / "vocabulary.jsonl")

    @property
    def language(self) -> list[str]:
        """Its code and its name in English."""
        return json.loads((self.folder / "language.json").read_text())

    def write(self, language: tuple[str, str], **rows: list[Row]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "language.json").write_text(json.dumps(language))
        for name, some in rows.items():
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in some)
            (self.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def prepare(name: str, folder: Path) -> tuple[Files, Files]:
    """The set with its test part, and its training part split into training and validation."""
    source = Path(os.environ["UMPTEEN_DATA"]) / name
    train = _read(source / "train.jsonl.xz")[: FIRST.get(name)]
    test = _read(source / "test.jsonl.xz")
    vocabulary = _vocabulary(source, [*train, *test])
    ids = {row["label"]: i for i, row in enumerate(vocabulary)}
    for row in (*train, *test):
        row["labels"] = [ids[label] for label in row["labels"]]
    order = np.random.default_rng(0).permutation(len(train))
    n_validation = round(VALIDATION * len(train))
    parts = [[train[i] for i in sorted(rows)] for rows in np.split(order, [n_validation])]
    whole, trial = Files(folder / "test"), Files(folder / "validation")
    whole.write(LANGUAGES[name], train=train, test=test, vocabulary=vocabulary)
    trial.write(LANGUAGES[name], train=parts[1], test=parts[0], vocabulary=vocabulary)
    return whole, trial


def _vocabulary(source: Path, rows: list[Row]) -> list[Row]:
    """All labels of the set's own list and of its texts; without a list, labels are names."""
    path = source / "labels.jsonl.xz"
    listed = {row["label"]: row for row in _read(path)} if path.exists() else {}
    found = sorted({label for row in rows for label in row["labels"]} | set(listed))
    return [_entry(label, listed.get(label, {})) for label in found]


def _entry(label: str, listed: Row) -> Row:
    text = listed.get("text") or label.replace("-", " ")
    return {"label": label, "names": text.split("; "), "parents": listed.get("parents", [])}


def _read(path: Path) -> list[Row]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
