"""What an operator may set."""

from dataclasses import dataclass, field
from pathlib import Path

from umpteen.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """Limits and permissions of a server; sizes in bytes or characters, times in seconds.

    Parameters
    ----------
    max_body : longest body of a request, in bytes.
    max_text : longest text, in characters.
    max_texts : most texts in one request.
    max_waiting : texts that may wait for their turn; what does not fit is refused with 429.
    max_batch : most texts that are answered together.
    gather : how long the first text of a batch waits for others, if the last ones came together.
    timeout : how long a request may take, from its first byte to its answer.
    read_keys, learn_keys : whoever has one of them may read, or also teach; empty for everybody.
    origins : web pages of other hosts that may ask (CORS).
    learns : whether corrections are taken.
    learn_after, learn_within : corrections, or seconds after the first of them, that start
        learning without anybody asking for it.
    validation : file of texts and labels that no model has seen, on which learning is checked.
    keep_versions : previous models of each name that stay on disk.
    log_json, log_texts : whether log lines are JSON, and whether they have the texts.
    """

    max_body: int = 10_000_000
    max_text: int = 1_000_000
    max_texts: int = 1000
    max_waiting: int = 1024
    max_batch: int = 128
    gather: float = 0.003
    timeout: float = 30.0
    read_keys: tuple[str, ...] = field(default=(), repr=False)
    learn_keys: tuple[str, ...] = field(default=(), repr=False)
    origins: tuple[str, ...] = ()
    learns: bool = True
    learn_after: int = 50
    learn_within: float = 600.0
    validation: Path | None = None
    keep_versions: int = 5
    log_json: bool = False
    log_texts: bool = False

    def __post_init__(self) -> None:
        for name in ("max_body", "max_text", "max_texts", "max_waiting", "max_batch", "timeout"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name}={getattr(self, name)!r} is not possible: it is > 0")
