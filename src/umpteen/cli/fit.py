"""`umpteen fit` and `umpteen estimate`."""

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError
from umpteen.cli.groups import Group, GroupedTexts, GroupLabels, read_grouped, refuse_alone
from umpteen.cli.models import OF_FIT, check_free, check_outside, is_tagger, note_compiling
from umpteen.cli.output import Json, readable_size, readable_time, show, size_on_disk, wants_json
from umpteen.cli.reading import Files, LabelTexts, Reading, named, reads_file
from umpteen.cli.settings import Cluster, Jobs, Prune, Trees, new_classifier, on_cluster

if TYPE_CHECKING:
    from umpteen.data import Samples


Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model.")
]
Vocabulary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Names and broader labels: SKOS, TSV, CSV or JSON Lines. Names are in the "
        "language of --language, if the file has it.",
    ),
]
NoLabelNames = Annotated[
    bool,
    typer.Option(
        "--no-label-names",
        help="Do not use the words of label names. By default, they are tried, and used if "
        "they help on the validation split.",
    ),
]
Language = Annotated[
    str,
    typer.Option(metavar="CODE", help="Language of the texts, such as fi; none: no stemming."),
]
KeepTexts = Annotated[
    bool,
    typer.Option("--keep-texts", help="Keep texts, so that explain can show similar ones."),
]
NoCalibrate = Annotated[
    bool,
    typer.Option("--no-calibrate", help="Faster, but scores are not probabilities."),
]
MaxMemory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Maximum memory for training, such as 4GB.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Same seed, same model.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="With --cluster: keep finished tasks there, to go on if this command is killed.",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Leave texts in their files, to save memory. With --cluster, workers read them, "
        "and all machines must see the files under the same paths.",
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep features in files in this folder while training, so that they may be larger "
        "than the memory. With --cluster, all machines must see the folder under the same path.",
    ),
]


@reads_file
def fit(
    files: Files,
    output: Output,
    reading: Reading,
    group: Group = None,
    group_labels: GroupLabels = None,
    label_texts: LabelTexts = None,
    vocabulary: Vocabulary = None,
    no_label_names: NoLabelNames = False,
    language: Language = "auto",
    trees: Trees = 1,
    prune: Prune = 0.1,
    keep_texts: KeepTexts = False,
    no_calibrate: NoCalibrate = False,
    max_memory: MaxMemory = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    checkpoint: Checkpoint = None,
    stream: Stream = False,
    scratch: Scratch = None,
    json: Json = None,
) -> None:
    """Train a model on labelled texts, and save it in a folder.

    \b
    FILE has a line for each text, as in train.jsonl:
      {"text": "How do I keep sourdough alive?", "labels": ["bread", "sourdough"]}
    or a row, as in train.csv:
      text,labels
      How do I keep sourdough alive?,bread|sourdough
    \b
    Examples:
      umpteen fit train.jsonl -o model/
      umpteen fit 'train/*.parquet' -o model/
    \b
    The folder is for predict, evaluate, explain and serve. An existing model is replaced, in one
    step at the end. With a file of matrices (xmc, svmlight), the model predicts label ids.
    \b
    If labels are known per group of texts only, name the column of the group:
      umpteen fit pages.csv --group page -o model/
    The labels of a group are on its first row or on all of its rows. Repeat a label to say how
    many texts of the group have it.
    """
    from umpteen.data import Samples
    from umpteen.tagger import Tagger

    check_free(output)
    check_outside(output, checkpoint=checkpoint, scratch=scratch)
    refuse_alone(group, group_labels)
    _refuse_together(
        checkpoint=checkpoint is not None and cluster is None,
        stream=stream and group is not None,
        no_label_names=no_label_names and bool(label_texts or vocabulary),
    )
    started = time.perf_counter()
    with on_cluster(cluster, checkpoint):  # around reading, too: a checkpoint is of all tasks
        samples: Samples | GroupedTexts = (
            reading.read_labelled(files, streamed=stream)
            if group is None
            else read_grouped(files, reading, group, group_labels)
        )
        note_compiling(OF_FIT)
        classifier = new_classifier(samples.texts is not None, trees, prune, max_memory, seed, jobs)
        if isinstance(samples, Samples) and samples.texts is None:
            _refuse_text_options(
                files, label_texts=label_texts, keep_texts=keep_texts, vocabulary=vocabulary,
                language=language != "auto", no_label_names=no_label_names,
            )  # fmt: skip
            if scratch is not None and cluster is None:
                raise UsageError(_NO_SCRATCH.format(named(files)))
            with _in_scratch(scratch):
                model = classifier.fit(samples.X, samples.Y)
                model.save(output)
        else:
            tagger = Tagger(
                classifier, language=None if language == "none" else language,
                calibrate=not no_calibrate, keep_texts=keep_texts, random_state=seed,
            )  # fmt: skip
            about = _about_labels(label_texts, vocabulary, no_label_names, tagger.language)
            with _in_scratch(scratch):
                model = _fit_texts(tagger, samples, about)
                model.save(output)
    _summarize(model, samples, output, time.perf_counter() - started, json)


