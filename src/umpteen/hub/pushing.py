"""Push a model to the Hub in one commit: its manifest, its arrays and its card."""

import re
import tempfile
from pathlib import Path
from typing import Any

from umpteen import storage
from umpteen.errors import HubError, ParameterError
from umpteen.extras import require
from umpteen.hub.card import model_card
from umpteen.report import Report
from umpteen.storage.hub import HubAddress, is_unreachable

_OURS = re.compile(r"[0-9a-f]{12}-\d+\.npy|manifest\.json")


def push_to_hub(
    model: Any,
    repository: str,
    *,
    report: Report | None = None,
    description: str = "",
    license: str | None = None,  # noqa: A002
    private: bool = False,
    revision: str | None = None,
) -> str:
    """Push a fitted model to the Hugging Face Hub, and return its address with the commit.

    `repository` is "user/name"; it is created if it does not exist. The repository gets the
    manifest, the arrays and a model card (`README.md`) in one commit, and loses the arrays of an
    earlier model; other files are left alone. The card is written from `report`, as `evaluate`
    returns it, and `description`: say there what the model was trained on. `revision` is a branch.
    Log in with `hf auth login` first. It needs the extra `hub`.
    """
    address = HubAddress.of(f"hf://{repository}")
    if address is None or address.revision is not None:
        raise ParameterError(f"repository={repository!r} is not possible: use 'user/name'")
    hub = require("huggingface_hub", "hub")
    errors = require("huggingface_hub.errors", "hub")
    card = model_card(model, repository, report=report, description=description, license=license)
    api = hub.HfApi()
    with tempfile.TemporaryDirectory() as folder:
        storage.save(model, folder)
        try:
            api.create_repo(repository, private=private, exist_ok=True)
            new = {path.name: path for path in sorted(Path(folder).iterdir())}
            there = api.list_repo_files(repository, revision=revision)
            old = [name for name in there if _OURS.fullmatch(name) and name not in new]
            done = api.create_commit(
                repository,
                [
                    *(hub.CommitOperationAdd(name, str(path)) for name, path in new.items()),
                    hub.CommitOperationAdd("README.md", card.encode()),
                    *(hub.CommitOperationDelete(name) for name in old),
                ],
                commit_message=f"Push a {type(model).__name__}",
                revision=revision,
            )
        except Exception as problem:
            if not is_unreachable(problem) and not isinstance(problem, errors.HfHubHTTPError):
                raise
            first = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            raise HubError(
                f"the model could not be pushed to {repository}: {first:.200}; check the name, "
                "and log in with `hf auth login`"
            ) from problem
    return f"hf://{repository}@{done.oid}"
