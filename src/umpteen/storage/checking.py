"""Check a loaded object against the declarations of its classes: types, shapes, index ranges."""

import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from umpteen.errors import ModelCorruptError, UmpteenError
from umpteen.storage.declarations import BINDING, VALUES, Given, Sizes
from umpteen.storage.registry import is_estimator, is_fitted, is_storable

_LARGEST = 2**63 - 1

_PLAIN: dict[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, int, np.float32, np.integer),  # np.float64 is a float; kernels take no others
    bool: (bool, np.bool_),
    str: (str,),
}


def check_loaded(model: Any, sizes: Sizes | None = None) -> None:
    """Raise `ModelCorruptError` unless a model and all within are as their classes declare."""
    _check_object(model, sizes or {}, type(model).__name__)


def _check_object(value: Any, given: Sizes, where: str) -> None:
    """Check types, then sizes, then contents, then the conditions of the class itself."""
    if is_estimator(value):
        _check_parameters(value, where)
        _check_complete(value, where)
    entries = [
        entry
        for name, hint in _declared(type(value)).items()  # type: ignore[arg-type]
        if hasattr(value, name)
        for entry in _entries(getattr(value, name), hint, f"{where}.{name}")
    ]
    sizes = dict(given)
    for kinds in (BINDING, VALUES):
        for entry in entries:
            for note in entry.notes:
                fault = note.fault(entry.value, sizes) if isinstance(note, kinds) else None
                if fault:
                    raise _corrupt(entry.where, fault)
    is_ours = is_estimator(value) or type(value).__module__.startswith("umpteen.")
    for entry in entries:
        is_fit = getattr(entry.value, "__sklearn_is_fitted__", lambda: True)
        if is_ours and is_estimator(entry.value) and not is_fit():
            raise _corrupt(entry.where, f"is a {type(entry.value).__name__} that is not fitted")
        if is_storable(entry.value):
            names = {name for note in entry.notes if isinstance(note, Given) for name in note.names}
            handed = {name: sizes[name] for name in names if name in sizes}
            _check_object(entry.value, handed, entry.where)
    is_unfitted = is_estimator(value) and not any(map(is_fitted, vars(value)))
    if hasattr(value, "_faults") and not is_unfitted:
        for fault in value._faults(sizes):
            raise _corrupt(where, fault)


def refusals(value: Any) -> Iterator[str]:
    """Yield the error that the constructor of a dataclass raises for these values, if any."""
    try:
        replace(value)
    except UmpteenError as error:
        yield f"has invalid values ({error})"


@dataclass(frozen=True)
class _Entry:
    """A value that is no list or dict, and what was declared with its type."""

    where: str
    value: Any
    notes: tuple[Any, ...]


def _entries(value: Any, hint: Any, where: str, notes: tuple[Any, ...] = ()) -> Iterator[_Entry]:
    """A value and those in it, each found to be of its type."""
    hint = _written_out(hint)
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        hint, notes = _written_out(hint), (*notes, *more)
    if get_origin(hint) in (Union, types.UnionType):
        alternatives = [each for each in get_args(hint) if _is_a(value, each)]
        if not alternatives:
            raise _wrong_type(value, hint, where)
        yield from _entries(value, alternatives[0], where, notes)
        return
    if not _is_a(value, hint):
        raise _wrong_type(value, hint, where)
    if value is not None:
        yield _Entry(where, value, notes)
    for number, (inner, inner_hint) in enumerate(_members(value, hint)):
        yield from _entries(inner, inner_hint, f"{where}[{number}]")


def _members(value: Any, hint: Any) -> Iterator[tuple[Any, Any]]:
    """What a list, dict or tuple holds, with its type; of plain values, one of each type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        plain = arguments[0] in _PLAIN
        inside = {type(each): each for each in value}.values() if plain else value
        yield from ((each, arguments[0]) for each in inside)
    elif origin is dict:
        yield from ((key, arguments[0]) for key in value)
        yield from ((each, arguments[1]) for each in value.values())
    elif origin is tuple and arguments[-1] is not Ellipsis:
        yield from zip(value, arguments, strict=True)


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as can be seen without looking inside."""
    hint = _written_out(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_a(value, arguments[0])
    if origin in (Union, types.UnionType):
        return any(_is_a(value, each) for each in arguments)
    if hint is Any:
        return True
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    if hint is None or hint is type(None):
        return value is None
    if origin is Literal:
        return type(value) is str and value in arguments
    if origin is np.ndarray:
        (wanted,) = get_args(arguments[1]) or (Any,)
        return isinstance(value, np.ndarray) and (wanted is Any or value.dtype == np.dtype(wanted))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(arguments)
    if hint in _PLAIN:
        is_flag = isinstance(value, bool | np.bool_)
        fits = not isinstance(value, int) or -_LARGEST <= value <= _LARGEST
        return fits and isinstance(value, _PLAIN[hint]) and is_flag == (hint is bool)
    return isinstance(value, origin or hint)


def _written_out(hint: Any) -> Any:
    """What an alias of the form `type NDArray[T] = ...` stands for; newer numpy has such."""
    origin = get_origin(hint)
    if hasattr(origin, "__value__"):
        return origin.__value__[get_args(hint)]
    return getattr(hint, "__value__", hint)


@cache
def _declared(cls: Any) -> dict[str, Any]:
    """The stored fields of a class with their types; those that cannot be told are left out."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError):  # of somebody's own class
        return {}
    if is_dataclass(cls):
        return {field.name: hints[field.name] for field in fields(cls) if field.name in hints}
    return {name: hint for name, hint in hints.items() if is_fitted(name)}


def _check_parameters(estimator: Any, where: str) -> None:
    constraints = getattr(type(estimator), "_parameter_constraints", {})
    parameters = estimator.get_params(deep=False)
    for name, given in parameters.items():
        if type(given) is int and not -_LARGEST <= given <= _LARGEST:
            raise _corrupt(where, f"has {name} beyond 64 bits")
        if is_storable(given):
            _check_object(given, {}, f"{where}.{name}")
    try:
        validate_parameter_constraints(constraints, parameters, type(estimator).__name__)
    except InvalidParameterError as error:
        raise _corrupt(where, f"has an invalid parameter: {error}") from None


def _check_complete(estimator: Any, where: str) -> None:
    """An estimator of ours has learned all that it declares, or nothing."""
    cls = type(estimator)
    if cls.__module__.startswith("umpteen."):
        missing = [name for name in _declared(cls) if not hasattr(estimator, name)]  # type: ignore[arg-type]
        if missing and any(map(is_fitted, vars(estimator))):
            raise _corrupt(where, f"lacks the attributes {', '.join(missing)}")


def _wrong_type(value: Any, hint: Any, where: str) -> ModelCorruptError:
    found = f"of type {type(value).__name__}"
    if isinstance(value, np.ndarray):
        found = f"an array of {value.dtype}"
    return _corrupt(where, f"is {found}, expected {getattr(hint, '__name__', hint)}")


def _corrupt(where: str, fault: str) -> ModelCorruptError:
    return ModelCorruptError(f"{where} {fault}: the model is damaged; copy its folder again")
