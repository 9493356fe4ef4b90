"""Reranker: the candidates of a tagger, in the order of a language model."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import Any

from umpteen.errors import ParameterError
from umpteen.rerank.cache import AnswerCache
from umpteen.rerank.chat import (
    INSTRUCTIONS,
    Unusable,
    ask,
    check_key,
    check_url,
    chosen,
    n_tokens,
    question,
)
from umpteen.rerank.usage import Budget, Usage, estimated_tokens
from umpteen.tagger import Tagger
from umpteen.validation import check_count, check_k, check_number, check_texts

Tags = list[tuple[str, float]]

_FAULTS_IN_A_ROW = 3  # after which a server is not asked any more by the same call
_ANSWER_TOKENS = 200
_LONGEST_TEXT = 8000  # characters that are sent
_AT_ONCE = 4  # requests


class Reranker:
    """A tagger whose best answers are reordered by a language model.

    For each text, one request with the text and the tagger's best `n_candidates` labels is sent to
    a server that you name. The labels that the language model chooses come first, in its order;
    the other candidates follow in the tagger's order. Scores are those of the tagger. The language
    model can only choose among the candidates: nothing that a text says can add a label.

    Texts leave your machine if the server is elsewhere. If the server fails, if its answer is
    unusable, or if the budget is used up, a text gets the tagger's own order, and `usage` counts a
    fallback. After three faults in a row, the remaining texts of a call are not sent. Answers are
    cached.

    Parameters
    ----------
    tagger : a fitted `Tagger`.
    url : address of a server with the chat API of OpenAI, such as "http://127.0.0.1:11434/v1".
    model : name of the language model on that server.
    api_key : key that is sent to that server, and to no other.
    n_candidates : number of labels that are sent with each text.
    instructions : replaces the instructions to the language model.
    timeout : seconds that a request may take.
    max_requests, max_tokens, max_seconds : budget of this object, over all calls.
    cache : folder in which answers are kept for other processes, without the texts.
    """

    def __init__(
        self,
        tagger: Tagger,
        *,
        url: str,
        model: str,
        api_key: str | None = None,
        n_candidates: int = 20,
        instructions: str = INSTRUCTIONS,
        timeout: float = 30.0,
        max_requests: int | None = 1000,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        cache: str | PathLike[str] | None = None,
    ) -> None:
        if check_number(timeout, "timeout") <= 0:
            raise ParameterError(f"timeout={timeout!r} is not possible: use seconds above 0")
        if check_count(n_candidates, "n_candidates") < 2:
            raise ParameterError(
                f"n_candidates={n_candidates!r} is too few to reorder: use 2 or more"
            )
        self.tagger = tagger
        self.url = check_url(url)
        self.model = model
        self.n_candidates = n_candidates
        self.instructions = instructions
        self.timeout = timeout
        self._api_key = check_key(api_key)
        self._budget = Budget(max_requests, max_tokens, max_seconds)
        self._cache = AnswerCache(self.url, cache)

    def __repr__(self) -> str:
        return f"Reranker({self.tagger!r}, url={self.url!r}, model={self.model!r})"

    @property
    def usage(self) -> Usage:
        """The requests and costs so far, and how often the tagger's own order was used."""
        return self._budget.usage

    def predict(self, texts: Any, k: int = 5, *, only_chosen: bool = False) -> Any:
        """Return the labels of a text, or of each of several: names and the tagger's scores.

        With `only_chosen=True`, a text gets only labels that the language model chose, perhaps
        none. If no request was sent or it failed, the text gets the tagger's best labels.
        """
        k, one = check_k(k), isinstance(texts, str)
        given = check_texts([texts] if one else texts)
        candidates = self.tagger.predict(given, k=max(k, self.n_candidates))
        call = _Call(self)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            choices = list(pool.map(call.choice, given, candidates))
        found = [
            _ordered(tags, places, only_chosen)[:k]
            for tags, places in zip(candidates, choices, strict=True)
        ]
        return found[0] if one else found


class _Call:
    """One call of `predict`: it stops asking a server that fails again and again."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._faults = 0
        self._lock = threading.Lock()

    def choice(self, text: str, tags: Tags) -> list[int] | None:
        """Return the places of the chosen candidates, best first; None for the tagger's order."""
        own = self._reranker
        labels = [label for label, _ in tags[: own.n_candidates]]
        if len(labels) < 2:
            return None
        body = question(own.model, own.instructions, text[:_LONGEST_TEXT], labels)
        cached = own._cache.get(body, len(labels))
        if cached is not None:
            own._budget.count(cached=1)
            return cached
        if self._faults >= _FAULTS_IN_A_ROW:
            own._budget.count(fault=own.usage.last_fault or "the server failed")
            return None
        asked = "".join(message["content"] for message in body["messages"])
        estimated = _ANSWER_TOKENS + estimated_tokens(asked)
        if not own._budget.take(estimated):
            own._budget.count(refused=1, fault="the budget is used up")
            return None
        return self._asked(body, labels, estimated)

    def _asked(self, body: dict[str, Any], labels: list[str], estimated: int) -> list[int] | None:
        own, started, used = self._reranker, time.monotonic(), estimated
        try:
            answer = ask(own.url, body, own._api_key, own.timeout)
            counted = n_tokens(answer)
            used = estimated if counted is None else counted
            places = chosen(answer, labels)
            own._cache.put(body, places)
        except Exception as problem:  # whatever it is, the tagger has an answer
            own._budget.count(fault=_told(problem))
            with self._lock:
                self._faults += 1
            return None
        finally:
            own._budget.settle(used, estimated, started)
        with self._lock:
            self._faults = 0
        return places


def _told(problem: Exception) -> str:
    name = "" if isinstance(problem, Unusable) else f"{type(problem).__name__}: "
    return f"{name}{problem}"[:200]


def _ordered(tags: Tags, places: list[int] | None, only_chosen: bool) -> Tags:
    if places is None:
        return tags
    first = [tags[place] for place in places]
    return first if only_chosen else first + [tag for tag in tags if tag not in first]
