"""`umpteen add-labels`, `umpteen update` and `umpteen remove-labels`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from umpteen.cli.errors import UsageError, say
from umpteen.cli.models import (
    Model,
    Output,
    Verify,
    changed,
    check_free,
    is_tagger,
    load_model,
    load_tagger,
)
from umpteen.cli.output import Json, show
from umpteen.cli.reading import File, LabelTexts, Reading, reads_file


@reads_file
def add_labels(
    model: Model,
    file: File,
    reading: Reading,
    label_texts: LabelTexts = None,
    output: Output = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Add new labels to a model; the others stay unchanged.

    \b
    FILE has texts with the names of the new labels, as in new.jsonl:
      {"text": "My pickles went soft", "labels": ["fermenting"]}
      {"text": "How much salt for kimchi?", "labels": ["fermenting", "kimchi"]}
    \b
    Example:
      umpteen add-labels model/ new.jsonl
    \b
    Labels that the model already has are skipped. The model is replaced in one step, or saved in
    --output.
    """
    from umpteen.data import read_label_texts
    from umpteen.tagger.growth import examples_of

    folder = output or model
    # Report a wrong model before the texts are read.
    load_tagger(model, "add-labels", folder, verify)
    samples = reading.read_labelled_texts(file)
    own_texts = None if label_texts is None else read_label_texts(label_texts)
    with changed(model, output, verify) as tagger:
        new = _new_names(tagger, file, samples.labels or [])
        examples = examples_of(samples.texts or [], samples.labels or [], new)
        tagger.add_labels(new, own_texts and _of_names(own_texts, new), examples)
    show({"added": len(new), "labels": len(tagger.label_names_.ids), "model": str(folder)}, json)


@reads_file
def update(
    model: Model,
    file: File,
    reading: Reading,
    output: Output = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Teach a model from more texts, or from corrected ones.

    \b
    FILE has texts with all of their labels, as in more.jsonl:
      {"text": "Is lard good for frying?", "labels": ["frying", "lard"]}
    \b
    Example:
      umpteen update model/ more.jsonl
    \b
    The labels of these texts are trained again, on these texts and the training texts that the
    model kept. New names become labels. If a text is among the kept ones, its labels are replaced.
    """
    folder = output or model
    load_tagger(model, "update", folder, verify)
    samples = reading.read_labelled_texts(file)
    with changed(model, output, verify) as tagger:
        n_before = len(tagger.label_names_.ids)
        tagger.partial_fit(samples.texts, samples.labels)
    n_labels = len(tagger.label_names_.ids)
    show(
        {
            "texts": len(samples),
            "new labels": n_labels - n_before,
            "labels": n_labels,
            "model": str(folder),
        },
        json,
    )


def remove_labels(
    model: Model,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Labels to remove.")],
    output: Output = None,
    verify: Verify = None,
    json: Json = None,
) -> None:
    """Remove labels from a model, so that it does not predict them any more.

    \b
    Example:
      umpteen remove-labels model/ frying "deep frying"
    \b
    The other labels stay unchanged. For a model of matrices, give label ids.
    """
    folder = output or model
    load_model(model, verify)
    check_free(folder)
    with changed(model, output, verify) as loaded:
        if is_tagger(loaded):
            loaded.remove_labels(names)
        else:
            loaded.remove_labels([_number(name) for name in names])
    show({"removed": len(set(names)), "model": str(folder)}, json)


def _new_names(tagger: Any, file: Path, labels: list[list[str]]) -> list[str]:
    """The labels that the model does not know."""
    given = {name for names in labels for name in names}
    present = given & tagger.label_names_.ids.keys()
    if present == given:
        raise UsageError(
            f"{file} has no new label: the model has all of its labels ({len(present):,}, such as "
            f"{min(present)!r}). To teach it more about them, use umpteen update"
        )
    if present:
        say(f"skipped labels that the model has: {len(present):,}, such as {min(present)!r}")
    return sorted(given - present)


def _of_names(texts: dict[str, str], names: list[str]) -> dict[str, str]:
    return {name: texts[name] for name in names if name in texts}


def _number(name: str) -> int:
    if not name.isdecimal():
        raise UsageError(f"{name!r} is not a label id; this model has no label names")
    return int(name)
