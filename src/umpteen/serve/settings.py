"""Settings of a server."""

from dataclasses import dataclass, field
from pathlib import Path

from umpteen.errors import ParameterError


@dataclass(frozen=True)
class Settings:
    """Limits and permissions of a server; times are in seconds.

    Parameters
    ----------
    max_body : maximum size of a request body, in bytes.
    max_text : maximum length of a text, in characters.
    max_texts : maximum number of texts in one request.
    max_waiting : maximum number of texts in the queue; requests beyond it get 429.
    max_batch : maximum number of texts that are predicted together.
    gather : how long a batch waits for more texts, if the last requests arrived together.
    timeout : how long a request may take, its body included.
    read_keys, learn_keys : API keys for reading, and for reading and teaching. Without
        `read_keys`, everybody may read; without `learn_keys`, whoever may read may teach.
    hosts : names of this server in requests, apart from addresses; `"*"` allows every name.
    origins : other hosts whose web pages may send requests (CORS).
    learns : whether the server accepts corrections.
    learn_after, learn_within : number of corrections, or seconds after the first of them, after
        which learning starts.
    validation : file of texts and labels that no model has seen, to check what is learned.
    keep_versions : number of versions of each model that stay on disk.
    log_json, log_texts : whether log lines are JSON, and whether they contain texts.
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
    hosts: tuple[str, ...] = ("localhost",)
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
                raise ParameterError(f"{name}={getattr(self, name)!r} is not possible: use > 0")