_NO_SCRATCH = (
    "--scratch keeps features of texts in files, and {} holds matrices, which are read into memory:"
    " leave out --scratch, or use --cluster, whose workers then read the matrices from files"
)
_NOT_TOGETHER = {
    "checkpoint": "--checkpoint needs --cluster, such as --cluster local",
    "stream": "--stream needs labels of single texts: leave out --group, or --stream",
    "no_label_names": "--no-label-names is for labels that have nothing but names: leave out "
    "--no-label-names, or --label-texts and --vocabulary",
}


def _refuse_together(**wrong: bool) -> None:
    for option, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(_NOT_TOGETHER[option])


def _in_scratch(folder: Path | None) -> AbstractContextManager[None]:
    from umpteen.data import scratch

    return nullcontext() if folder is None else scratch(folder)


def _about_labels(
    label_texts: Path | None, vocabulary: Path | None, no_label_names: bool, language: str | None
) -> dict[str, Any]:
    """Return the keywords of `Tagger.fit` that describe the labels."""
    from umpteen.data import read_label_texts

    about: dict[str, Any] = {"label_texts": None} if no_label_names else {}
    if label_texts is not None:
        about["label_texts"] = read_label_texts(label_texts)
    if vocabulary is not None:
        about["vocabulary"] = _names_in(language, vocabulary)
    return about


def _fit_texts(tagger: Any, samples: "Samples | GroupedTexts", about: dict[str, Any]) -> Any:
    if isinstance(samples, GroupedTexts):
        groups = {"groups": samples.groups, "group_labels": samples.group_labels}
        return tagger.fit(samples.texts, **groups, **about)
    return tagger.fit(samples.texts, samples.labels, **about)


def _names_in(language: str | None, vocabulary: Path) -> Any:
    """The vocabulary with names in the language of the texts, if that is given and it has some."""
    from umpteen.data import read_vocabulary
    from umpteen.errors import ParameterError

    try:
        return read_vocabulary(vocabulary, None if language == "auto" else language)
    except ParameterError:
        return read_vocabulary(vocabulary)


def _refuse_text_options(files: list[Path], **given: Any) -> None:
    for option, value in given.items():
        if value:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} is for files of texts, and {named(files)} holds matrices")


def _summarize(
    model: Any, samples: "Samples | GroupedTexts", folder: Path, seconds: float, json: bool | None
) -> None:
    size = size_on_disk(folder)
    figures = {"model": str(folder), "samples": len(samples), "labels": _n_labels(model)}
    if groups := getattr(model, "groups_", None):
        figures["groups"] = str(groups)
    if wants_json(json):
        chosen = getattr(model, "chosen", {})
        figures |= {"seconds": round(seconds, 3), "bytes": size, **_validation(model)}
        show(figures | ({"chosen": chosen} if chosen else {}), json)
        return
    shown = {"time": readable_time(seconds), "size": readable_size(size)}
    if chosen := getattr(model, "chosen", {}):
        shown["chosen"] = ", ".join(f"{key} {value}" for key, value in chosen.items())
    if validation := _validation(model):
        by_groups = ", by the labels of their groups" if groups else ""
        shown["first label right"] = (
            "{:.1%} of {:,} texts for validation".format(*validation.values()) + by_groups
        )
    elif is_tagger(model) and model.calibrate:
        few = "50 texts in 20 groups" if groups else "50 texts"
        shown["scores"] = f"not probabilities, which need at least {few}"
    show(figures | shown, json)
    print(f"\nnext: umpteen predict {folder} FILE     labels for new texts, - for stdin")
    print(f"      umpteen evaluate {folder} FILE    how good it is, on texts it has not seen")
    if groups:
        print(
            f"      umpteen assign {folder} FILE --group NAME    which text has its group's labels"
        )


def _n_labels(model: Any) -> int:
    return len(model.label_names_.ids) if is_tagger(model) else model.n_labels_


def _validation(model: Any) -> dict[str, float]:
    """How often the best label is right on the validation split."""
    validated = getattr(model, "validated_", None)
    if validated is None:
        return {}
    share = round(float(validated.hits[:, 0].mean()), 4)
    return {"first_label_right": share, "validation_texts": len(validated.hits)}


@reads_file
def estimate(
    files: Files,
    reading: Reading,
    trees: Trees = 1,
    prune: Prune = 0.1,
    jobs: Jobs = -1,
    json: Json = None,
) -> None:
    """Estimate what fit needs: memory, disk space and time.

    \b
    Example:
      umpteen estimate train.jsonl
    \b
    The figures are rough, for one fit of the classifier, from a small part of the work. A model of
    texts also keeps words and samples. Calibration, which --no-calibrate turns off, makes training
    1.3 to 1.45 times as long.
    """
    samples = reading.read_labelled(files)
    note_compiling(OF_FIT)
    classifier = new_classifier(samples.texts is not None, trees, prune, None, 0, jobs)
    if samples.texts is None:
        found = classifier.estimate(samples.X, samples.Y)
    else:
        from umpteen.tagger import Tagger

        found = Tagger(classifier).estimate(samples.texts, samples.labels)
    if wants_json(json):
        show(vars(found), json)
        return
    figures = {
        "memory on top of the data": readable_size(found.memory),
        "classifier on disk": readable_size(found.model_size),
        "training time": readable_time(found.seconds),
    }
    show(figures, json)
