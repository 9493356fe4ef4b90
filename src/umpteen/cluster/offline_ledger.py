"""Which shards are finished: a receipt for each, in the folder `.umpteen` of the output folder.

Drafts are in that folder, too. Only the process that holds its lock gives them their names, so that
a shard is finished exactly once, whatever other processes still do when their driver is gone.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umpteen.cluster.offline_answers import Draft, Recipe
from umpteen.cluster.offline_shards import Shard
from umpteen.errors import DataFormatError, NotWritableError
from umpteen.storage.folder import MANIFEST, locked
from umpteen.writing import open_draft, sync_folder

_FOLDER = ".umpteen"


class Ledger:
    """The finished shards of an output folder."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self.folder, self.drafts = folder, folder / _FOLDER
        self._identity = recipe.identity()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the folder, and remove the drafts that are left at the end, or from a killed run."""
        self._check_folder()
        try:
            self.drafts.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise NotWritableError(
                f"{self.folder} cannot be written to ({problem.strerror}): choose another folder"
            ) from None
        with locked(self.drafts) as alone:
            try:
                self._remove_drafts(alone)
                yield
            finally:
                self._remove_drafts(alone)

    def is_finished(self, shard: Shard) -> bool:
        """Return whether the answers are there, of this file, this model and these options."""
        receipt = self._receipt(shard)
        wanted = {"input": input_identity(shard), **self._identity}
        return receipt.get("made_from") == wanted and self._is_ours(shard, receipt)

    def check_free(self, shard: Shard) -> None:
        """Raise an error if something is at the place of the answers that we did not write."""
        path = self.folder / shard.name
        if os.path.lexists(path) and not self._is_ours(shard, self._receipt(shard)):
            raise NotWritableError(
                f"{path} is there, but not as this command wrote it: move it away, choose another "
                "folder, or replace it with overwrite=True"
            )

    def finish(self, shard: Shard, draft: Draft, read: dict[str, Any]) -> None:
        """Give a draft its name; `read` is the identity of the input before it was read.

        A kill at any moment leaves the answers with their receipt, or no answers.
        """
        if input_identity(shard) != read:
            draft.path.unlink()
            raise DataFormatError(f"{shard.input} was changed while it was read: run it again")
        path, receipt = self.folder / shard.name, self._receipt_path(shard)
        for parent in (path.parent, receipt.parent):
            parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # an old receipt must not vouch for it, nor a new one
        written = {"bytes": draft.bytes, "modified": draft.modified, "sha256": draft.sha256}
        content = {"made_from": {"input": read, **self._identity}, "output": written}
        text = json.dumps({**content, "rows": draft.rows}, indent=1)
        fresh = draft.path.with_suffix(".receipt.part")
        with open_draft(fresh) as file:
            file.write(text.encode())
        os.replace(fresh, receipt)
        sync_folder(receipt.parent)
        os.replace(draft.path, path)
        sync_folder(path.parent)

    def _check_folder(self) -> None:
        if self.folder.is_file():
            raise NotWritableError(
                f"{self.folder} is a file, but many answers need a folder: choose another name"
            )
        if (self.folder / MANIFEST).exists():
            raise NotWritableError(
                f"{self.folder} holds a model, and answers among its files would be lost when it "
                "is saved again: choose another folder"
            )

    def _is_ours(self, shard: Shard, receipt: dict[str, Any]) -> bool:
        """Whether the file is what the receipt says; a copy with a new date is compared by hash."""
        written, path = receipt.get("output"), self.folder / shard.name
        if not isinstance(written, dict) or not path.is_file() or path.is_symlink():
            return False
        found = path.stat()
        if found.st_size != written.get("bytes"):
            return False
        if found.st_mtime_ns == written.get("modified"):
            return True
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == written.get("sha256")

    def _receipt(self, shard: Shard) -> dict[str, Any]:
        try:
            receipt = json.loads(self._receipt_path(shard).read_bytes())
        except (OSError, ValueError):
            return {}
        return receipt if isinstance(receipt, dict) else {}

    def _receipt_path(self, shard: Shard) -> Path:
        return self.drafts / f"{shard.name}.json"

    def _remove_drafts(self, alone: bool) -> None:
        if alone:
            for draft in self.drafts.glob("*.part"):
                draft.unlink(missing_ok=True)


def input_identity(shard: Shard) -> dict[str, Any]:
    """Return what changes when somebody writes to the file of a shard."""
    found = shard.input.stat()
    return {"name": shard.input.name, "bytes": found.st_size, "modified": found.st_mtime_ns}
