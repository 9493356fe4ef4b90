"""The pictures of docs/gallery.md, from the figures in benchmarks/results and a tagger's report.

python docs/gallery.py            those of the measurements: seconds
python docs/gallery.py --report   and those of a report on the built-in data: a minute
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "images" / "gallery"
STYLE = {
    "figure.figsize": (7, 3.8), "figure.dpi": 100, "font.size": 10, "axes.grid": True,
    "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False,
    "svg.fonttype": "path", "svg.hashsalt": "umpteen",
}  # fmt: skip
COLOURS = {"umpteen": "#3949ab", "pecos": "#d1730b", "omikuji": "#2e7d4f", "napkinxc": "#8e8e8e"}


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def save(figure, name):
    """Write a picture whose bytes depend on its content only."""
    figure.tight_layout()
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def logarithmic(axis):
    """Use logarithmic axes with numbers that people read: 1, 2, 5, 10, 20, ..."""
    axis.set(xscale="log", yscale="log")
    axis.margins(0.18)
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(LogLocator(subs=(1, 2, 5)))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        side.set_minor_formatter(NullFormatter())


def figure_of(row, name):
    return row["repeats"][0][name]


def beside_peers():
    """Draw training against prediction, both logarithmic; a point's size is that of its model."""
    rows = results("trees")["rows"]
    sets = list(dict.fromkeys(row["set"] for row in rows))[:3]
    below = {"umpteen": -16, "napkinxc": -16}  # where names would cover one another
    figure, axes = plt.subplots(1, len(sets), figsize=(10, 3.8))
    for axis, name in zip(axes, sets, strict=True):
        for row in rows:
            if row["set"] != name or row["system"] == "pecos binary":  # slower than its other form
                continue
            library = row["system"].split()[0]
            axis.scatter(
                figure_of(row, "train_cpu"), figure_of(row, "batch"),
                s=8 * figure_of(row, "size") ** 0.8, color=COLOURS[library], alpha=0.75,
                clip_on=False,
            )  # fmt: skip
            axis.annotate(
                row["system"], (figure_of(row, "train_cpu"), figure_of(row, "batch")),
                textcoords="offset points", xytext=(0, below.get(library, 9)), fontsize=8,
                ha="center",
            )  # fmt: skip
        logarithmic(axis)
        axis.set(title=name, xlabel="training, CPU s")
    axes[0].set_ylabel("prediction, µs per row")
    save(figure, "beside-peers")


def growth():
    """Draw time and size against the number of samples and of labels."""
    points = results("growth")["points"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    for axis, of, words in zip(axes, ("n_train", "n_labels"), ("samples", "labels"), strict=True):
        chosen = [point for point in points if point["axis"] == of]
        sizes = [point["shape"][of] for point in chosen]
        for key, name in (("train_cpu", "training, CPU s"), ("size", "model, MB")):
            axis.plot(sizes, [point["figures"][key] for point in chosen], "o-", label=name)
        logarithmic(axis)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        axis.set_xlabel(words)
        axis.legend(loc="upper left", fontsize=8)
    save(figure, "growth")


def eagle():
    """Draw precision at 1 if groups are ignored, with Eagle, and with true labels."""
    rows = [row for row in results("aggregated_table")["rows"] if row["known"] == "presence"]
    places = list(dict.fromkeys((row["set"], row["groups"]) for row in rows))
    names = [f"{name}\n{groups}" for name, groups in places]
    figure, axis = plt.subplots()
    for shift, methods, words, colour in (
        (-0.27, ("Baseline",), "groups ignored", "#8e8e8e"),
        (0.0, ("Eagle()", "Eagle(votes=3)"), "Eagle", "#3949ab"),
        (0.27, ("Oracle",), "true labels", "#2e7d4f"),
    ):
        heights = [mean_precision(rows, place, methods) for place in places]
        axis.bar([i + shift for i in range(len(places))], heights, 0.25, label=words, color=colour)
    axis.set(xticks=range(len(places)), ylabel="P@1 on the test split, %", ylim=(0, 85))
    axis.set_xticklabels(names, fontsize=8)
    axis.grid(axis="x", visible=False)
    axis.legend(loc="upper center", ncols=3, frameon=False)
    save(figure, "eagle")


def mean_precision(rows, place, methods):
    """Return the mean P@1 over seeds, of the first of the methods that was measured."""
    for method in methods:
        found = [
            row["precision"][0]
            for row in rows
            if (row["set"], row["groups"]) == place and row["method"] == method
        ]
        if found:
            return sum(found) / len(found)
    raise KeyError(f"no figures of {methods} for {place}")


def report():
    """Draw calibration and label frequency of a tagger on the built-in data."""
    import umpteen as um

    data = um.data.load("pydocs")
    summaries = dict(zip(data.label_names, data.label_texts, strict=True))
    tagger = um.Tagger().fit(data.train.texts, data.train.labels, label_texts=summaries)
    found = tagger.evaluate(data.test.texts, data.test.labels, n_examples=0)
    found.plot(PICTURES / "report.svg")
    bins = [each for each in found.reliability.bins if each.count]
    figure, axis = plt.subplots(figsize=(4.2, 3.8))
    axis.plot([0, 1], [0, 1], "--", color="#8e8e8e")
    axis.plot(
        [each.mean_probability for each in bins], [each.share_right for each in bins], "o-",
        color=COLOURS["umpteen"],
    )  # fmt: skip
    axis.set(xlabel="probability", ylabel="share of right answers")
    save(figure, "calibration")
    figure, axis = plt.subplots()
    axis.bar(range(len(found.deciles)), [100 * each.recall for each in found.deciles])
    axis.set(xticks=range(len(found.deciles)), ylabel="recall@5, %", xlabel="in training, times")
    axis.set_xticklabels([each.span for each in found.deciles], fontsize=8)
    save(figure, "frequency")


if __name__ == "__main__":
    plt.rcParams.update(STYLE)
    beside_peers()
    growth()
    eagle()
    if "--report" in sys.argv[1:]:
        report()
