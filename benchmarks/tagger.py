"""The tagger on real texts: how good, how sure, how fast, compared with PECOS on the same texts.

    python benchmarks/tagger.py [set ...]

Reads sets of texts under `$UMPTEEN_DATA`; `pydocs` is built in. Everything is chosen on a dev part
(where a set has none, on 15 % of train), also PECOS's costs, threshold and features; figures are
of the test part, without labels that training does not have. PECOS gets scikit-learn's TF-IDF of
words, of words and pairs, or our features; the time to make them is not counted for it.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from harness.accuracy import accuracy
from harness.environment import PEERS_HOME, machine, make_peers, results_folder, versions
from harness.matrices import Matrices
from harness.measure import disk_megabytes
from harness.report import made_by, table_lines, write_results
from harness.runs import Round
from harness.systems import SINGLE, System
from rich.console import Console
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um
from umpteen.data import Dataset
from umpteen.metrics import expected_calibration_error, sets
from umpteen.metrics.hits import found_in
from umpteen.text import Vectorizer

SETS = ("eurlex57k", "debian-tags", "cooking", "pydocs")
FEATURES = {
    "words": lambda: TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32),
    "pairs": lambda: TfidfVectorizer(
        sublinear_tf=True, min_df=2, ngram_range=(1, 2), dtype=np.float32
    ),
    "ours": Vectorizer,
}
GRID = [
    {"Cp": positive, "Cn": negative, "threshold": threshold}
    for positive, negative, threshold in ((1, 1, 0.1), (2, 2, 0.1), (2, 1, 0.05), (1, 0.5, 0.1))
]
QUALITY = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")
LOG = Console(stderr=True)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    make_peers()
    warm_up()
    results: Row = {
        "command": shlex.join(["python", "benchmarks/tagger.py", *sys.argv[1:]]),
        "machine": machine(),
        "versions": versions(),
        "rows": [],
        "calibration": [],
        "speed": [],
    }
    for name in options.sets:
        data = known_labels_only(um.data.load(name))
        for row in taggers(name, data, results):
            results["rows"].append(row)
        for row in peers(name, data, options.timeout):
            results["rows"].append(row)
        write_results(results, results_folder(False) / "tagger.json", markdown(results))
    Console().print(markdown(results), markup=False, highlight=False)


def warm_up() -> None:
    """Compile everything once."""
    texts, labels = ["a red apple", "iron ore", "a green pear"] * 60, [["x"], ["y"], ["x"]] * 60
    um.Tagger().fit(texts, labels).predict(texts)


def known_labels_only(data: Dataset) -> Dataset:
    """Labels that no training text has are nobody's fault."""
    seen = np.flatnonzero(np.diff(data.train.Y.tocsc().indptr))
    names = [data.label_names[i] for i in seen]
    parts = {
        part: replace(one, Y=csr_matrix(one.Y[:, seen]), label_names=names)
        for part, one in data.splits.items()
    }
    return replace(data, label_names=names, label_texts=None, **parts)


def taggers(name: str, data: Dataset, results: Row) -> Iterator[Row]:
    for title, tagger in {
        "Tagger()": um.Tagger(),
        "Tagger, three trees": um.Tagger(um.LabelTree.for_texts(n_trees=3)),
    }.items():
        LOG.print(f"{name}: {title}")
        cpu, wall = time.process_time(), time.perf_counter()
        tagger.fit(data.train.texts, data.train.labels)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if title == "Tagger()":
            results["calibration"].append({"set": name, **calibration(tagger, data)})
            results["speed"].append({"set": name, **speed(tagger, data.test.texts)})
        top = in_order(tagger, data)
        yield {
            "set": name,
            "system": title,
            "cpu": cpu,
            "wall": wall,
            **sizes(tagger),
            **accuracy(top, data.test.Y, data.train.Y),
        }


def in_order(tagger: um.Tagger, data: Dataset, k: int = 5) -> um.TopK:
    """Answers by the data set's own numbers of labels."""
    number = {name: i for i, name in enumerate(data.label_names)}
    ids = np.array([number[name] for name in tagger.label_names_.names] + [-1], np.int32)
    top = tagger.predict_topk(data.test.texts, k)
    return um.TopK(ids[top.labels], top.scores)


