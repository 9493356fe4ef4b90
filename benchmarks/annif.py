"""The tagger compared with Annif on the same texts: how good, how fast, how large.

    python benchmarks/annif.py [SET ...]
    python benchmarks/annif.py cooking --systems "Tagger()" "Annif tfidf"

Reads sets of texts under `$UMPTEEN_DATA`. Annif gets an environment of its own in `.peers/annif`,
and every training and every prediction is a fresh process. `--systems` measures some rows again
and keeps the other rows of `results/annif.json`. To compare another tagger, add it to `TAGGERS`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from harness.annif.environment import ANNIF, make_annif
from harness.annif.files import LANGUAGES, VALIDATION, Files, prepare
from harness.environment import BENCHMARKS, PEERS_HOME, machine, variables, versions
from harness.measure import Stopwatch, disk_megabytes, latencies, peak_megabytes, reset_peak, timed
from harness.report import made_by, table_lines, write_results
from harness.runs import KERNELS, JobError, reason
from rich.console import Console
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.metrics import f1_at_k, ndcg_at_k, precision_at_k

SETS = ("cpv-it", "cooking", "eurlex57k")
Fit = Callable[[list[str], list[list[str]], dict[str, str], str], um.Tagger]
TAGGERS: dict[str, Fit] = {
    "Tagger(language=None), no names": lambda texts, labels, names, language: um.Tagger(
        language=None
    ).fit(texts, labels, label_texts=None),
    "Tagger()": lambda texts, labels, names, language: um.Tagger().fit(texts, labels),
    "Tagger(), label texts": lambda texts, labels, names, language: um.Tagger().fit(
        texts, labels, label_texts=names
    ),
    "Tagger(Ensemble), label texts": lambda texts, labels, names, language: um.Tagger(
        um.Ensemble([um.LabelTree.for_texts(), um.NearestCentroid()])
    ).fit(texts, labels, label_texts=names),
}

TITLES = {
    "tfidf": "Annif tfidf",
    "mllm": "Annif mllm",
    "parabel": "Annif omikuji, Parabel",
    "bonsai": "Annif omikuji, Bonsai",
    "parabel-tuned": "Annif omikuji, Parabel, tuned",
    "bonsai-tuned": "Annif omikuji, Bonsai, tuned",
    "ensemble": "Annif ensemble",
    "ensemble-tuned": "Annif ensemble, tuned",
}  # project: row
SYSTEMS = [*TITLES.values(), *TAGGERS]
PARABEL = {"cluster_balanced": True, "cluster_k": 2, "max_depth": 20}
BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
GRID = {"min_df": (1, 5), "ngram": (1, 2)}
MLLM_TEXTS = 5_000
LEARNT = {"mllm": {"limit": MLLM_TEXTS}}  # more of a job that trains

RESULTS = BENCHMARKS / "results" / "annif.json"
THREADS = os.cpu_count() or 1
COLUMNS = {
    "F1@5": 2, "nDCG@10": 2, "P@1": 2, "our F1@5": 2, "our nDCG@10": 2, "our P@1": 2,
}  # fmt: skip
COSTS = {
    "train_cpu": ("training, CPU s", 1),
    "train_wall": ("wall s", 1),
    "batch": ("µs per text", 0),
    "p50": ("single text, ms p50", 2),
    "p99": ("p99", 2),
    "train_peak": ("training, peak MB", 0),
    "predict_peak": ("prediction, peak MB", 0),
    "size": ("model, MB", 1),
}
LOG = Console(stderr=True)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--systems", nargs="+", default=[], metavar="SYSTEM")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds that a job may take")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        work(json.loads(options.job.read_text()))
        return
    if unknown := [*(set(options.sets) - set(SETS)), *(set(options.systems) - set(SYSTEMS))]:
        parser.error(f"unknown {unknown}; sets are {SETS}, systems are {SYSTEMS}")
    make_annif()
    results: Row = {"rows": [], "tuned": {}}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text())
    command = "python benchmarks/annif.py"  # which makes all rows, also those kept from before
    results |= {"command": command, "machine": machine(), "versions": our_and_their_versions()}
    for name in options.sets:
        bench = Bench(name, options.timeout, results["tuned"].get(name))
        for row in bench.rows(options.systems):
            results["tuned"][name] = bench.tuned | {"sizes": bench.sizes}
            results["rows"] = replaced(results["rows"], row)
            write_results(results, RESULTS, markdown(results))
    Console().print(markdown(results), markup=False, highlight=False)


def our_and_their_versions() -> Row:
    listed = subprocess.run(
        [str(ANNIF), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    ).stdout
    wanted = {"annif", "omikuji", "nltk", "numpy", "scipy", "scikit-learn"}
    found = {p["name"]: p["version"] for p in json.loads(listed) if p["name"] in wanted}
    return {"umpteen": versions()["umpteen"], "annif": found}


class Bench:
    """One data set: its files, its systems, and what was tuned for them."""

    def __init__(self, name: str, timeout: float, tuned: Row | None) -> None:
        self.name, self.timeout, self.tuned = name, timeout, tuned or {}
        self.whole, self.trial = prepare(name, PEERS_HOME / "annif-runs" / name)
        self.sizes = [*(len(self.whole.part(part).texts) for part in ("train", "test"))]
        self.sizes.append(len(self.whole.vocabulary))
        self.costs: dict[str, Row] = {}  # of trainings on all training texts

    @property
    def projects(self) -> dict[str, Row]:
        """Annif's projects by name, those of which others are made first."""
        found: dict[str, Row] = {
            "tfidf": {"backend": "tfidf"},
            "mllm": {"backend": "mllm"},
            "parabel": {"backend": "omikuji"},
            "bonsai": {"backend": "omikuji", **BONSAI},
        }
        for kind, features in self.tuned.get("best", {}).items():
            found[f"{kind}-tuned"] = found[kind] | features
        found["ensemble"] = {"backend": "ensemble", "sources": "tfidf,parabel,mllm"}
        sources = self.tuned.get("sources", "tfidf,mllm,parabel-tuned,bonsai-tuned")
        found["ensemble-tuned"] = {"backend": "ensemble", "sources": sources}
        return found

    def rows(self, wanted: list[str]) -> Iterator[Row]:
        """What was measured of each system, or why not."""
        if not wanted or ("best" not in self.tuned and any("tuned" in system for system in wanted)):
            self.tune()
        systems = {TITLES[name]: name for name in self.projects} | {name: name for name in TAGGERS}
        for system, name in systems.items():
            if not wanted or system in wanted:
                LOG.print(f"{self.name}: {system}")
                row: Row = {"set": self.name, "system": system}
                try:
                    row |= self.measure(name)
                except JobError as error:
                    LOG.print(str(error), style="red", markup=False)
                    row["failed"] = str(error)
                yield row

    def tune(self) -> None:
        """Choose Annif's settings on the validation part of the training texts."""
        LOG.print(f"{self.name}: settings of Annif")
        self.tuned = {}
        kinds = {"parabel": PARABEL, "bonsai": BONSAI}
        trial = {"omikuji": {"backend": "omikuji"}}
        job = {"task": "tune", "kinds": kinds, "grid": GRID, "projects": trial}
        self.tuned = self.run(ANNIF, job, self.trial, 10 * self.timeout)
        for name in ("tfidf", "mllm", "parabel-tuned", "bonsai-tuned"):
            self.train(name, self.trial)
        found = self.run(ANNIF, {"task": "weigh", "system": "ensemble-tuned"}, self.trial)
        self.tuned |= {"sources": found["sources"]}

    def measure(self, name: str) -> Row:
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            answers = str(Path(scratch) / "answers.npz")
            predict = {"task": "predict", "system": name, "answers": answers, "singles": 300}
            if name in TAGGERS:
                predict["model"] = str(Path(scratch) / "model")
                self.run(sys.executable, predict | {"task": "compile"}, self.whole)
                costs = self.run(sys.executable, predict | {"task": "train"}, self.whole)
                costs |= self.run(sys.executable, predict, self.whole)
            else:
                costs = self.train(name, self.whole) | self.run(ANNIF, predict, self.whole)
            quality = self.run(ANNIF, {"task": "evaluate", "answers": answers}, self.whole)
            return costs | quality | self.our_quality(answers)

    def train(self, name: str, files: Files) -> Row:
        """What the training of a project took; that of an ensemble is that of its sources."""
        settings = self.projects[name]
        if "sources" not in settings:
            job = {"task": "train", "system": name, **LEARNT.get(name, {})}
            found = self.run(ANNIF, job, files)
            if files is self.whole:
                self.costs[name] = found
            return found
        sources = [source.split(":")[0] for source in settings["sources"].split(",")]
        found = [self.costs.get(source) or self.train(source, files) for source in sources]
        summed = {
            key: sum(one[key] for one in found) for key in ("train_cpu", "train_wall", "size")
        }
        return summed | {"train_peak": max(one["train_peak"] for one in found)}

    def our_quality(self, answers: str) -> Row:
        found = np.load(answers)
        top = um.TopK(found["labels"], found["scores"])
        labels = self.whole.part("test").labels
        indptr = np.cumsum([0, *map(len, labels)])
        ids = np.concatenate([np.asarray(some, int) for some in labels])
        shape = (len(labels), len(self.whole.vocabulary))
        Y = csr_matrix((np.ones(len(ids), np.float32), ids, indptr), shape=shape)
        return {
            "our F1@5": 100 * float(f1_at_k(Y, top, 5)),
            "our nDCG@10": 100 * float(ndcg_at_k(Y, top, 10)),
            "our P@1": 100 * float(precision_at_k(Y, top, 1)),
        }

    def run(self, python: Any, job: Row, files: Files, timeout: float | None = None) -> Row:
        """What a fresh process measured."""
        theirs = python == ANNIF
        with tempfile.TemporaryDirectory(dir=PEERS_HOME) as scratch:
            path, measured = Path(scratch) / "job.json", Path(scratch) / "measured.json"
            common = {"folder": str(files.folder), "measured": str(measured), "threads": THREADS}
            path.write_text(json.dumps(common | {"projects": self.projects} | job))
            script = ["-P", "-m", "harness.annif.theirs"] if theirs else [__file__, "--job"]
            environment = variables(THREADS, KERNELS)
            if theirs:
                del environment["PYTHONPATH"]
            try:
                done = subprocess.run(
                    [str(python), *script, str(path)], env=environment, capture_output=True,
                    timeout=timeout or self.timeout,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise JobError(f"stopped after {timeout or self.timeout:,.0f} s") from None
            if done.returncode:
                raise JobError(reason(done.returncode, done.stderr.decode(errors="replace")))
            return json.loads(measured.read_text())


def work(job: Row) -> None:
    """Compile, train or predict with one of the taggers, in this process."""
    files = Files(Path(job["folder"]))
    found = predict(job, files) if job["task"] == "predict" else fit(job, *training(files))
    Path(job["measured"]).write_text(json.dumps(found))


def training(files: Files) -> tuple[list[str], list[list[str]], dict[str, str], str]:
    """What a tagger fits on: texts, labels, label texts and language."""
    part, entries = files.part("train"), files.vocabulary
    labels = [[entries[label]["label"] for label in some] for some in part.labels]
    names = {row["label"]: "; ".join(row["names"]) for row in entries}
    return part.texts, labels, names, files.language[0]


def fit(job: Row, texts: list[str], labels: list[list[str]], *others: Any) -> Row:
    """A small training loads what is compiled, off the clock."""
    train = TAGGERS[job["system"]]
    train(texts[:500], labels[:500], *others).predict_topk(texts[:50], 10)
    if job["task"] == "compile":
        return {}
    model = Path(job["model"])
    reset_peak()
    with Stopwatch() as watch:
        train(texts, labels, *others).save(model)
    size = disk_megabytes(model) if model.is_dir() else model.stat().st_size / 2**20
    costs = {"train_cpu": watch.cpu, "train_wall": watch.wall, "size": size}
    return costs | {"train_peak": peak_megabytes()}


def predict(job: Row, files: Files) -> Row:
    texts = files.part("test").texts
    tagger = um.load(job["model"])
    tagger.predict_topk(texts[:10], 10)
    reset_peak()
    top, passes = timed(lambda: tagger.predict_topk(texts, 10), 3, 20.0)
    peak = peak_megabytes()
    single = latencies(lambda text: tagger.predict_topk([text], 10), texts[: job["singles"]])
    ids = {row["label"]: i for i, row in enumerate(files.vocabulary)}
    ours = np.asarray([ids[name] for name in tagger.label_names_.names] + [-1])
    np.savez(job["answers"], labels=ours[top.labels], scores=top.scores)
    took = [1e6 * watch.wall / len(texts) for watch in passes]
    return {"batch": took[0], "batch_passes": took, "predict_peak": peak, **single}


def replaced(rows: list[Row], new: Row) -> list[Row]:
    """`rows` in order, with a new one in its place and without systems that are no more."""
    found = {(row["set"], row["system"]): row for row in (*rows, new)}
    return [found[key] for key in product(SETS, SYSTEMS) if key in found]


def markdown(results: Row) -> str:
    found, ours = results["versions"]["annif"], results["versions"]["umpteen"]
    told = ", ".join(f"{name} {version}" for name, version in found.items())
    parts = [
        "# The tagger compared with Annif",
        f"{made_by(results)} Annif's environment: {told}. Ours: umpteen {ours['umpteen']}.",
        NOTES,
    ]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["set"] == name]
        parts += [f"## {name}", about(results["tuned"][name], name), table(rows, COLUMNS)]
        parts.append(table(rows, {key: digits for key, (_, digits) in COSTS.items()}))
        parts += [f"{row['system']}: {row['failed']}." for row in rows if row.get("failed")]
    return "\n\n".join(parts) + "\n"


