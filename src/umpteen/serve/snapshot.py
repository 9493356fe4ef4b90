"""One version of one model, which never changes: a request takes it once and keeps it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from umpteen import storage
from umpteen.base import TopK
from umpteen.data.label_vocabulary import Concept
from umpteen.errors import ModelCorruptError
from umpteen.serve.labels import LabelSearch
from umpteen.storage.folder import read_manifest
from umpteen.tagger import Tagger
from umpteen.tagger.calibration import RANKS
from umpteen.tagger.thresholds import Threshold, cut_as_asked

_DIGITS = 12  # of a version

Tags = list[tuple[str, float]]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A tagger with its name, its version (a hash of its content) and when it was saved."""

    name: str
    version: str
    trained: str
    tagger: Tagger
    labels: LabelSearch

    @classmethod
    def load(cls, name: str, folder: Path) -> Self:
        """Load the tagger in a folder and answer a first request, which compiles what is needed."""
        before = content_hash(folder)
        tagger = storage.load(folder)
        if content_hash(folder) != before:
            return cls.load(name, folder)  # saved in between: load that one
        if not isinstance(tagger, Tagger):
            raise ModelCorruptError(
                f"{name} is a {type(tagger).__name__}; expected a model of texts, as `umpteen fit` "
                "makes it of texts and labels"
            )
        made = cls(name, before, saved_at(folder), tagger, LabelSearch.of(tagger))
        made.tags(made.answer(["one text", "and another"], 1), 1, None)
        made.labels.find("a", 1)
        return made

    @property
    def n_labels(self) -> int:
        """The number of labels that can be suggested."""
        return len(self.tagger.label_names_.ids)

    def width(self, k: int) -> int:
        """Return how many answers to ask for, so that requests with other `k` can be joined.

        Answers of a calibrated tagger up to `RANKS` are the first of those `RANKS`.
        """
        return RANKS if self.tagger.calibrated and k <= RANKS else k

    def answer(self, texts: Sequence[str], k: int) -> TopK:
        """Return the `k` best labels of each text as numbers."""
        return self.tagger.predict_topk(list(texts), k)

    def tags(self, top: TopK, k: int, threshold: Threshold) -> list[Tags]:
        """Return names and probabilities, as `Tagger.predict` does."""
        tagger = self.tagger
        cut = cut_as_asked(top.first(k), threshold, 0, tagger.thresholds_, tagger.validated_)
        return cut.names(tagger.label_names_.names)

    def concept(self, label: str) -> Concept | None:
        """Return what the vocabulary says about a label, if there is one."""
        vocabulary = self.tagger.vocabulary_
        return None if vocabulary is None else vocabulary.get(label)

    def name_of(self, label: str) -> str | None:
        """Return what people call a label, if the vocabulary has another name for it."""
        concept = self.concept(label)
        return concept.name if concept and concept.name and concept.name != label else None

    def label_of(self, uri: str) -> str:
        """Return the label with a URI, which may be the label itself."""
        return self._labels_by_uri.get(uri, uri)

    @cached_property
    def _labels_by_uri(self) -> dict[str, str]:
        vocabulary = self.tagger.vocabulary_
        if vocabulary is None:
            return {}
        pairs = zip(vocabulary.uris, vocabulary.labels, strict=True)
        return {uri: label for uri, label in pairs if uri}

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the model is, as far as it does not change."""
        from umpteen.serve.info import describe

        return describe(self)


def content_hash(folder: Path) -> str:
    """Return a short hash of what a model folder holds, the same for the same model."""
    manifest = read_manifest(folder)
    arrays = [{**entry, "file": None} for entry in manifest["arrays"]]
    content = json.dumps([manifest["model"], arrays], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]


def saved_at(folder: Path) -> str:
    """Return when the model in a folder was saved, as an ISO date."""
    seconds = (folder / "manifest.json").stat().st_mtime
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
