"""A real Annif trains, suggests, evaluates and learns with the backend `umpteen`.

`make clients` installs Annif in a folder of its own. Its commands run one after the other in one
process, as its import takes seconds; one of them runs as a person would call it.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import umpteen as um
from tests.serve.clients.install import folder as folder_of
from umpteen.data import Concept, LabelVocabulary, Samples, read_annif, write_annif
from umpteen.errors import MissingExtraError

ANNIF = folder_of("annif")
ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(ANNIF), "ANNIF_PROJECTS": "projects.cfg",
    "ANNIF_DATADIR": "data",
}  # fmt: skip

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


SESSION = """
import json, sys
from click.testing import CliRunner
from umpteen.contrib.annif import register
register()
from annif.cli import cli
from annif.cli_util import open_doc_path
from annif.vocab import SubjectIndexFile, VocabFileTSV

def annif(arguments, stdin):
    done = CliRunner().invoke(cli, arguments, input=stdin, prog_name="annif")
    return [done.exit_code, done.output]

def read(path):
    index = SubjectIndexFile()
    index.load_subjects(VocabFileTSV("vocabulary.tsv", "en"))
    documents = open_doc_path(path, index, "en").documents
    return [[d.text, sorted(index[s].uri for s in d.subject_set)] for d in documents]

for line in sys.stdin:
    name, *arguments = json.loads(line)
    answer = {"annif": annif, "read": read}[name](*arguments)
    print(json.dumps(answer), flush=True)
"""


class Session:
    """A process that has imported Annif, and does one thing after the other."""

    def __init__(self, folder):
        self.folder = folder
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SESSION], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True, cwd=folder, env=ENVIRONMENT,
            )  # fmt: skip

    def ask(self, *question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, (self.folder / "log").read_text()
        return json.loads(answer)

    def annif(self, *arguments, stdin="", code=0):
        found, told = self.ask("annif", arguments, stdin)
        assert found == code, told
        return told

    def __truediv__(self, name):
        return self.folder / name


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if not ANNIF.exists():
        pytest.skip("there is no Annif: make clients")
    folder = tmp_path_factory.mktemp("annif")
    (folder / "projects.cfg").write_text(PROJECTS)
    um.data.write_annif_vocabulary(VOCABULARY, folder / "vocabulary.tsv")
    for name in ("train.tsv.gz", "train.csv", "train.jsonl", "train"):
        write_annif(documents(), folder / name, VOCABULARY)
    write_annif(documents(), folder / "keys", VOCABULARY, subjects="key")
    session = Session(folder)
    session.annif("load-vocab", "--language", "en", "kitchen", "vocabulary.tsv")
    session.annif("train", "ours", "train.tsv.gz")
    yield session
    session.process.kill()
    session.process.wait()


def test_it_runs_from_the_command_line(place):
    done = subprocess.run(
        [sys.executable, "-m", "umpteen.contrib.annif", "show-project", "ours"], cwd=place.folder,
        capture_output=True, text=True, timeout=300, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Ours" in done.stdout


def test_suggestions_are_those_of_the_tagger(place):
    tagger = um.load(place / "data" / "projects" / "ours" / "umpteen-model")
    assert set(tagger.labels) == {BASE + name for name in (*WORDS, "rye")}
    text = "knead dough, then simmer a broth"
    found = [line.split("\t") for line in place.annif("suggest", "ours", stdin=text).splitlines()]
    expected = tagger.predict(text, k=10)
    assert [(uri[1:-1], name) for uri, name, _ in found] == [
        (uri, uri.removeprefix(BASE)) for uri, _ in expected
    ]
    for (*_, score), (_, probability) in zip(found, expected, strict=True):
        assert float(score) == pytest.approx(probability, abs=1e-3)


def test_annif_evaluates_it(place):
    place.annif("eval", "ours", "train", "--metrics-file", "metrics.json", "-j", "1")
    metrics = json.loads((place / "metrics.json").read_text())
    assert metrics["NDCG"] > 0.9


def test_it_learns_from_more_documents(place):
    model = place / "data" / "projects" / "ours" / "umpteen-model"
    text = "sour starter jar"
    before = um.load(model).predict(text)
    more = Samples(texts=[f"{text} {i}" for i in range(8)], labels=[["rye"]] * 8)
    write_annif(more, place / "more.tsv", VOCABULARY)
    place.annif("learn", "ours", "more.tsv")
    assert BASE + "rye" not in dict(before)
    assert um.load(model).predict(text, k=1)[0][0] == BASE + "rye"


def test_errors_are_those_of_annif(place):
    assert "not trained" in place.annif("suggest", "plain", stdin="dough", code=1)
    place.annif("train", "plain", "train.csv")
    told = place.annif("learn", "plain", "train.csv", code=1)
    assert "Operation failed" in told
    assert "Traceback" not in told
    assert "Not supported" in place.annif("train", "plain", "--cached", code=1)


@pytest.mark.parametrize("name", ["train.tsv.gz", "train.csv", "train.jsonl", "train", "keys"])
def test_annif_reads_what_we_write_as_we_do(place, name):
    theirs = place.ask("read", name)
    ours = read_annif(place / name, um.data.read_vocabulary(place / "vocabulary.tsv"))
    assert theirs == [
        [text, sorted(own)] for text, own in zip(ours.texts, ours.labels, strict=True)
    ]
    assert ours.texts == documents().texts
