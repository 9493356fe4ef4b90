"""Exceptions and warnings, each with advice.

Every error is an `UmpteenError` and also the builtin that a person would catch; every message
says what was given, what was expected, and how to fix it.
"""

import sys
import warnings
from types import FrameType
from typing import Any

from sklearn.exceptions import NotFittedError as _NotFittedError


class UmpteenError(Exception):
    """Catch this to catch everything that this library raises on purpose."""


class FeaturesError(UmpteenError, ValueError):
    """`X` cannot be used: look at its shape, its type, and for NaN or infinite values.

    `X` holds one row per sample: a scipy sparse matrix or a 2-D array of numbers. For texts,
    use `Tagger`, which makes the numbers.
    """


class LabelsError(UmpteenError, ValueError):
    """`Y` cannot be used: non-zero means relevant; negative values and NaN are not allowed.

    `Y` is a sparse or dense indicator `(n, n_labels)`, a list of label-id lists, or, with one label
    per sample, a 1-D integer array.
    """


class LabelsShapeError(LabelsError):
    """`X` and `Y` do not belong together: row `i` of `Y` holds the labels of row `i` of `X`."""


class GroupsError(UmpteenError, ValueError):
    """`groups` and what it groups do not belong together.

    Row j of `groups` marks the samples of group j, and row j of `group_labels` holds how often
    each label occurs among them.
    """


class TextsError(UmpteenError, ValueError):
    """Texts cannot be used: expected a list of `str`, with `""` where there is no text."""


class ParameterError(UmpteenError, ValueError):
    """A parameter is out of its range; the message names the range."""


class NotFittedError(UmpteenError, _NotFittedError):
    """The model was not trained yet: call `fit` first, or `umpteen.load` a saved one."""


class DataFormatError(UmpteenError, ValueError):
    """A data file could not be read; the message names the file, the line and what was expected."""


class DatasetNotFoundError(UmpteenError, FileNotFoundError):
    """No data set of that name: put it into a folder and name the folder, as the message says."""


class NotWritableError(UmpteenError, OSError):
    """A file cannot be written: create its folder, fix its permissions or free disk space."""


class ShardsError(UmpteenError, RuntimeError):
    """Some shards could not be read or predicted: fix what the message names, and run it again.

    In a prediction, all other shards are finished, and are skipped then; `summary` has the counts.
    """

    def __init__(self, message: str, summary: Any = None) -> None:
        super().__init__(message)
        self.summary = summary


class ModelNotFoundError(UmpteenError, FileNotFoundError):
    """No model folder at that path: `save` makes one."""


class ModelCorruptError(UmpteenError, ValueError):
    """The model folder is damaged: a file is missing, cut short or edited. Copy it again."""


class ModelVersionError(UmpteenError, ValueError):
    """The model was saved by a newer version: upgrade umpteen, or save it again with this one."""


class ModelPathError(UmpteenError, FileExistsError):
    """Something else is where the model should go: choose a new folder, or an older model's."""


class ModelChangedError(UmpteenError, RuntimeError):
    """Someone else changed the model after it was loaded: load it and change it again."""


class HubError(UmpteenError, OSError):
    """A model could not be loaded from or pushed to the Hub: check network, name and token."""


class NotStorableError(UmpteenError, TypeError):
    """A value inside the model cannot be saved; the message names it and what can be."""


class MemoryBudgetError(UmpteenError, MemoryError):
    """The work would need more memory than allowed; the message names the settings to change."""


class MissingExtraError(UmpteenError, ImportError):
    """An optional part is not installed; the message gives the command that installs it."""


class ClusterError(UmpteenError, RuntimeError):
    """Tasks could not be run on the cluster; the message says what happened to them."""


class ClusterConnectionError(ClusterError, ConnectionError):
    """No cluster answers at that address: start one, or check the address."""


class ClusterMemoryError(ClusterError, MemoryError):
    """The cluster has too little memory or disk space; the message says how to get more."""


class RanksError(UmpteenError, ValueError):
    """Processes that train one network together do not agree: the message says in what.

    Under `torch.distributed`, all ranks run the same program with the same data and settings.
    """


class RebuildDueWarning(UserWarning):
    """Many labels or words were added after the last `fit`, so it is time to fit again."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line that called this library, however many calls are in between.

    Then the message names a line of the person's own program, and is shown once for each.
    """
    level = 1
    while (frame := _frame(level)) is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _frame(level: int) -> FrameType | None:
    try:
        return sys._getframe(level)
    except ValueError:  # the stack is not so deep
        return None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
