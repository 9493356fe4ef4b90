"""The description of a model: settings, quality, and the effect of thresholds."""

from typing import Any

import numpy as np

from umpteen.metrics.reliability import expected_calibration_error
from umpteen.serve.snapshot import Snapshot
from umpteen.tagger.calibration import ValidatedAnswers

_THRESHOLDS = np.arange(0, 100) / 100
_KS = (1, 3, 5)
_PLAIN = (bool, int, float, str, type(None))


def describe(snapshot: Snapshot) -> dict[str, Any]:
    """Return the description of a model, ready for JSON, without paths."""
    tagger = snapshot.tagger
    validated = tagger.validated_
    return {
        "name": snapshot.name,
        "version": snapshot.version,
        "trained": snapshot.trained,
        "n_labels": snapshot.n_labels,
        "n_samples": tagger.n_samples_,
        "classifier": type(tagger.classifier_).__name__,
        "language": _language(tagger.vectorizer_),
        "calibrated": tagger.calibrated,
        "settings": {
            "tagger": _settings(tagger),
            "classifier": _settings(tagger.classifier_),
            "vectorizer": _settings(tagger.vectorizer_),
        },
        "report": None if validated is None else report(validated),
        "threshold_curve": [] if validated is None else threshold_curve(validated),
    }


def report(validated: ValidatedAnswers) -> dict[str, float]:
    """Return metrics on the validation split."""
    given = validated.labels >= 0
    n_relevant = max(int(validated.n_relevant.sum()), 1)
    hits = validated.hits & given
    found: dict[str, float] = {"texts": len(hits)}
    for k in _KS:
        found[f"precision@{k}"] = round(float(hits[:, :k].sum() / (k * max(len(hits), 1))), 4)
    for k in _KS:
        found[f"recall@{k}"] = round(float(hits[:, :k].sum()) / n_relevant, 4)
    error = expected_calibration_error(validated.probabilities[given], hits[given])
    return found | {"ECE": round(error, 4)}


def threshold_curve(validated: ValidatedAnswers) -> list[dict[str, float | None]]:
    """Return precision and recall of each threshold on the validation split."""
    given = validated.labels >= 0
    probabilities = validated.probabilities[given].astype(np.float64)
    order = np.argsort(-probabilities, kind="stable")
    right = np.append(0, np.cumsum(validated.hits[given][order]))
    n_given = np.searchsorted(-probabilities[order], -_THRESHOLDS, side="right")
    n_relevant = max(int(validated.n_relevant.sum()), 1)
    return [
        {
            "threshold": float(threshold),
            "precision": round(float(right[n]) / n, 4) if n else None,
            "recall": round(float(right[n]) / n_relevant, 4),
            "labels_per_text": round(n / len(given), 3),
        }
        for threshold, n in zip(_THRESHOLDS.tolist(), n_given.tolist(), strict=True)
    ]


def _settings(estimator: Any) -> dict[str, Any]:
    if not hasattr(estimator, "get_params"):
        return {}
    given = estimator.get_params(deep=False)
    private = getattr(estimator, "_unsaved_parameters", ())  # files and folders
    return {
        name: value
        for name, value in given.items()
        if name not in private and isinstance(value, _PLAIN)
    }


def _language(vectorizer: Any) -> str | None:
    morphology = getattr(vectorizer, "morphology_", None)
    return None if morphology is None else ", ".join(morphology.languages)
