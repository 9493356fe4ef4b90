"""Say what you want, get the Python function that does it: from texts to a report and answers.

The data is built in: the documentation of the installed Python libraries. It is collected on
first use, and hot loops are compiled on first use; both are kept for the next run.
"""

import time
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from umpteen.centroid import NearestCentroid
from umpteen.data import load
from umpteen.report import Report
from umpteen.tagger import Tagger

QUERIES = (
    "solve a linear least squares problem",
    "standard deviation along an axis",
    "split a string by a regular expression",
    "temporary directory that is removed afterwards",
    "principal component analysis",
    "fast Fourier transform of a real signal",
)
EXPLAINED = QUERIES[0]
SHOWN = ("precision@1", "recall@5", "nDCG@5", "PSP@1", "PSP@5", "coverage@5")
NEXT_STEPS = """\
The report          open {report} in a browser
Ask for something   umpteen predict {model} -          (then type, and Ctrl-D)
Try it on a page    umpteen serve {model}
Why is that?        umpteen explain {model} "sort a list in place"
Your own texts      umpteen fit train.jsonl -o model/    (docs/quick-start.md)
In Python           import umpteen as um; um.load("{model}").predict("...")"""


def main(folder: Path = Path("umpteen-demo")) -> None:
    """Train, evaluate, explain, and leave a model and a report in `folder`."""
    console = Console(highlight=False, width=100)
    console.print(Rule("The data: Python's documentation, a label for each documented object"))
    data = load("pydocs")
    test = data.splits["test"]
    console.print(f"{data}\n")

    summaries = dict(zip(data.label_names or [], data.label_texts or [], strict=True))
    taggers = {
        "Tagger()": (Tagger(keep_texts=True), summaries),
        "without label texts": (Tagger(), None),
        "nearest centroid": (Tagger(NearestCentroid()), None),
    }
    seconds, reports = {}, {}
    for name, (tagger, label_texts) in taggers.items():
        start = time.perf_counter()
        tagger.fit(data.train.texts, data.train.labels, label_texts)
        seconds[name] = time.perf_counter() - start
        reports[name] = tagger.evaluate(
            test.texts, test.labels, title="Describe it, get the function"
        )
    best, report = taggers["Tagger()"][0], reports["Tagger()"]

    console.print(Rule("On the test split: what other objects say of it in See Also"))
    console.print(report)
    console.print(Rule("Compared to a baseline, in %"))
    console.print(comparison(reports, seconds))
    console.print(Rule("Ask for something"))
    console.print(answers(best))
    console.print(Rule(f"Why? {EXPLAINED!r}"))
    console.print(best.explain(EXPLAINED))
    console.print(Rule("What next"))
    best.save(folder / "model")
    report.to_html(folder / "report.html")
    paths = {"model": folder / "model", "report": folder / "report.html"}
    console.print(NEXT_STEPS.format(**paths), markup=False)


def comparison(reports: dict[str, Report], seconds: dict[str, float]) -> Table:
    """Return the main metrics, a row for each tagger."""
    table = Table("", *SHOWN, "training, s", caption="The first training also compiles, once.")
    for name, report in reports.items():
        cells = [f"{100 * report.metrics[key]:.2f}" for key in SHOWN]
        table.add_row(name, *cells, f"{seconds[name]:.1f}")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def answers(tagger: Tagger) -> Table:
    """Return the three best labels of each query."""
    table = Table("query", "best", "second", "third")
    for column in table.columns:
        column.overflow = "fold"
    for query, tags in zip(QUERIES, tagger.predict(list(QUERIES), k=3), strict=True):
        table.add_row(query, *(f"{name} {probability:.2f}" for name, probability in tags))
    return table
