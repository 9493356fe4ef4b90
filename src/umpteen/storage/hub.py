"""Models on the Hugging Face Hub: download one, and nothing but what its manifest names."""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from umpteen.errors import HubError, ModelCorruptError, ModelNotFoundError, ParameterError
from umpteen.extras import require
from umpteen.limits import limit_advice, max_line_bytes
from umpteen.storage.arrays import plain_name
from umpteen.storage.folder import MANIFEST, read_manifest

_ADDRESS = re.compile(r"hf:/{1,2}([^/@]+/[^/@]+)(?:@(.+))?")  # Path() drops one of the slashes
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_REVISION = re.compile(r"\w[\w./-]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubAddress:
    """Where a model is on the Hub: `hf://user/name`, or `hf://user/name@revision`."""

    repository: str
    revision: str | None = None

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Self | None:
        """Return the address that a path is, or None for a folder.

        >>> HubAddress.of("hf://user/name@v1")
        HubAddress(repository='user/name', revision='v1')
        """
        text = fspath(path)
        if not text.startswith("hf:/"):
            return None
        found = _ADDRESS.fullmatch(text)
        if found is None or not _is_plain(found[1], _NAME):
            raise ParameterError(
                f"{text!r} is not a model on the Hub: expected hf://user/name, or "
                "hf://user/name@revision"
            )
        if found[2] is not None and not _is_plain(found[2], _REVISION):
            raise ParameterError(
                f"{found[2]!r} is not a revision: expected a branch, a tag or a commit"
            )
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"hf://{self.repository}" + (f"@{self.revision}" if self.revision else "")


def download(address: HubAddress) -> Path:
    """Return a local folder with the model at `address`, which is downloaded once.

    Only the manifest and the arrays that it names are downloaded, all from the same commit, after
    their sizes were compared with the manifest. Other files of the repository are ignored.
    """
    hub = require("huggingface_hub", "hub")
    with _explained(address):
        _check_sizes(hub, address, address.revision, {MANIFEST: None})
        manifest = _fetch(hub, address, MANIFEST, address.revision)
        commit = manifest.parent.name
        if not _COMMIT.fullmatch(commit):
            raise HubError(f"the Hub returned {commit!r} for {address}; expected a commit")
        folder = _home() / address.repository.replace("/", "--") / commit
        if folder.is_dir():
            return folder
        with _draft(folder) as draft:
            _link(manifest, draft / MANIFEST)
            try:
                entries = read_manifest(draft)["arrays"]
                sizes = {plain_name(entry["file"]): int(entry["bytes"]) for entry in entries}
            except (LookupError, TypeError, ValueError, AttributeError) as problem:
                if isinstance(problem, ModelCorruptError):
                    raise
                raise ModelCorruptError(f"{address} has a damaged {MANIFEST}") from None
            _check_sizes(hub, address, commit, sizes)
            for name in sizes:
                _link(_fetch(hub, address, name, commit), draft / name)
    return folder


def _is_plain(text: str, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch(text) is not None and ".." not in text


def _fetch(hub: Any, address: HubAddress, name: str, revision: str | None) -> Path:
    return Path(hub.hf_hub_download(address.repository, name, revision=revision))


def _check_sizes(
    hub: Any, address: HubAddress, revision: str | None, sizes: Mapping[str, int | None]
) -> None:
    """Refuse files whose size is not what it should be, before they are downloaded."""
    if not sizes or require("huggingface_hub.constants", "hub").HF_HUB_OFFLINE:
        return
    try:
        infos = hub.HfApi().get_paths_info(address.repository, list(sizes), revision=revision)
    except Exception as problem:
        if is_unreachable(problem):
            return  # what was downloaded before can be used
        raise
    found = {info.path: int(info.size) for info in infos if hasattr(info, "size")}
    for name, size in sizes.items():
        if name not in found:
            reason = "it is not a model of umpteen" if name == MANIFEST else "push it again"
            error = ModelNotFoundError if name == MANIFEST else ModelCorruptError
            raise error(f"{address} has no file {name}: {reason}")
        if size is not None and found[name] != size:
            raise ModelCorruptError(
                f"{name} of {address} has {found[name]:,} bytes, but its manifest says {size:,}: "
                "push the model again"
            )
        if size is None and found[name] > max_line_bytes():
            raise ModelCorruptError(f"{name} of {address} is {limit_advice()}")


def _home() -> Path:
    try:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # no home folder
        root = tempfile.gettempdir()
    return Path(root) / "umpteen" / "hub"


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A folder to fill, which is at `folder` once all is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{secrets.token_hex(8)}.part")
    draft.mkdir()
    try:
        yield draft
        with suppress(OSError):  # somebody else was faster, with the same files
            os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """The Hub's cache has symbolic links, which a model folder may not have."""
    content = os.path.realpath(source)
    try:
        os.link(content, target)
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(content, target)


@contextmanager
def _explained(address: HubAddress) -> Iterator[None]:
    """Errors of the Hub's client as ours, with advice."""
    errors = require("huggingface_hub.errors", "hub")
    try:
        yield
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as problem:
        raise ModelNotFoundError(
            f"the Hub has no {address}, or you may not see it: check its name, or log in with "
            "`hf auth login`"
        ) from problem
    except errors.LocalEntryNotFoundError as problem:
        raise HubError(
            f"the Hub could not be reached, and {address} was not downloaded before: "
            f"{_first_line(problem)}"
        ) from problem
    except errors.EntryNotFoundError as problem:
        raise ModelNotFoundError(f"{address} has no model: {_first_line(problem)}") from problem
    except Exception as problem:
        if is_unreachable(problem) or isinstance(problem, errors.HfHubHTTPError):
            raise HubError(
                f"{address} could not be downloaded: {_first_line(problem)}"
            ) from problem
        raise


def is_unreachable(problem: Exception) -> bool:
    """Return whether an error says that the Hub did not answer, by any HTTP library."""
    library = type(problem).__module__.partition(".")[0]
    answered = getattr(problem, "response", None) is not None
    return isinstance(problem, ConnectionError | TimeoutError) or (
        library in ("httpx", "httpx2", "httpcore", "requests", "urllib3") and not answered
    )


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]