def sizes(tagger: um.Tagger) -> Row:
    with TemporaryDirectory() as folder:
        tagger.save(Path(folder) / "all")
        kept, tagger.replay_ = tagger.replay_, replace_rows(tagger.replay_)
        tagger.save(Path(folder) / "slim")
        tagger.replay_ = kept
        slim, everything = (disk_megabytes(Path(folder) / part) for part in ("slim", "all"))
    return {"size": slim, "with_replay": everything}


def replace_rows(replay: Any) -> Any:
    return replace(replay, X=replay.X[:0], Y=replay.Y[:0])


def calibration(tagger: um.Tagger, data: Dataset) -> Row:
    """Over the best five labels of each text: errors, and what thresholds give."""
    texts, Y = data.test.texts, tagger.label_names_.matrix(data.test.labels)
    raw = tagger.classifier_.predict_topk(tagger.vectorizer_.transform(texts), 5)
    top, wide = tagger.predict_topk(texts, 5), tagger.predict_topk(texts, 20)
    hits, wide_hits = found_in(Y, top.labels), found_in(Y, wide.labels)
    given = top.labels >= 0
    found: Row = {
        "before": expected_calibration_error(raw.scores[given], hits[given]),
        "after": expected_calibration_error(top.scores[given], hits[given]),
    }
    for level in (0.5, 0.7, 0.9):
        above = wide.scores >= level
        near = np.abs(wide.scores - level) <= 0.05
        found[f"above {level}"] = share(wide_hits[above])
        found[f"near {level}"] = share(wide_hits[near])
        found[f"labels {level}"] = above.sum() / len(texts)
        found[f"precision@{level}"] = reached(tagger, f"precision@{level}", wide, wide_hits)
    for metric in ("micro_f1", "macro_f1"):
        chosen = tagger.tune_thresholds(metric).apply(wide).to_csr(Y.shape[1])
        usual = top.first(max(1, tagger.classifier_.labels_per_sample_)).to_csr(Y.shape[1])
        score = getattr(sets, metric)
        found[metric], found[f"{metric} top"] = score(Y, chosen), score(Y, usual)
    return found


def share(hits: np.ndarray) -> float | None:
    return float(hits.mean()) if len(hits) >= 20 else None


def reached(tagger: um.Tagger, metric: str, top: um.TopK, hits: np.ndarray) -> float | None:
    try:
        least = tagger.tune_thresholds(metric).least
    except um.errors.ParameterError:
        return None
    return share(hits[top.scores >= least])


def speed(tagger: um.Tagger, texts: list[str]) -> Row:
    """Microseconds per text in a batch, by part; of a single text; best of three passes."""
    X = tagger.vectorizer_.transform(texts)
    best = tagger.classifier_.predict_topk(X, 20)
    parts = {
        "vectorise": lambda: tagger.vectorizer_.transform(texts),
        "classify": lambda: tagger.classifier_.predict_topk(X, 20),
        "calibrate": lambda: tagger.calibration_(best) if tagger.calibration_ else best,
        "all": lambda: tagger.predict(texts),
    }
    found = {name: 1e6 * fastest(part) / len(texts) for name, part in parts.items()}
    waits = []
    for text in texts[:1000]:
        start = time.perf_counter()
        tagger.predict(text)
        waits.append(1e6 * (time.perf_counter() - start))
    one = {"p50": float(np.median(waits)), "p99": float(np.quantile(waits, 0.99))}
    return {**found, **one, "characters": float(np.mean([len(text) for text in texts]))}


def fastest(call: Any, passes: int = 3) -> float:
    times = []
    for _ in range(passes):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peers(name: str, data: Dataset, timeout: float) -> Iterator[Row]:
    """PECOS with its defaults on three kinds of features, and tuned on the dev part."""
    trial = data if data.dev is not None else data.split(0.15)
    scores: dict[tuple[str, int], float] = {}
    for features in FEATURES:
        matrices = prepare(name, "test", features, data.train, data.test)
        yield run(name, f"PECOS, {features}", matrices, {}, timeout)
        chosen = prepare(name, "dev", features, trial.train, trial.dev)
        for i, settings in enumerate(GRID if features != "words" else GRID[:1]):
            tried = run(name, f"on dev: {features} {settings}", chosen, settings, timeout)
            scores[features, i] = sum(tried.get(f"P@{k}", 0) for k in (1, 3, 5))
            LOG.print(f"{scores[features, i] / 3:.2f}")
    features, best = max(scores, key=scores.__getitem__)
    matrices = prepare(name, "test", features, data.train, data.test)
    told = ", ".join(f"{key}={value}" for key, value in GRID[best].items())
    yield run(name, f"PECOS, tuned: {features}, {told}", matrices, GRID[best], timeout)


