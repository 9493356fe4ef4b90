"""The backend: a `Tagger` whose labels are the URIs of Annif's subjects."""

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from umpteen import storage
from umpteen.data import Concept, LabelVocabulary
from umpteen.errors import MissingExtraError, ModelNotFoundError, UmpteenError
from umpteen.linear import LabelTree
from umpteen.tagger import Tagger
from umpteen.text.languages import CODES

try:
    from annif.backend.backend import AnnifLearningBackend
    from annif.exception import (
        NotInitializedException,
        NotSupportedException,
        OperationFailedException,
    )
    from annif.suggestion import SubjectSuggestion, SuggestionBatch
    from annif.util import boolean
except ImportError as error:
    raise MissingExtraError(
        f"the backend runs inside Annif, and {error.name or 'it'!r} is not installed: pip install "
        "annif"
    ) from error

_MODEL = "umpteen-model"


class UmpteenBackend(AnnifLearningBackend):
    """A `Tagger` as a backend of Annif: it trains, suggests and learns.

    Parameters in `projects.cfg`, in addition to `limit`: `use_labels` (default true) says whether
    the names of subjects are used, too; `n_trees` (default 1) is the number of trees; `keep`
    (default 20000) is the number of training documents that are kept for `annif learn`. Annif's
    analyzers are not used; the language is that of the project.
    """

    name = "umpteen"
    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {
        "limit": 100,
        "use_labels": True,
        "n_trees": 1,
        "keep": 20_000,
    }

    _tagger: Tagger | None = None
    _subject_ids: dict[str, int | None]

    @property
    def _folder(self) -> Path:
        return Path(self.datadir) / _MODEL

    def initialize(self, parallel: bool = False) -> None:
        """Load the model, once."""
        if self._tagger is not None:
            return
        self.debug(f"loading model from {self._folder}")
        try:
            self._adopt(storage.load(self._folder))
        except ModelNotFoundError:
            raise NotInitializedException(
                f"model {self._folder} not found", backend_id=self.backend_id
            ) from None
        except UmpteenError as problem:
            raise OperationFailedException(str(problem), backend_id=self.backend_id) from problem

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        if corpus == "cached":
            raise NotSupportedException(
                "umpteen keeps no training data that could be reused: give the corpus again",
                backend_id=self.backend_id,
            )
        if corpus.is_empty():
            raise NotSupportedException(
                "Cannot train umpteen project with no documents", backend_id=self.backend_id
            )
        texts, labels = self._samples(corpus.documents)
        tree = LabelTree.for_texts(n_trees=int(params["n_trees"]), n_jobs=jobs or -1)
        language = self.project.language
        tagger = Tagger(
            tree,
            language=language if language in CODES else "auto",
            replay=int(params["keep"]),
        )
        vocabulary = self._vocabulary() if boolean(params["use_labels"]) else None
        self.info(f"training on {len(texts)} documents")
        with self._told():
            tagger.fit(texts, labels, None if vocabulary is None else "auto", vocabulary)
            os.makedirs(self.datadir, exist_ok=True)
            tagger.save(self._folder)
        self._adopt(tagger)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        texts, labels = self._samples(corpus.documents)
        if not texts:
            return
        self.info(f"learning from {len(texts)} documents")
        with self._told(), storage.edit(self._folder) as tagger:
            tagger.partial_fit(texts, labels)
        self._adopt(tagger)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        if self._tagger is None:
            raise NotInitializedException(
                f"no model is loaded from {self._folder}: call initialize() first",
                backend_id=self.backend_id,
            )
        limit = int(params["limit"])
        found: list[list[Any]] = [[] for _ in documents]
        if limit > 0:
            texts = [document.text for document in documents]
            with self._told():
                found = self._tagger.predict(texts, k=limit)
        return SuggestionBatch.from_sequence(
            [
                [
                    SubjectSuggestion(subject_id=self._subject_ids[uri], score=score)
                    for uri, score in tags
                    if self._subject_ids[uri] is not None
                ]
                for tags in found
            ],
            self.project.subjects,
            limit=limit,
        )

    def _adopt(self, tagger: Tagger) -> None:
        """Use a tagger; subjects that left Annif's vocabulary are None."""
        find = self.project.subjects.by_uri
        self._subject_ids = {uri: find(uri, warnings=False) for uri in tagger.labels}
        self._tagger = tagger

    def _samples(self, documents: Iterable[Any]) -> tuple[list[str], list[list[str]]]:
        subjects = self.project.subjects
        texts, labels = [], []
        for document in documents:
            texts.append(document.text)
            labels.append([subjects[subject].uri for subject in document.subject_set])
        return texts, labels

    def _vocabulary(self) -> LabelVocabulary:
        language = self.project.vocab_lang
        return LabelVocabulary.of(
            Concept(
                subject.uri,
                subject.labels.get(language) or "",
                uri=subject.uri,
                notation=subject.notation or "",
            )
            for _, subject in self.project.subjects.active
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Pass warnings to Annif's log, and errors as its own, which its command line prints."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            except UmpteenError as problem:
                raise OperationFailedException(
                    str(problem), backend_id=self.backend_id
                ) from problem
            finally:
                for one in caught:
                    self.warning(str(one.message))
