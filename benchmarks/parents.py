"""Whether samples of broader labels help rare labels below them.

    python benchmarks/parents.py

The first 10,000 training texts of eurlex57k under `$UMPTEEN_DATA`. A label with at most five
samples gets some samples of its parents as samples of its own. Prints the metrics of `LabelTree`
on the first 3,000 texts of the validation split, and the recall of such labels among the best ten.
"""

import json
import lzma
import os
from pathlib import Path

import harness  # noqa: F401 (sets up the paths)
import numpy as np
from scipy.sparse import csr_matrix

import umpteen as um

N_TRAIN, N_DEV, RARE, SEEDS = 10_000, 3_000, 5, (0, 1, 2)
METRICS = ("precision@1", "precision@5", "nDCG@5", "PSP@1", "PSP@5")


def main() -> None:
    labels = records("labels", None)
    train, dev = records("train", N_TRAIN), records("dev", N_DEV)
    ids = {each["label"]: i for i, each in enumerate(labels)}
    parents = [[ids[parent] for parent in each["parents"] if parent in ids] for each in labels]
    Y_train, Y_dev = indicator(train, ids), indicator(dev, ids)
    vectorizer = um.text.Vectorizer()
    X_train = vectorizer.fit_transform([each["text"] for each in train])
    X_dev = vectorizer.transform([each["text"] for each in dev])
    counts = np.bincount(Y_train.indices, minlength=len(ids))
    rare = [i for i, above in enumerate(parents) if 0 < counts[i] <= RARE and counts[above].any()]
    for n_borrowed in (0, 1, 3, 10):
        rows = []
        for seed in SEEDS:
            Y = Y_train + borrowed(Y_train, rare, parents, n_borrowed, seed)
            model = um.LabelTree.for_texts(random_state=seed).fit(X_train, csr_matrix(Y > 0))
            top = model.predict_topk(X_dev, 10)
            report = um.evaluate(top, Y_dev, Y_train)
            rows.append([*(report.metrics[name] for name in METRICS), recall(top, Y_dev, rare)])
        names = [*METRICS, "recall@10 of rare children"]
        means = 100 * np.mean(rows, axis=0)
        print(n_borrowed, dict(zip(names, means.round(2).tolist(), strict=True)), flush=True)


def records(split: str, n: int | None) -> list[dict]:
    path = Path(os.environ["UMPTEEN_DATA"]) / "eurlex57k" / f"{split}.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(n or 10**9), strict=False)]


def indicator(samples: list[dict], ids: dict[str, int]) -> csr_matrix:
    own = [[ids[label] for label in each["labels"] if label in ids] for each in samples]
    indptr = np.cumsum([0, *map(len, own)])
    indices = np.concatenate([np.asarray(each, np.int64) for each in own])
    return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(own), len(ids)))


def borrowed(
    Y: csr_matrix, rare: list[int], parents: list[list[int]], n_borrowed: int, seed: int
) -> csr_matrix:
    """Samples of their parents for rare labels, `(n, n_labels)`."""
    random, by_label = np.random.default_rng(seed), Y.T.tocsr()
    rows, columns = [], []
    for label in rare:
        pool = np.unique(np.concatenate([by_label[parent].indices for parent in parents[label]]))
        rows.extend(random.permutation(pool)[:n_borrowed].tolist())
        columns.extend([label] * (len(rows) - len(columns)))
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), Y.shape)


def recall(top: um.TopK, Y: csr_matrix, labels: list[int]) -> float:
    own, wanted = Y.tolil().rows, set(labels)
    relevant = [set(each) & wanted for each in own]
    found = sum(len(each & set(best)) for each, best in zip(relevant, top.labels, strict=True))
    return found / max(1, sum(map(len, relevant)))


if __name__ == "__main__":
    main()
