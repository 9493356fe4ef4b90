"""Parameters of methods and of questions to them."""

from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

from umpteen.errors import ParameterError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_ANY_SEED = 2**31 - 1
_TOO_LARGE = 2**63
_FLAGS = ("boolean", bool, "random_state", object)  # constraints that True and False meet

# What parameters that many methods share may be, for their `_parameter_constraints`.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None]
VERBOSE = ["boolean", StrOptions({"auto"})]


def check_parameters(estimator: "BaseEstimator") -> None:
    """Hold the constructor's arguments against the class's `_parameter_constraints`."""
    if not hasattr(estimator, "get_params"):
        raise ParameterError(
            f"fit was called on a class, and a {type(estimator).__name__} is in the place of the "
            "object: call it on an object, with brackets, such as Tagger().fit(texts, labels)"
        )
    values = estimator.get_params(deep=False)
    check_settings(values, estimator._parameter_constraints, type(estimator).__name__)


def check_settings(
    values: dict[str, Any], constraints: dict[str, list[Any]], caller_name: str
) -> None:
    """Hold settings against scikit-learn's constraints, and refuse numbers beyond 64 bits.

    True and False are no numbers.
    """
    for name, value in values.items():
        if isinstance(value, int) and abs(value) >= _TOO_LARGE:
            raise ParameterError(f"{name} of {caller_name} is not possible: it exceeds 64 bits")
        if isinstance(value, Real) and not isinstance(value, int | float | np.number):
            raise ParameterError(f"{name}={value} of {caller_name} is not possible: use a float")
        is_flag = isinstance(value, bool | np.bool_)
        if is_flag and name in constraints and not any(c in _FLAGS for c in constraints[name]):
            raise ParameterError(f"{name}={value} of {caller_name} is not possible: use a number")
        if isinstance(value, type) and _is_object(constraints.get(name, [])):
            raise ParameterError(
                f"{name}={value.__name__} of {caller_name} is a class: pass an instance, "
                f"{value.__name__}()"
            )
        try:
            validate_parameter_constraints(constraints, {name: value}, caller_name=caller_name)
        except (ValueError, TypeError, OverflowError) as error:
            raise ParameterError(f"{error}{_meant(value, constraints[name])}") from None


def _is_object(constraints: list[Any]) -> bool:
    return any(isinstance(each, HasMethods) for each in constraints)


def _meant(value: Any, constraints: list[Any]) -> str:
    """Return a hint if a text is close to one of those that are possible."""
    options = [
        text for each in constraints if isinstance(each, StrOptions) for text in each.options
    ]
    close = get_close_matches(value, sorted(options), n=1) if isinstance(value, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""


def check_k(k: Any, name: str = "k") -> int:
    """Return `k` as an int, at least 1.

    >>> check_k(np.int64(5))
    5
    """
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer):
        raise ParameterError(f"{name}={k!r} is not possible: use a whole number, {name}=1 or more")
    if k < 1:
        raise ParameterError(f"{name}={k!r} is not possible: use {name}=1 or more")
    return int(k)


def check_number(value: Any, name: str) -> float:
    """Return `value` as a float, finite and at least 0.

    >>> check_number(1, "step")
    1.0
    """
    try:
        number = -1.0 if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        number = np.inf
    if not 0 <= number < np.inf:
        raise ParameterError(f"{name}={value!r} is not possible: expected 0 or more")
    return number


def check_count(value: Any, name: str) -> int:
    """Return `value` as an int, 0 or more.

    >>> check_count(0, "iterations")
    0
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ParameterError(f"{name}={value!r} is not possible: expected 0, 1, 2, ...")
    return int(value)


def check_seed(random_state: Any) -> int:
    """Return a seed drawn from `random_state`: a number, a RandomState or None.

    >>> check_seed(0)
    209652396
    """
    try:
        return int(check_random_state(random_state).randint(_ANY_SEED))
    except ValueError as error:
        raise ParameterError(f"random_state={random_state!r} is not possible: {error}") from None


def check_rows(rows: Any, n_samples: int, name: str) -> npt.NDArray[np.bool_]:
    """Return which samples are chosen, one boolean for each; some are, and some are not.

    >>> check_rows([True, False], 2, "validation")
    array([ True, False])
    """
    try:
        chosen = np.asarray(rows)
    except ValueError as error:  # rows of unequal length
        raise ParameterError(f"{name} is not a list of booleans: {error}") from None
    if chosen.dtype != bool or chosen.shape != (n_samples,):
        raise ParameterError(
            f"{name} has shape {chosen.shape} and dtype {chosen.dtype}; expected a boolean for "
            f"each of {n_samples:,} samples"
        )
    if chosen.all() or not chosen.any():
        raise ParameterError(
            f"{name} marks {int(chosen.sum()):,} of {n_samples:,} samples; expected at least one, "
            "and not all of them"
        )
    return chosen
