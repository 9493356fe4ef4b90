"""`umpteen estimate`."""

from umpteen.cli.models import OF_FIT, note_compiling
from umpteen.cli.output import Json, readable_size, readable_time, show, wants_json
from umpteen.cli.reading import File, Reading, reads_file
from umpteen.cli.settings import Jobs, Prune, Trees, new_classifier


@reads_file
def estimate(
    file: File,
    reading: Reading,
    trees: Trees = 1,
    prune: Prune = 0.1,
    jobs: Jobs = -1,
    json: Json = None,
) -> None:
    """Tell what fit would need: memory, space on disk, time.

    \b
    Example:
      umpteen estimate train.jsonl
    \b
    Out come rough figures for the classifier, from a small part of the work. A model of texts
    also keeps words and samples; and learning probabilities, which fit does unless told
    --no-calibrate, doubles the time.
    """
    samples = reading.read_labelled(file)
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
