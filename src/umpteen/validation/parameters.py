"""Parameters of methods and of questions to them."""

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

from umpteen.errors import ParameterError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# What parameters that many methods share may be, for their `_parameter_constraints`.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None]
VERBOSE = ["boolean", StrOptions({"auto"})]


def check_parameters(estimator: "BaseEstimator") -> None:
    """Hold the constructor's arguments against the class's `_parameter_constraints`."""
    try:
        validate_parameter_constraints(
            estimator._parameter_constraints,
            estimator.get_params(deep=False),
            caller_name=type(estimator).__name__,
        )
    except ValueError as error:
        raise ParameterError(str(error)) from None


def check_k(k: Any, name: str = "k") -> int:
    """`k` as an int, at least 1.

    >>> check_k(np.int64(5))
    5
    """
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"{name}={k!r} is not possible: ask for {name}=1 or more")
    return int(k)
