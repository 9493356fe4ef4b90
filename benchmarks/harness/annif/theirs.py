"""One job of Annif in a process of its own: `python -P -m harness.annif.theirs job.json`.

Annif cuts texts by NLTK's Punkt model, which it downloads. Here a regular expression does that.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import annif.analyzer.analyzer
import annif.eval
import annif.parallel
import nltk.data
import numpy as np
from annif.corpus import Document, DocumentList, SubjectSet
from annif.project import AnnifProject
from annif.registry import AnnifRegistry
from annif.suggestion import SuggestionBatch
from annif.vocab import VocabFileSKOS
from rdflib import RDF, SKOS, Graph, Literal, URIRef
from scipy.sparse import csr_array, vstack

from harness.annif.files import Files
from harness.measure import Stopwatch, disk_megabytes, latencies, peak_megabytes, reset_peak

BASE = "http://vocabulary.example/"
CACHES = ("omikuji-train.txt", "mllm-train.gz")  # not needed to predict
METRICS = {"F1@5": "F1@5", "NDCG@10": "nDCG@10", "Precision@1": "P@1"}
TRIALS = 30  # of Annif's search for the weights of an ensemble

Job = dict[str, Any]


def cut_by_expression() -> None:
    """Replace the two functions of Annif's analyzers that need Punkt."""
    word, gap = re.compile(r"\w+"), re.compile(r"(?<=[.!?])\s+")

    def tokenize_words(self: Any, text: str, filter: bool = True) -> list[str]:  # noqa: A002
        words = word.findall(text)
        return [self._normalize_word(w) for w in words if not filter or self.is_valid_token(w)]

    annif.analyzer.analyzer.Analyzer.tokenize_words = tokenize_words
    annif.analyzer.analyzer.Analyzer.tokenize_sentences = lambda _, text: gap.split(text)
    nltk.data.find = lambda *_, **__: None


class Projects:
    """The projects of a folder, set up from the job's settings, with their vocabulary."""

    def __init__(self, job: Job) -> None:
        self.files = Files(Path(job["folder"]))
        self.place = self.files.folder / "annif"
        self.place.mkdir(exist_ok=True)
        config = self.place / "projects.cfg"
        config.write_text("\n".join(self._sections(job["projects"])))
        self.registry = AnnifRegistry(str(config), str(self.place), init_projects=False)
        vocabulary = self.registry.get_vocab("names")
        if not (self.place / "vocabs" / "names").exists():
            vocabulary.load_vocabulary(VocabFileSKOS(str(self._skos())))
        self.subjects = vocabulary.subjects
        uris = [f"{BASE}{i}" for i in range(len(self.files.vocabulary))]
        self.subject_of = [self.subjects.by_uri(uri) for uri in uris]
        self.label_of = np.full(len(self.subjects), -1)
        self.label_of[self.subject_of] = np.arange(len(uris))

    def __getitem__(self, name: str) -> AnnifProject:
        return self.registry.get_project(name)

    def size(self, name: str) -> float:
        folder = self.place / "projects" / name
        cached = [path.stat().st_size for cache in CACHES for path in folder.glob(cache)]
        return disk_megabytes(folder) - sum(cached) / 2**20

    def corpus(self, part: str, limit: int | None = None) -> DocumentList:
        given = self.files.part(part)
        pairs = list(zip(given.texts, given.labels, strict=True))[:limit]
        return DocumentList([Document(text, self._gold(labels)) for text, labels in pairs])

    def _gold(self, labels: list[int]) -> SubjectSet:
        return SubjectSet([self.subject_of[label] for label in labels])

    def _sections(self, projects: dict[str, dict[str, Any]]) -> Iterator[str]:
        code, language = self.files.language
        common = {"language": code, "vocab": "names", "analyzer": f"snowball({language})"}
        for name, settings in projects.items():
            lines = (f"{key}={value}" for key, value in (common | settings).items())
            yield "\n".join([f"[{name}]", *lines])

    def _skos(self) -> Path:
        graph, entries = Graph(), self.files.vocabulary
        ids, code = {row["label"]: i for i, row in enumerate(entries)}, self.files.language[0]
        for i, row in enumerate(entries):
            concept = URIRef(f"{BASE}{i}")
            graph.add((concept, RDF.type, SKOS.Concept))
            for j, name in enumerate(row["names"]):
                kind = SKOS.altLabel if j else SKOS.prefLabel
                graph.add((concept, kind, Literal(name, lang=code)))
            for parent in filter(ids.__contains__, row["parents"]):
                graph.add((concept, SKOS.broader, URIRef(f"{BASE}{ids[parent]}")))
                graph.add((URIRef(f"{BASE}{ids[parent]}"), SKOS.narrower, concept))
        graph.serialize(path := self.place / "vocabulary.ttl", format="turtle")
        return path


def train(job: Job) -> Job:
    """Train one project on the training part; Annif saves it as it trains."""
    projects = Projects(job)
    name, corpus = job["system"], projects.corpus("train", job.get("limit"))
    shutil.rmtree(projects.place / "projects" / name, ignore_errors=True)
    project = projects[name]
    _ = project.analyzer, project.subjects
    reset_peak()
    with Stopwatch() as watch:
        project.train(corpus)
    size = {"size": projects.size(name)}
    return {"train_cpu": watch.cpu, "train_wall": watch.wall, "train_peak": peak_megabytes()} | size


