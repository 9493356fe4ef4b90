"""The pictures of docs/gallery.md, from the figures in benchmarks/results, a tagger and two papers.

python docs/gallery.py            those of the measurements: seconds
python docs/gallery.py --report   also those of a tagger: a minute, and chromium
python docs/gallery.py --papers   also those of papers: minutes

The last two read data sets from the folder $UMPTEEN_DATA.
"""

import json
import shutil
import sys
from importlib import import_module
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
HEADS = {
    "full": "full layer", "sampling": "sampling", "cascade": "cascade, one class",
    "product": "product, 2 heads", "product-3": "product, 3 heads",
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


def published():
    """Draw the tagger beside networks that others have published."""
    found = results("published")
    rows = [(row, "#8e8e8e") for row in reversed(found["published"])]
    rows += [(row, COLOURS["umpteen"]) for row in reversed(found["rows"])]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axis, metric in zip(axes, ("nDCG@5", "micro F1"), strict=True):
        values = [row[metric] for row, _ in rows]
        axis.scatter(values, range(len(rows)), s=60, color=[colour for _, colour in rows])
        for place, value in enumerate(values):
            axis.annotate(f"  {value:.1f}", (value, place), va="center", fontsize=8)
        axis.margins(x=0.2, y=0.1)
        axis.set(xlabel=f"{metric} on the test split, %")
    names = [row["system"].replace("`", "") for row, _ in rows]
    axes[0].set_yticks(range(len(rows)), names, fontsize=9)
    save(figure, "published")


def million():
    """Draw the time of a training step against the number of classes, and of last layers."""
    steps = results("softmax")["steps"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
    for key, name, colour in (
        ("full", "full softmax", "#8e8e8e"),
        ("torch", "sampled, in PyTorch", COLOURS["pecos"]),
        ("umpteen", "AdversarialSoftmax", COLOURS["umpteen"]),
    ):
        times = [row[key] for row in steps]
        left.plot([row["classes"] for row in steps], times, "o-", label=name, color=colour)
    left.set(xscale="log", yscale="log", xlabel="classes", ylabel="training step, ms")
    left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    left.legend(fontsize=8)
    found = {
        row["head"]: 1e3 * row["step"] for row in results("heads")["rows"] if not row["network"]
    }
    times = [found[head] for head in reversed(HEADS)]
    colours = ["#8e8e8e" if head == "full" else COLOURS["umpteen"] for head in reversed(HEADS)]
    bars = right.barh(range(len(times)), times, color=colours)
    right.bar_label(bars, [f"{time:,.1f}" for time in times], padding=3, fontsize=8)
    right.set(xscale="log", xlim=(0.5, 60_000), xlabel="step with a million labels, ms")
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    right.set_yticks(range(len(times)), reversed(HEADS.values()), fontsize=8)
    right.grid(axis="y", visible=False)
    save(figure, "million")


def report():
    """Draw what a tagger on questions about cooking shows: its report, and why it gave a label."""
    import umpteen as um

    data = um.data.load("cooking")
    tagger = um.Tagger().fit(data.train.texts, data.train.labels)
    found = tagger.evaluate(data.test.texts, data.test.labels, title="Questions about cooking")
    calibration(found)
    frequency(found)
    why = tagger.explain("Can I feed my sourdough starter with rye flour?")
    style = (
        "<style>body {font: 15px sans-serif} .umpteen {width: max-content; padding: 1em}</style>"
    )
    photograph({"explanation": f"<!doctype html>{style}{why._repr_html_()}"}, ".umpteen")
    photograph({"report": found.to_html()})


def calibration(report):
    bins = [each for each in report.reliability.bins if each.count]
    figure, axis = plt.subplots(figsize=(4.2, 3.8))
    axis.plot([0, 1], [0, 1], "--", color="#8e8e8e")
    axis.plot(
        [each.mean_probability for each in bins], [each.share_right for each in bins], "o-",
        color=COLOURS["umpteen"],
    )  # fmt: skip
    axis.set(xlabel="probability", ylabel="share of right labels")
    save(figure, "calibration")


def frequency(report):
    figure, axis = plt.subplots()
    axis.bar(
        range(len(report.deciles)), [100 * each.recall for each in report.deciles],
        color=COLOURS["umpteen"],
    )  # fmt: skip
    axis.set(
        xticks=range(len(report.deciles)), ylabel="recall@5, %",
        xlabel="training texts of a label",
    )  # fmt: skip
    axis.set_xticklabels([each.span for each in report.deciles], fontsize=8)
    axis.grid(axis="x", visible=False)
    save(figure, "frequency")


def photograph(pages, part=None):
    """Save pages as a browser shows them: their first screen, or one part of it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, html in pages.items():
            page = browser.new_page(viewport={"width": 900, "height": 700})
            page.set_content(html)
            shown = page.locator(part) if part else page
            shown.screenshot(path=PICTURES / f"{name}.png")


def papers():
    """Draw figures of papers that are measured again here; see papers/README.md."""
    sys.path.insert(0, str(ROOT))
    figure_kind = import_module("papers.contents").Figure
    for name, paper, title in (
        ("collapse", "collapse", "all measures over training: MNIST"),
        ("embeddings", "eagle", "label embeddings"),
    ):
        sections = import_module(f"papers.{paper}").claims(quick=False)
        (section,) = (each for each in sections if title in each.title)
        drawn = next(block for block in section.measure() if isinstance(block, figure_kind))
        (PICTURES / f"{name}.svg").write_text(drawn.svg, "utf-8")


if __name__ == "__main__":
    plt.rcParams.update(STYLE)
    beside_peers()
    growth()
    eagle()
    published()
    million()
    if "--report" in sys.argv[1:]:
        report()
    if "--papers" in sys.argv[1:]:
        papers()
