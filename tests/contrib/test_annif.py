"""A real Annif trains, suggests, evaluates and learns with the backend `umpteen`.

It runs where Annif is installed: in this environment, or in the one whose command
`UMPTEEN_ANNIF=/path/to/bin/annif` names. That environment needs umpteen's dependencies as well.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import umpteen as um
from umpteen.data import Concept, LabelVocabulary, Samples, read_annif, write_annif
from umpteen.errors import MissingExtraError

ANNIF = os.environ.get("UMPTEEN_ANNIF")
PYTHON = str(Path(ANNIF).parent / "python") if ANNIF else sys.executable
SOURCE = Path(um.__file__).parents[1]

BASE = "http://example.org/"
WORDS = {
    "bread": "dough loaf knead crust flour", "tea": "kettle leaves oolong brew cup",
    "soup": "broth ladle stock simmer bowl",
}  # fmt: skip
VOCABULARY = LabelVocabulary.of(
    [*(Concept(name, name, uri=BASE + name) for name in WORDS), Concept("rye", uri=BASE + "rye")]
)
PROJECTS = """
[ours]
name=Ours
language=en
backend=umpteen
vocab=kitchen
n_trees=2
allow_learn=True

[plain]
name=Without names
language=en
backend=umpteen
vocab=kitchen
use_labels=false
keep=0
allow_learn=True
"""


def documents(n=120):
    names = list(WORDS)
    texts, labels = [], []
    for i in range(n):
        name, other = names[i % 3], names[(i // 3) % 3]
        words = WORDS[name].split()
        texts.append(f"{words[i % 5]} and {words[(i // 3 + 1) % 5]}, {WORDS[other].split()[i % 5]}")
        labels.append(sorted({name, other}))
    return Samples(texts=texts, labels=labels)


def test_without_annif_the_advice_is_to_install_it():
    if find_spec("annif"):
        pytest.skip("Annif is installed here")
    from umpteen.contrib.annif import register

    with pytest.raises(MissingExtraError, match="pip install annif"):
        register()


def is_ready():
    code = "import annif, umpteen.contrib.annif as a; a.register()"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return (
        subprocess.run([PYTHON, "-c", code], capture_output=True, env=environment).returncode == 0
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if not (ANNIF or find_spec("annif")):
        pytest.skip("Annif is not installed; UMPTEEN_ANNIF names no command annif")
    if not is_ready():
        pytest.skip(f"{PYTHON} cannot import both Annif and umpteen")
    folder = tmp_path_factory.mktemp("annif")
    (folder / "projects.cfg").write_text(PROJECTS)
    um.data.write_annif_vocabulary(VOCABULARY, folder / "vocabulary.tsv")
    annif(folder, "load-vocab", "--language", "en", "kitchen", "vocabulary.tsv")
    for name in ("train.tsv.gz", "train.csv", "train.jsonl", "train"):
        write_annif(documents(), folder / name, VOCABULARY)
    write_annif(documents(), folder / "keys", VOCABULARY, subjects="key")
    annif(folder, "train", "ours", "train.tsv.gz")
    return folder


def run(place, *command, stdin="", code=0):
    done = subprocess.run(
        [PYTHON, *command], input=stdin, capture_output=True, text=True, timeout=300, cwd=place,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "ANNIF_PROJECTS": "projects.cfg",
             "ANNIF_DATADIR": "data"},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def annif(place, *arguments, **options):
    return run(place, "-m", "umpteen.contrib.annif", *arguments, **options)


def test_suggestions_are_those_of_the_tagger(place):
    tagger = um.load(place / "data" / "projects" / "ours" / "umpteen-model")
    assert set(tagger.labels) == {BASE + name for name in (*WORDS, "rye")}
    text = "knead dough, then simmer a broth"
    found = [line.split("\t") for line in annif(place, "suggest", "ours", stdin=text).splitlines()]
    expected = tagger.predict(text, k=10)
    assert [(uri[1:-1], name) for uri, name, _ in found] == [
        (uri, uri.removeprefix(BASE)) for uri, _ in expected
    ]
    for (*_, score), (_, probability) in zip(found, expected, strict=True):
        assert float(score) == pytest.approx(probability, abs=1e-3)


def test_annif_evaluates_it(place):
    annif(place, "eval", "ours", "train", "--metrics-file", "metrics.json", "-j", "1")
    metrics = json.loads((place / "metrics.json").read_text())
    assert metrics["NDCG"] > 0.9


def test_it_learns_from_more_documents(place):
    model = place / "data" / "projects" / "ours" / "umpteen-model"
    text = "sour starter jar"
    before = um.load(model).predict(text)
    more = Samples(texts=[f"{text} {i}" for i in range(8)], labels=[["rye"]] * 8)
    write_annif(more, place / "more.tsv", VOCABULARY)
    annif(place, "learn", "ours", "more.tsv")
    assert BASE + "rye" not in dict(before)
    assert um.load(model).predict(text, k=1)[0][0] == BASE + "rye"


def test_errors_are_those_of_annif(place):
    assert "not trained" in annif(place, "suggest", "plain", stdin="dough", code=1)
    annif(place, "train", "plain", "train.csv")
    told = annif(place, "learn", "plain", "train.csv", code=1)
    assert "Operation failed" in told
    assert "Traceback" not in told
    assert "Not supported" in annif(place, "train", "plain", "--cached", code=1)


READ = """
import json, sys
from annif.cli_util import open_doc_path
from annif.vocab import SubjectIndexFile, VocabFileTSV
index = SubjectIndexFile()
index.load_subjects(VocabFileTSV("vocabulary.tsv", "en"))
documents = open_doc_path(sys.argv[1], index, "en").documents
print(json.dumps([[d.text, sorted(index[s].uri for s in d.subject_set)] for d in documents]))
"""


@pytest.mark.parametrize("name", ["train.tsv.gz", "train.csv", "train.jsonl", "train", "keys"])
def test_annif_reads_what_we_write_as_we_do(place, name):
    theirs = json.loads(run(place, "-c", READ, name))
    ours = read_annif(place / name, um.data.read_vocabulary(place / "vocabulary.tsv"))
    assert theirs == [
        [text, sorted(own)] for text, own in zip(ours.texts, ours.labels, strict=True)
    ]
    assert ours.texts == documents().texts
