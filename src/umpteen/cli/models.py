"""Model folders: a `Tagger`, which answers texts with names, or a bare classifier."""

import atexit
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError

if TYPE_CHECKING:
    from umpteen.tagger import Tagger

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that `umpteen fit` made.")]
Verify = Annotated[
    bool | None,
    typer.Option(
        "--verify/--no-verify",
        help="Verify the checksums of all arrays, or skip this check.",
        show_default="up to 200 MB",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FOLDER", help="Save there, and leave MODEL as it is."),
]

OF_FIT, OF_ANSWERS = 16, 3  # kernels that are compiled on the first run
_at_exit = ExitStack()
atexit.register(_at_exit.close)


def load_model(path: Path, verify: bool | None = None) -> Any:
    """Load the model in a folder."""
    from umpteen.base import ExtremeClassifier
    from umpteen.storage import load

    note_compiling(OF_ANSWERS)
    model = load(path, verify=verify)
    if not is_tagger(model) and not isinstance(model, ExtremeClassifier):
        raise UsageError(f"{path} holds a {type(model).__name__}, which does not predict labels")
    return model


def load_tagger(
    path: Path, purpose: str, output: Path | None = None, verify: bool | None = None
) -> "Tagger":
    """Return the model in a folder, which must be a `Tagger`; check that `output` is free."""
    model = load_model(path, verify)
    if not is_tagger(model):
        raise UsageError(
            f"{purpose} needs a model of texts; {path} holds a {type(model).__name__} that learned "
            "from a file of matrices (xmc, svmlight)"
        )
    if output is not None:
        check_free(output)
    return model  # type: ignore[no-any-return]


@contextmanager
def changed(path: Path, output: Path | None, verify: bool | None) -> Iterator[Any]:
    """Yield the model in a folder and save it afterwards: in place under a lock, or in `output`."""
    from umpteen.storage import edit

    if output is None or (output.exists() and output.samefile(path)):
        with edit(path, verify=verify) as model:
            yield model
        return
    model = load_model(path, verify)
    yield model
    model.save(output)


def check_validated(tagger: "Tagger") -> None:
    """Refuse a model without a validation split, on which thresholds are chosen."""
    if tagger.validated_ is not None:
        return
    reason = (
        "the model was fitted on too few texts for a validation split (it needs 50, and 20 groups "
        "if labels are those of groups)"
        if tagger.calibrate
        else "the model was fitted with --no-calibrate, which draws no validation split"
    )
    raise UsageError(
        f"{reason}: tune it on a file of texts and labels that it did not learn from: "
        "umpteen tune MODEL FILE"
    )


def is_tagger(model: Any) -> bool:
    """Return whether a model learned from texts and names."""
    from umpteen.tagger import Tagger

    return isinstance(model, Tagger)


def check_free(folder: Path) -> None:
    """Refuse folders that `save` would refuse, before training rather than after."""
    if folder.is_symlink() and not folder.exists():
        raise UsageError(f"{folder} is a broken link: choose another --output")
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not place.is_dir():
        raise UsageError(f"{place} is a file, but a model needs a folder: choose another --output")
    if not os.access(place, os.W_OK):
        raise UsageError(f"{place} cannot be written to: choose another --output")
    names = os.listdir(place) if place == folder else []
    foreign = [name for name in names if not name.endswith((".npy", "manifest.json"))]
    if foreign and "manifest.json" not in names:
        raise UsageError(
            f"{folder} holds other files ({foreign[0]!r}) and no model: choose a new folder"
        )


def check_outside(folder: Path, **others: Path | None) -> None:
    """Refuse folders inside of a new model's, which `save` would refuse, after training."""
    place = Path(os.path.realpath(folder))
    for option, other in others.items():
        if other is not None and Path(os.path.realpath(other)).is_relative_to(place):
            raise UsageError(
                f"--{option} {other} is in the folder of the model, which holds nothing else: "
                "choose another folder"
            )


def note_compiling(n_kernels: int) -> None:
    """Show the progress of compilation until the command ends."""
    from umpteen.progress import compile_line

    _at_exit.enter_context(compile_line(n_kernels))