def prepare(name: str, part: str, features: str, train: Any, test: Any) -> Matrices:
    matrices = Matrices(PEERS_HOME / "matrices" / f"texts-{name}-{part}-{features}")
    if not matrices.complete:
        matrices.begin()
        vectorizer = FEATURES[features]()
        matrices.save("X_train", vectorizer.fit_transform(train.texts))
        matrices.save("X_test", vectorizer.transform(test.texts))
        matrices.save("Y_train", train.Y)
        matrices.save("Y_test", test.Y)
        matrices.finish()
    return matrices


def run(name: str, title: str, matrices: Matrices, settings: Row, timeout: float) -> Row:
    LOG.print(f"{name}: {title}")
    system = System(title, "pecos", SINGLE, settings, {"chunks": "HASH_CHUNKED"})
    turn = Round(matrices, seed=0, timeout=timeout)
    found, failure = turn.gather(system, turn.training, turn.prediction)
    if failure:
        LOG.print(failure, style="red", markup=False)
        return {"set": name, "system": title, "failed": failure}
    kept = {key: found[key] for key in QUALITY}
    times = {"cpu": found["train_cpu"], "wall": found["train_wall"], "size": found["size"]}
    return {"set": name, "system": title, **times, **kept}


def markdown(results: Row) -> str:
    quality = [["set", "system", *QUALITY, "training, CPU s", "model, MB"]]
    quality += [
        [
            row["set"], row["system"], *(number(row.get(key)) for key in QUALITY),
            number(row.get("cpu"), 1),
            number(row.get("size"), 1)
            + (f" ({row['with_replay']:.0f} with kept samples)" if "with_replay" in row else ""),
        ]
        for row in results["rows"]
    ]  # fmt: skip
    calibrated = [[
        "set", "ECE before, points", "after", "right at 0.5 / 0.7 / 0.9 or more", "right near it",
        "labels per text", "precision@0.5 / 0.7 / 0.9 gives", "micro F1 tuned (usual k)",
        "macro F1 tuned (usual k)",
    ]]  # fmt: skip
    for row in results["calibration"]:
        levels = {
            key: " / ".join(number(row[f"{key}{level}"], 1, 100) for level in (0.5, 0.7, 0.9))
            for key in ("above ", "near ", "precision@")
        }
        labels = " / ".join(number(row[f"labels {level}"]) for level in (0.5, 0.7, 0.9))
        f1 = [f"{100 * row[m]:.1f} ({100 * row[f'{m} top']:.1f})" for m in ("micro_f1", "macro_f1")]
        errors = [number(row[key], 1, 100) for key in ("before", "after")]
        calibrated.append(
            [
                row["set"],
                *errors,
                levels["above "],
                levels["near "],
                labels,
                levels["precision@"],
                *f1,
            ]
        )
    fast = [["set", "characters per text", "texts per second", "µs per text", "vectorise",
             "classify", "calibrate", "single text, µs p50", "p99"]]  # fmt: skip
    fast += [
        [
            row["set"], number(row["characters"], 0), f"{1e6 / row['all']:,.0f}",
            *(number(row[key], 1) for key in ("all", "vectorise", "classify", "calibrate")),
            number(row["p50"], 0), number(row["p99"], 0),
        ]
        for row in results["speed"]
    ]  # fmt: skip
    parts = [
        "# Raw texts: the tagger compared with PECOS",
        made_by(results),
        "## How good\n\nTest parts, in percent. Times of the tagger are from raw texts, with the "
        "second training that probabilities need; PECOS's are from ready features.",
        table_lines(quality),
        "## How sure\n\nOver the best five labels of each test text; thresholds look at twenty.",
        table_lines(calibrated),
        "## How fast\n\n`Tagger.predict` from raw texts, best of three passes over the test part.",
        table_lines(fast),
    ]
    return "\n\n".join(parts) + "\n"


def number(value: float | None, digits: int = 2, factor: float = 1) -> str:
    return "-" if value is None else f"{factor * value:.{digits}f}"


if __name__ == "__main__":
    main()
