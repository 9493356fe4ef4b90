"""Sections on texts with one class per sample: which sets, how they are trained, how often."""

from collections.abc import Callable, Iterator
from functools import partial

from papers.contents import Block, Section
from papers.multihead.settings import CLASSES, training_of
from papers.multihead.tasks import LEAST_SAMPLES
from papers.sets import available


def class_sections(
    title: str,
    claim: str,
    more: str,
    measure: Callable[[str, bool, int], Iterator[Block]],
    quick: bool,
) -> list[Section]:
    """A section for each data set; `measure` gets its name, `quick` and the number of seeds."""
    n_seeds = 1 if quick else 3
    names = ["pydocs"] if quick else available(list(CLASSES))
    return [
        Section(
            f"{title}: {name}",
            claim,
            f"{name}: the class of a sample is its rarest label that has at least "
            f"{LEAST_SAMPLES} training samples. Samples without such a label are left out, in "
            "training and test, and so are test samples whose class is no training sample's. "
            f"TF-IDF of single words, a Bag; {training_of(name, quick).in_words()}; "
            f"seeds: {n_seeds}. " + more,
            partial(measure, name, quick, n_seeds),
        )
        for name in names
    ]
