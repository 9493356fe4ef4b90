"""`umpteen describe`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from umpteen.cli.errors import UsageError
from umpteen.cli.groups import Group, GroupLabels, read_grouped, refuse_alone
from umpteen.cli.models import Verify, is_tagger, load_model
from umpteen.cli.output import Json, readable_size, show, size_on_disk, wants_json
from umpteen.cli.reading import Reading, is_stdin, reads_file


@reads_file
def describe(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A data file, a folder with train.* and test.*, or a model."
        ),
    ],
    reading: Reading,
    group: Group = None,
    group_labels: GroupLabels = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Describe a data file or a model.

    \b
    Examples:
      umpteen describe train.jsonl
      umpteen describe model/
    \b
    For data: the number of samples and labels, labels per sample, and how rare most labels are. For
    a model: its kind, labels and size, whether it is calibrated, and the versions of the libraries
    that it was saved with. With --group: how many groups there are, how large they are, and
    whether their labels are counts.
    """
    refuse_alone(group, group_labels)
    if group is not None:
        show(read_grouped(path, reading, group, group_labels).figures(), json)
        return
    if path.is_dir() and (path / "manifest.json").exists():
        show(_model(path, wants_json(json), verify), json)
        return
    found = _folder(path) if path.is_dir() else _file(path, reading)
    show(found.to_dict(), json, found)


def _file(path: Path, reading: Reading) -> Any:
    from umpteen.data import Dataset

    samples = reading.read_labelled(path)
    name = "stdin" if is_stdin(path) else path.name
    found = Dataset.from_samples(samples, name=name).describe()
    return replace(found, figures={"": found.figures["train"]})


def _folder(path: Path) -> Any:
    from umpteen.data import load
    from umpteen.errors import DatasetNotFoundError

    place = path.resolve()
    try:
        return load(place.name, folder=place.parent).describe()
    except DatasetNotFoundError:
        raise UsageError(
            f"{path} is neither a model (it has no manifest.json) nor data (it has no train.jsonl "
            "or similar)"
        ) from None


def _model(folder: Path, exact: bool, verify: bool | None) -> dict[str, Any]:
    from umpteen.storage.folder import read_manifest

    model = load_model(folder, verify)
    size = size_on_disk(folder)
    about = _tagger(model) if is_tagger(model) else _classifier(model)
    versions = read_manifest(folder)["versions"]
    return {
        "model": str(folder),
        **about,
        "size": size if exact else readable_size(size),
        "versions": versions if exact else ", ".join(f"{n} {v}" for n, v in versions.items()),
    }


def _tagger(tagger: Any) -> dict[str, Any]:
    thresholds = tagger.thresholds_
    return {
        "kind": f"texts to label names, by {type(tagger.classifier_).__name__}",
        "labels": len(tagger.label_names_.ids),
        "samples": tagger.n_samples_,
        "features": tagger.n_features,
        "calibrated": tagger.calibration_ is not None,
        "thresholds": "not tuned" if thresholds is None else str(thresholds),
        "keeps_texts": tagger.replay_.texts is not None,
        **({} if tagger.groups_ is None else {"groups": str(tagger.groups_)}),
    }


def _classifier(model: Any) -> dict[str, Any]:
    return {
        "kind": f"features to label ids, by {type(model).__name__}",
        "labels": model.n_labels_,
        "features": model.n_features_in_,
    }
