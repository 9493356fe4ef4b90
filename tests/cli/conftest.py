"""A small cookery data set and a model of it, as a person would have them on disk."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from tests.forked import COMMAND
from umpteen.cli import main

WORDS = {
    "bread": "dough loaf knead crust flour",
    "soup": "broth ladle stock simmer bowl",
    "cheese": "rind curd milk cheddar brie",
    "grilling": "charcoal grate skewer smoke ribs",
    "knives": "blade sharpen steel edge whetstone",
    "coffee": "beans espresso grind filter crema",
}


def made_up(n, seed=0, prefix="t"):
    """Samples whose labels are plain from their words."""
    draw = random.Random(seed)
    for i in range(n):
        labels = sorted(draw.sample(sorted(WORDS), draw.choice([1, 1, 2])))
        words = [word for label in labels for word in draw.sample(WORDS[label].split(), 3)]
        yield {"id": f"{prefix}{i}", "text": "how about " + " ".join(words), "labels": labels}


def write_lines(path, items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def run(*arguments, stdin=b"", code=0, timeout=60, **options):
    """The command in a process of its own; its output as text."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=timeout,
        **options,
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("cookery")
    write_lines(place / "train.jsonl", made_up(300))
    write_lines(place / "test.jsonl", made_up(40, seed=1))
    (place / "train.xmc.txt").write_text(
        "6 4 3\n0 0:1\n0 0:1 3:1\n1 1:1\n1 1:1 3:1\n2 2:1\n2 2:1 3:1\n"
    )
    (place / "test.svm").write_text("0 1:1\n1 2:1\n")
    return place


@pytest.fixture(scope="session")
def model(folder) -> Path:
    with pytest.raises(SystemExit) as ended:
        main(["fit", f"{folder}/train.jsonl", "-o", f"{folder}/model", "--keep-texts"])
    assert ended.value.code == 0
    return folder / "model"


@pytest.fixture(scope="session")
def matrix_model(folder) -> Path:
    with pytest.raises(SystemExit) as ended:
        main(["fit", f"{folder}/train.xmc.txt", "-o", f"{folder}/matrix"])
    assert ended.value.code == 0
    return folder / "matrix"


@pytest.fixture
def ask(call):
    """The records that a command answers with in a pipe."""

    def asked(*arguments):
        out, _ = call(*arguments)
        return [json.loads(line) for line in out.splitlines()]

    return asked
