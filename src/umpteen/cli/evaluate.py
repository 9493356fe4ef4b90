"""`umpteen evaluate` and `umpteen tune`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError, say
from umpteen.cli.matrices import read_matrices
from umpteen.cli.models import (
    Model,
    Output,
    Verify,
    changed,
    check_validated,
    is_tagger,
    load_model,
    load_tagger,
)
from umpteen.cli.output import Json, show
from umpteen.cli.reading import File, Reading, is_stdin, reads_file
from umpteen.cli.settings import Cluster, in_shares, on_cluster

if TYPE_CHECKING:
    from umpteen.data import Samples
    from umpteen.tagger import Tagger, Thresholds


@reads_file
def evaluate(
    model: Model,
    file: File,
    reading: Reading,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML report as well.")
    ] = None,
    cluster: Cluster = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Evaluate a model on texts that it has not seen.

    \b
    FILE has texts with their correct labels, for example test.jsonl:
      {"text": "Why does my bread collapse?", "labels": ["bread", "baking"]}
    \b
    Example:
      umpteen evaluate model/ test.jsonl --html report.html
    \b
    The report has precision, recall, nDCG and related metrics at 1, 3 and 5 labels per text, and
    compares rare with frequent labels.
    """
    if html is not None:
        from umpteen.writing import check_writable

        check_writable(html)
    loaded = load_model(model, verify)
    if is_tagger(loaded):
        samples = reading.read_labelled_texts(file)
        with on_cluster(cluster):
            report = loaded.evaluate(samples.texts, samples.labels, title=_title(model, file))
    else:
        report = _evaluate_matrix(loaded, file, reading, cluster)
    if html is not None:  # before the table, whose reader may go away (`| head`)
        report.to_html(html)
        say(f"wrote {html}")
    show(report.to_dict(), json, report)


@reads_file
def tune(
    model: Model,
    reading: Reading,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Labelled texts that the model did not learn from; by default, the validation "
            "split of fit.",
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="micro_f1, macro_f1, or a goal: precision@0.9, recall@0.8."
        ),
    ] = "micro_f1",
    output: Output = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Choose the threshold for probabilities.

    \b
    Examples:
      umpteen tune model/ --metric precision@0.9
      umpteen predict model/ new.jsonl --threshold tuned
    \b
    tune saves the threshold in the model, and shows it with the value of the metric. With this
    goal, predict then returns as many labels as it can while about 90% of them are correct.
    """
    folder = output or model
    load_tagger(model, "tune", folder, verify)
    samples = None if file is None else reading.read_labelled_texts(file)
    with changed(model, output, verify) as tagger:
        thresholds = _tuned(tagger, in_shares(metric), samples)
    record = {
        "metric": thresholds.metric,
        "reached": round(thresholds.reached, 4),
        "threshold": round(thresholds.least, 4),
        "per_label": thresholds.per_label is not None,
    }
    show(record, json)


def _tuned(tagger: "Tagger", metric: str, samples: "Samples | None") -> "Thresholds":
    if samples is None:
        check_validated(tagger)
        return tagger.tune_thresholds(metric)
    return tagger.tune_thresholds(metric, samples.texts, samples.labels)


def _evaluate_matrix(classifier: Any, file: Path, reading: Reading, cluster: str | None) -> Any:
    from umpteen.report import evaluate as evaluate_answers

    samples = read_matrices(file, reading, classifier)
    if samples.Y is None or len(samples) == 0:
        raise UsageError(f"{file} has no labels to compare with")
    with on_cluster(cluster):
        answers = classifier.predict_topk(samples.X, 5)
    return evaluate_answers(answers, samples.Y)


def _title(model: Path, file: Path) -> str:
    return f"{model.resolve().name} on {'stdin' if is_stdin(file) else file.name}"