NOTES = f"""\
Same texts, same split; nothing is chosen on the test part. Metrics are in percent, over all labels
of the vocabulary. The first three are by Annif's own code (`annif.eval`), `our` are by
`umpteen.metrics`, which divides by 5 also where a system gives fewer labels.

Annif's settings are those of its documentation: `snowball` of the set's language, no transform,
limit 100, `Bonsai` as in its wiki. `tuned` chose `min_df` (1 or 5) and `ngram` (1 or 2) on
{VALIDATION:.0%} of the training texts. `ensemble` gives `tfidf`, `omikuji` (Parabel) and `mllm`
equal weights. `ensemble, tuned` has `tfidf`, `mllm` and both tuned `omikuji`, with weights by
Annif's own search on the same validation part. `mllm` learns from the first {MLLM_TEXTS:,} training
texts, and gets alternative names and broader labels where the set has them. `nn_ensemble` needs
TensorFlow and is left out. Annif cuts texts with NLTK's Punkt model, which is a download; here a
regular expression cuts sentences and words instead.

Training is from raw texts until the model is on disk, tuning not counted. Prediction is of the
whole test part from raw texts. Annif's time is the better of two passes: one process with its
limit of 100, and one process per core with a limit of 10. The tagger gives ten labels, and its
time is the best of up to three passes. Single texts get ten labels from both. The training of an
ensemble is that of its sources. Peak memory is of the main process, with its
texts and Python."""


def about(tuned: Row, name: str) -> str:
    """The sizes of a set and what was tuned for it."""
    n_train, n_test, n_labels = tuned["sizes"]
    language = LANGUAGES[name][1].title()
    told = f"{language}; {n_train:,} training texts, {n_test:,} test texts, {n_labels:,} labels."
    if "best" not in tuned:
        return told
    best = "; ".join(
        f"{kind} {', '.join(f'{key}={value}' for key, value in features.items())}"
        for kind, features in tuned["best"].items()
    )
    return f"{told} Tuned: {best}; sources `{tuned['sources']}`."


def table(rows: list[Row], columns: dict[str, int]) -> str:
    heads = [COSTS[key][0] if key in COSTS else key for key in columns]
    lines = [
        [row["system"], *(number(row.get(key), digits) for key, digits in columns.items())]
        for row in rows
    ]
    return table_lines([["system", *heads], *lines])


def number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


if __name__ == "__main__":
    main()
