"""What a reranker may spend, and what it has spent."""

import threading
import time
from dataclasses import dataclass, field, replace

_CHARACTERS_PER_TOKEN = 4  # where a server does not count


def estimated_tokens(text: str) -> int:
    """Return roughly how many tokens a text has.

    >>> estimated_tokens("a loaf of bread")
    4
    """
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Usage:
    """The requests and costs so far.

    `fallbacks` counts the texts that got the tagger's own order, `refused` those among them for
    which there was no budget, and `last_fault` says what went wrong last.
    """

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cached: int = 0
    fallbacks: int = 0
    refused: int = 0
    last_fault: str = ""


@dataclass
class Budget:
    """Limits on requests, tokens and seconds of all requests together; None is no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    usage: Usage = field(default_factory=Usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, tokens: int) -> bool:
        """Return whether a request of about so many tokens is allowed, and count it if it is."""
        with self._lock:
            used = self.usage
            allowed = (
                (self.max_requests is None or used.requests < self.max_requests)
                and (self.max_tokens is None or used.tokens + tokens <= self.max_tokens)
                and (self.max_seconds is None or used.seconds < self.max_seconds)
            )
            if allowed:
                self.usage = replace(used, requests=used.requests + 1, tokens=used.tokens + tokens)
            return allowed

    def settle(self, tokens: int, estimated: int, started: float) -> None:
        """Replace the estimate of a request by what it took."""
        with self._lock:
            used = self.usage
            self.usage = replace(
                used,
                tokens=used.tokens + tokens - estimated,
                seconds=used.seconds + time.monotonic() - started,
            )

    def count(self, *, cached: int = 0, refused: int = 0, fault: str = "") -> None:
        """Count an answer out of the cache, or one that fell back to the tagger."""
        with self._lock:
            used = self.usage
            self.usage = replace(
                used,
                cached=used.cached + cached,
                refused=used.refused + refused,
                fallbacks=used.fallbacks + bool(fault),
                last_fault=fault or used.last_fault,
            )
