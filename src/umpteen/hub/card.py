"""The model card: what a model is for, what it learned from, how good it is, and its limits."""

import json
from collections.abc import Iterator
from typing import Any

from umpteen.report import Report

_METRICS = ("precision", "nDCG", "recall", "PSP")
_FEW_SAMPLES = 5


def model_card(
    model: Any,
    repository: str,
    *,
    report: Report | None = None,
    description: str = "",
    license: str | None = None,  # noqa: A002
) -> str:
    """Return the card of a fitted model as Markdown, with the metadata that the Hub reads.

    It says what `report` says. Without a report, it says that nothing was measured.
    """
    pieces = [
        _metadata(model, license),
        f"# {repository.rpartition('/')[2]}",
        description.strip() or "_What it was trained on was not described._",
        _usage(model, repository),
        _training(model),
        _evaluation(report),
        _limits(model, report),
    ]
    return "\n\n".join(part for part in pieces if part) + "\n"


def _is_tagger(model: Any) -> bool:
    return hasattr(model, "label_names_")


def _metadata(model: Any, license: str | None) -> str:  # noqa: A002
    tags = ["umpteen", "extreme-classification", "multi-label-classification"]
    entries: dict[str, Any] = {"library_name": "umpteen", "tags": tags}
    if license:
        entries["license"] = license
    if _is_tagger(model):
        entries["pipeline_tag"] = "text-classification"
    # JSON is YAML as well, and quotes what would not be a text otherwise.
    lines = [f"{name}: {json.dumps(value)}" for name, value in entries.items()]
    return "\n".join(["---", *lines, "---"])


def _usage(model: Any, repository: str) -> str:
    asked = "predict('a text', k=5)" if _is_tagger(model) else "predict_topk(X, k=5)"
    return f"""## How to use it

```python
import umpteen as um

model = um.load("hf://{repository}")  # to pin a version: "hf://{repository}@<commit>"
model.{asked}
```

It needs `pip install 'umpteen[hub]'`. Loading runs no code of this repository: the model is a
manifest and arrays of numbers, whose checksums are compared."""


def _training(model: Any) -> str:
    facts = dict(_facts(model))
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"## What it learned from\n\n| | |\n|---|---|\n{rows}"


def _facts(model: Any) -> Iterator[tuple[str, str]]:
    yield "model", f"`{type(model).__name__}`"
    if not _is_tagger(model):
        yield "features", f"{model.n_features_in_:,}"
        yield "labels", f"{model.n_labels_:,}"
        return
    counts = model.label_counts_
    yield "classifier", f"`{type(model.classifier_).__name__}`"
    yield "training texts", f"{model.n_samples_:,}"
    yield "labels", f"{len(model.labels):,}"
    rare = int(((counts > 0) & (counts < _FEW_SAMPLES)).sum())
    yield f"labels with fewer than {_FEW_SAMPLES} training texts", f"{rare:,}"
    yield "words and bigrams", f"{model.n_features:,}"


def _evaluation(report: Report | None) -> str:
    if report is None:
        return "## How good it is\n\nNothing was measured on texts that it had not seen."
    title = f" on {report.title}" if report.title else ""
    lines = [
        "## How good it is",
        "",
        f"Measured on {report.n_samples:,} samples{title}.",
        "",
        _row("", *(f"@{k}" for k in report.ks)),
        _row("---", *("---:" for _ in report.ks)),
    ]
    for name in _METRICS:
        values = [report.metrics.get(f"{name}@{k}") for k in report.ks]
        if None not in values:
            lines.append(
                _row(name, *(f"{100 * value:.1f}" for value in values if value is not None))
            )
    return "\n".join([*lines, *_by_frequency(report), *_calibration(report)])


def _by_frequency(report: Report) -> Iterator[str]:
    if not report.bands:
        return
    yield from ("", "By how often a label was seen in training:", "")
    yield _row("labels", "number", "training samples each", "share of the test", "found")
    yield _row("---", "---:", "---:", "---:", "---:")
    for group in report.bands:
        yield _row(
            group.name,
            f"{group.n_labels:,}",
            group.span,
            f"{100 * group.test_share:.0f} %",
            f"{100 * group.recall:.1f} %",
        )


def _calibration(report: Report) -> Iterator[str]:
    if report.reliability is None:
        yield from ("", "Its scores are not calibrated: do not read them as probabilities.")
        return
    error = 100 * report.reliability.expected_calibration_error
    yield from (
        "",
        f"Probabilities are off by {error:.1f} points on average (expected calibration error).",
    )
    if report.thresholds:
        yield from (
            "",
            _row("with a probability of at least", "right", "found", "labels per sample"),
        )
        yield _row("---:", "---:", "---:", "---:")
    for at in report.thresholds:
        yield _row(
            f"{at.threshold:g}",
            f"{100 * at.precision:.1f} %",
            f"{100 * at.recall:.1f} %",
            f"{at.labels_per_sample:.2f}",
        )


def _limits(model: Any, report: Report | None) -> str:
    return "\n".join(["## Limits", "", *(f"- {limit}" for limit in _each_limit(model, report))])


def _each_limit(model: Any, report: Report | None) -> Iterator[str]:
    yield "It answers with labels that it learned, and with no others."
    if report is not None:
        if report.n_unseen_labels:
            yield (
                f"{report.n_unseen_labels:,} labels of the test were never seen in training; they "
                "count as missed."
            )
        tail = [group for group in report.bands if group.name == "tail"]
        if tail:
            yield f"It finds {100 * tail[0].recall:.0f} % of the labels in the tail; see the table."
        yield "The figures hold for samples like those of the test, and say nothing about others."
    if _is_tagger(model):
        yield "The model has the words of its training texts in its vocabulary."
        if model.replay_.texts is not None:
            yield f"**The model contains {len(model.replay_):,} training texts** (`keep_texts`)."
        elif len(model.replay_):
            yield (
                f"The model keeps the weighted words of {len(model.replay_):,} training texts "
                "(`replay`), from which their content can be guessed."
            )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
