"""One version of one model, which never changes: a request uses the same one throughout."""

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
    """A tagger with its name, its version (a hash of its content) and the time it was saved."""

    name: str
    version: str
    trained: str
    tagger: Tagger
    labels: LabelSearch

    @classmethod
    def load(cls, name: str, folder: Path) -> Self:
        """Load the tagger in a folder and make a first prediction, which compiles the kernels."""
        before = content_hash(folder)
        tagger = storage.load(folder)
        if content_hash(folder) != before:
            return cls.load(name, folder)  # saved in between: load that one
        if not isinstance(tagger, Tagger):
            raise ModelCorruptError(
                f"{name} is a {type(tagger).__name__}; expected a model of texts, as `umpteen fit` "
                "trains it on texts and labels"
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
        """Return how many labels to predict, so that requests with different `k` can be joined.

        The first labels of a calibrated tagger are the same for every `k` up to `RANKS`.
        """
        return RANKS if self.tagger.calibrated and k <= RANKS else k

    def answer(self, texts: Sequence[str], k: int) -> TopK:
        """Return the `k` best labels of each text as ids."""
        return self.tagger.predict_topk(list(texts), k)

    def tags(self, top: TopK, k: int, threshold: Threshold) -> list[Tags]:
        """Return names and probabilities, as `Tagger.predict` does."""
        tagger = self.tagger
        cut = cut_as_asked(top.first(k), threshold, 0, tagger.thresholds_, tagger.validated_)
        return cut.names(tagger.label_names_.names)

    def concept(self, label: str) -> Concept | None:
        """Return the concept of a label in the vocabulary, or None."""
        vocabulary = self.tagger.vocabulary_
        return None if vocabulary is None else vocabulary.get(label)

    def name_of(self, label: str) -> str | None:
        """Return the preferred name of a label, if the vocabulary has another name for it."""
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
        """The description of the model, as far as it does not change."""
        from umpteen.serve.info import describe

        return describe(self)


def content_hash(folder: Path) -> str:
    """Return a short hash of the content of a model folder."""
    manifest = read_manifest(folder)
    arrays = [{**entry, "file": None} for entry in manifest["arrays"]]
    content = json.dumps([manifest["model"], arrays], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]


def saved_at(folder: Path) -> str:
    """Return when the model in a folder was saved, as an ISO date."""
    seconds = (folder / "manifest.json").stat().st_mtime
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
