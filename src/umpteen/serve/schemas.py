"""Schemas of requests and responses, with examples for the OpenAPI page."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]")


def _unicode(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("this text has a lone surrogate: send valid Unicode") from None
    return text


def _one_line(name: str) -> str:
    if _CONTROL.search(name):
        raise ValueError("a label must not contain line breaks or other control characters")
    return name


K = Annotated[int, Field(ge=1, le=1000, strict=True)]
Probability = Annotated[float, Field(strict=True)]
Text = Annotated[str, AfterValidator(_unicode)]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1000),
    AfterValidator(_unicode),
    AfterValidator(_one_line),
]
Names = Annotated[list[Name], Field(max_length=1000)]
_TEXT = "My sourdough does not rise. What is wrong with it?"


class Strict(BaseModel):
    """A request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class SuggestRequest(Strict):
    """One text, or a list of texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": _TEXT, "k": 5},
                {"texts": [_TEXT, "Which oil for deep frying?"], "threshold": 0.5},
            ]
        }
    )

    text: Text | None = None
    texts: list[Text] | None = None
    k: K = 10
    threshold: Probability | Text | None = None


class Label(BaseModel):
    """A label and its probability; `name` if the vocabulary has a preferred name for it."""

    label: str
    probability: float
    name: str | None = None


class Result(BaseModel):
    """The labels of one text, best first."""

    labels: list[Label]


class Suggestions(BaseModel):
    """A result for each text, in the same order, all from one version of the model."""

    model: str
    version: str
    results: list[Result]


class ExplainRequest(Strict):
    """A text and a label; by default, the best label of the text."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": _TEXT}]})

    text: Text
    label: Name | None = None


class WordShare(BaseModel):
    """What a word adds at one position; `total` is the sum over all its positions."""

    start: int
    end: int
    word: str
    contribution: float
    total: float


class Other(BaseModel):
    """A contribution that has no position in the text, such as the bias."""

    what: str
    contribution: float


class Near(BaseModel):
    """A similar training text."""

    text: str
    labels: list[str]
    similarity: float


class Explanation(BaseModel):
    """Why the model gives a text this label."""

    model: str
    version: str
    label: str
    name: str | None = None
    probability: float
    exact: bool
    words: list[WordShare]
    other: list[Other]
    named: bool
    path: list[dict[str, Any]]
    nearest: list[Near]


class FoundLabel(BaseModel):
    """A label, and the number of training texts that have it."""

    label: str
    count: int
    name: str | None = None


class FoundLabels(BaseModel):
    """The best matches, and the number of all matches."""

    labels: list[FoundLabel]
    n_matches: int


class ModelSummary(BaseModel):
    """A model that is served."""

    name: str
    version: str
    n_labels: int
    learns: bool


class ModelList(BaseModel):
    """All models that are served."""

    models: list[ModelSummary]


class ModelInfo(ModelSummary):
    """Settings of a model, its quality on the validation split, and what it learned since."""

    trained: str
    n_samples: int
    classifier: str
    language: str | None
    calibrated: bool
    settings: dict[str, Any]
    report: dict[str, float] | None
    threshold_curve: list[dict[str, float | None]]
    learning: dict[str, Any] | None
    versions: list[dict[str, Any]]


class Item(Strict):
    """A text with all labels that it should have, and the labels that were suggested."""

    text: Text
    labels: Names
    suggested: Names | None = None
    id: Name | None = None


class LearnRequest(Strict):
    """Corrections to record."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"items": [{"text": _TEXT, "labels": ["sourdough"], "suggested": ["bread"]}]}
            ]
        }
    )

    items: list[Item]


class Recorded(BaseModel):
    """How many corrections of this request were recorded."""

    recorded: int


class RollbackRequest(Strict):
    """The version to return to; by default, the previous one."""

    version: Name | None = None
