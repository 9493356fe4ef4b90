"""Time and memory of `um.evaluate` on a million answers, next to napkinXC in the same run.

    python benchmarks/metrics.py --samples 1000000 --labels 100000 --peer-samples 50000

napkinXC runs on the first samples only; its time is scaled to all of them, as it grows with
their number. Memory is the peak growth while measuring, on top of the answers and labels.
"""

import argparse
import time
import tracemalloc

import napkinxc.metrics as napkin
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix

import umpteen as um

K = 5
PEERS = {
    "precision": napkin.precision_at_k,
    "recall": napkin.recall_at_k,
    "nDCG": napkin.ndcg_at_k,
    "coverage": napkin.coverage_at_k,
}
SCORED_PEERS = {"PSP": napkin.psprecision_at_k, "PSnDCG": napkin.psndcg_at_k}


def draw_labels(n_samples, n_labels, rng):
    """About five labels per sample, few of them frequent."""
    chance = 1.0 / np.arange(1, n_labels + 1)
    ids = rng.choice(n_labels, n_samples * K, p=chance / chance.sum()).astype(np.int32)
    indptr = np.arange(0, n_samples * K + 1, K)
    Y = csr_matrix((np.ones(len(ids), np.float32), ids, indptr), shape=(n_samples, n_labels))
    Y.sum_duplicates()
    return Y


def draw_answers(Y, rng):
    """Half of the answers taken from the sample's own labels, the others at random."""
    n_samples, n_labels = Y.shape
    labels = rng.integers(0, n_labels, (n_samples, K), dtype=np.int32)
    rows = np.repeat(np.arange(n_samples), np.diff(Y.indptr))
    places = np.arange(Y.nnz) - Y.indptr[rows]
    kept = rng.random(Y.nnz) < 0.5
    labels[rows[kept], places[kept]] = Y.indices[kept]
    for place in range(1, K):  # napkinXC counts a label that is answered twice as two hits
        labels[(labels[:, :place] == labels[:, [place]]).any(axis=1), place] = -1
    scores = np.broadcast_to(np.linspace(1, 0.2, K, dtype=np.float32), labels.shape)
    return um.TopK(labels, scores)


def measured(work):
    """What the work returns, its seconds, and (in a second run) its peak memory in MB."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return result, seconds, peak


def run_napkin(rows, rankings, inverse):
    """The metrics that napkinXC has too, each at 1 to 5."""
    values = {name: metric(rows, rankings, k=K) for name, metric in PEERS.items()}
    scored = {name: metric(rows, rankings, inverse, k=K) for name, metric in SCORED_PEERS.items()}
    return values | scored


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--peer-samples", type=int, default=50_000)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    Y = draw_labels(chosen.samples, chosen.labels, rng)
    top = draw_answers(Y, rng)
    chance = um.metrics.propensity(Y)
    part = slice(0, chosen.peer_samples)
    rows = [row.tolist() for row in np.split(Y[part].indices, Y[part].indptr[1:-1])]
    rankings = top.labels[part].tolist()

    work = {
        "umpteen, full report": lambda: um.evaluate(top, Y, Y),
        "umpteen, precision only": lambda: um.metrics.precision_at_k(Y, top, (1, 3, 5)),
        "napkinXC, 6 of the 10 metrics": lambda: run_napkin(rows, rankings, 1 / chance),
    }
    table = Table(title=f"{chosen.samples:,} x {K} answers, {chosen.labels:,} labels")
    for name in ("what", "samples", "seconds", "for all samples, s", "peak memory, MB"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for name, do in work.items():
        n_samples = len(rows) if name.startswith("napkin") else chosen.samples
        result, seconds, peak = measured(do)
        whole = seconds * chosen.samples / n_samples
        table.add_row(name, f"{n_samples:,}", f"{seconds:.2f}", f"{whole:.2f}", f"{peak:.0f}")
    Console(width=110).print(table)

    ours = um.evaluate(top[part], Y[part], ks=range(1, K + 1), propensity=chance).metrics
    gap = max(abs(ours[f"{name}@{k + 1}"] - result[name][k]) for name in result for k in range(K))
    answers = (top.labels.nbytes + top.scores.nbytes) / 1e6
    print(f"answers {answers:.0f} MB; largest difference to napkinXC {gap:.1e}")


if __name__ == "__main__":
    main()
