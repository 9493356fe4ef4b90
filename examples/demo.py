"""Say what you want, get the Python function that does it: the whole way, from texts to a report.

    python examples/demo.py

The data is built in: the documentation of the installed Python libraries. It is collected on
first use, and the label tree's kernels are compiled on first use; both are kept for the next run.
"""

import time

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

import umpteen as um

QUERIES = (
    "solve a linear least squares problem",
    "standard deviation along an axis",
    "sort a list in place",
    "read a csv file",
    "temporary directory that is removed",
    "principal component analysis",
)
SHOWN = ("precision@1", "recall@5", "nDCG@5", "PSP@1", "PSP@5", "coverage@5")
NEXT_STEPS = """\
Your own data      um.data.read("train.jsonl"), or a folder of files: docs/data.md
How it works       docs/label-tree.md
What it all means  docs/metrics.md
Keep the model     model.save("model"), then um.load("model"): docs/models.md
A data set to try  um.data.make_extreme(n_samples=100_000, n_labels=50_000)"""


def main() -> None:
    console = Console(width=100, highlight=False)
    console.print(Rule("The data: Python's documentation, a label for each documented object"))
    data = um.data.load("pydocs")
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    X_train = vectorizer.fit_transform(data.train.texts)
    X_test = vectorizer.transform(data.test.texts)
    console.print(f"{data}\n{X_train.shape[1]:,} features: words and pairs of words\n")

    models = {"LabelTree": um.LabelTree(), "NearestCentroid": um.NearestCentroid()}
    seconds, reports = {}, {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X_train, data.train.Y)
        seconds[name] = time.perf_counter() - start
        reports[name] = um.evaluate(model.predict_topk(X_test), data.test.Y, data.train.Y)

    console.print(Rule("LabelTree on the test part: descriptions that it has not seen"))
    console.print(reports["LabelTree"])
    console.print()
    console.print(Rule("Beside the baseline, in %"))
    console.print(comparison(reports, seconds))
    console.print(Rule("Ask for something"))
    console.print(answers(models, vectorizer, data.label_names))
    console.print(Rule("What next"))
    console.print(NEXT_STEPS, markup=False)


def comparison(reports: dict[str, um.Report], seconds: dict[str, float]) -> Table:
    """The main metrics, a row for each model."""
    caption = "The first training on a machine also compiles, once."
    table = Table("", *SHOWN, "training, s", caption=caption)
    for name, report in reports.items():
        cells = [f"{100 * report.metrics[key]:.2f}" for key in SHOWN]
        table.add_row(name, *cells, f"{seconds[name]:.1f}")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def answers(
    models: dict[str, um.ExtremeClassifier], vectorizer: TfidfVectorizer, names: list[str]
) -> Table:
    """The three best labels for each query, from each model."""
    X = vectorizer.transform(QUERIES)
    columns = [model.predict_topk(X, k=3).names(names) for model in models.values()]
    table = Table("query", *models, show_lines=True)
    table.columns[0].width = 22
    for column in table.columns[1:]:
        column.overflow = "fold"
    for query, *found in zip(QUERIES, *columns, strict=True):
        table.add_row(query, *("\n".join(name for name, _ in labels) for labels in found))
    return table


if __name__ == "__main__":
    main()
