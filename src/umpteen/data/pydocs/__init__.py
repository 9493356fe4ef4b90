"""The built-in data set: say what you want, get the Python object that does it.

Its samples are sentences from the documentation of the installed standard library, numpy, scipy
and scikit-learn; the labels are the dotted names of the objects they describe.
"""

from umpteen.data.dataset import Dataset
from umpteen.data.pydocs.isolated import collect
from umpteen.data.pydocs.storing import cached


def load_pydocs() -> Dataset:
    """Return the documentation of this Python and its libraries as a data set, cached on disk.

    A separate Python interpreter collects the data, so every process of the same installation
    gets the same data set. Ids start with `sentence/` (from the docstring of the object) or
    `see-also/` (what other objects say about it); all samples of dev and test are of that kind.
    """
    collection = cached(collect)
    train, dev, test = (collection.splits[name] for name in ("train", "dev", "test"))
    return Dataset.from_samples(train, dev, test, label_texts=collection.label_texts, name="pydocs")