def predict(job: Job) -> Job:
    """Predict the test part in one process and in several, and single texts; leave the answers."""
    projects = Projects(job)
    name, corpus = job["system"], projects.corpus("test")
    project = projects[name]
    project.initialize(parallel=True)
    texts = [Document(text=document.text) for document in corpus.documents]
    for document in texts[:10]:
        project.suggest([document])
    with Stopwatch() as one:
        batches = list(project.suggest_corpus(corpus).batches)
    peak = peak_megabytes()
    save_answers(job["answers"], batches, projects)
    ten = {project.backend.backend_id: {"limit": 10}}
    mapped = annif.parallel.ProjectSuggestMap(projects.registry, [name], ten, 10, 0.0)
    jobs, pool_class = annif.parallel.get_pool(job["threads"])
    with pool_class(jobs) as pool, Stopwatch() as several:
        list(pool.imap(mapped.suggest_batch, corpus.doc_batches))
    single = latencies(lambda document: project.suggest([document], ten), texts[: job["singles"]])
    passes = [1e6 * watch.wall / len(texts) for watch in (one, several)]
    return {"batch": min(passes), "batch_passes": passes, "predict_peak": peak, **single}


def save_answers(path: str, batches: list[SuggestionBatch], projects: Projects) -> None:
    """The ten best of every text, best first; -1 where there are fewer."""
    found = csr_array(vstack([batch.array for batch in batches]))
    labels = np.full((found.shape[0], 10), -1)
    scores = np.full((found.shape[0], 10), -np.inf)
    for i in range(found.shape[0]):
        row = slice(found.indptr[i], found.indptr[i + 1])
        best = np.argsort(-found.data[row], kind="stable")[:10]
        best = best[found.data[row][best] > 0]
        labels[i, : len(best)] = projects.label_of[found.indices[row][best]]
        scores[i, : len(best)] = found.data[row][best]
    np.savez(path, labels=labels, scores=scores)


def evaluate(job: Job) -> Job:
    """Annif's evaluation of saved answers; a rank stands for a score, so ties keep their order."""
    projects = Projects(job)
    labels = np.load(job["answers"])["labels"]
    subjects = np.asarray(projects.subject_of)[labels]
    ranks = np.broadcast_to(1 / np.arange(1, labels.shape[1] + 1), labels.shape)
    rows = np.indices(labels.shape)[0]
    given = labels >= 0
    shape = (len(labels), len(projects.subjects))
    found = csr_array((ranks[given], (rows[given], subjects[given])), shape=shape, dtype=np.float32)
    batch = annif.eval.EvaluationBatch(projects.subjects)
    gold = [document.subject_set for document in projects.corpus("test").documents]
    batch.evaluate_many(SuggestionBatch(found), gold)
    results = batch.results(metrics=list(METRICS))
    return {METRICS[name]: 100 * float(results[name]) for name in METRICS}


def tune(job: Job) -> Job:
    """The best `min_df` and `ngram` of each kind of Omikuji, on the validation part."""
    projects = Projects(job)
    corpus = projects.corpus("train")
    scores: dict[str, dict[str, float]] = {kind: {} for kind in job["kinds"]}
    for min_df, ngram in product(*job["grid"].values()):
        features, given = {"min_df": min_df, "ngram": ngram}, corpus
        for kind, settings in job["kinds"].items():
            project = projects["omikuji"]
            project.train(given, {"omikuji": settings | features})
            given = "cached"  # the kinds share their features
            scores[kind][json.dumps(features)] = quality(project, projects)
    best = {kind: json.loads(max(found, key=found.__getitem__)) for kind, found in scores.items()}
    return {"scores": scores, "best": best}


def quality(project: AnnifProject, projects: Projects) -> float:
    batch = annif.eval.EvaluationBatch(projects.subjects)
    for documents in projects.corpus("test").doc_batches:
        found = project.suggest(documents, {project.backend.backend_id: {"limit": 10}})
        batch.evaluate_many(found, [document.subject_set for document in documents])
    return sum(batch.results(metrics=["F1@5", "NDCG@10"])[name] for name in ("F1@5", "NDCG@10"))


def weigh(job: Job) -> Job:
    """The weights of an ensemble, by Annif's own search on the validation part."""
    projects = Projects(job)
    project, corpus = projects[job["system"]], projects.corpus("test")
    found = project.hyperopt(corpus, TRIALS, job["threads"], "NDCG@10", None)
    return {"sources": found.lines[0].removeprefix("sources="), "score": found.score}


TASKS: dict[str, Callable[[Job], Job]] = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "tune": tune,
    "weigh": weigh,
}

if __name__ == "__main__":
    cut_by_expression()
    job = json.loads(Path(sys.argv[1]).read_text())
    Path(job["measured"]).write_text(json.dumps(TASKS[job["task"]](job)))
