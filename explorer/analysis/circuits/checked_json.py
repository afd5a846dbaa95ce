"""JSON that a stranger may have written, read into frozen dataclasses: every field is checked."""

import json
from dataclasses import fields, is_dataclass
from functools import lru_cache
from math import isfinite
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from explorer.system import cooperative

Made = TypeVar("Made")

LONGEST_TEXT, LONGEST_LIST = 20_000, 100_000
AT_MOST = "at_most"
"""Of the metadata of a field that is a list: how long it may be, where that is less."""


class FieldError(ValueError):
    """Which field is wrong and why, in one sentence."""


def parsed(text: str) -> object:
    """The JSON of a text. FieldError where it is none, or has numbers that are not finite."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FieldError("The file is not readable JSON.") from error


def read_as(kind: type[Made], value: object, where: str = "") -> Made:
    """The value as this dataclass, with tuples for lists. FieldError names the field."""
    made: Made = _read(kind, value, where)
    return made


def _read(hint: Any, value: Any, where: str, longest: int = LONGEST_LIST) -> Any:
    if is_dataclass(hint):
        return _object(hint, value, where)
    origin, inside = get_origin(hint), get_args(hint)
    if origin is tuple:
        most = longest if inside[-1] is Ellipsis else len(inside)
        if not isinstance(value, list) or len(value) > most:
            raise FieldError(f"{where} must be a list of at most {most:,}.")
        if inside[-1] is not Ellipsis and len(value) < most:
            raise FieldError(f"{where} must be a list of {most:,}.")
        return tuple(_read(inside[0], each, f"{where}[{at}]") for at, each in enumerate(value))
    if origin is Literal:
        if value in inside and isinstance(value, str):
            return value
        raise FieldError(f"{where} must be one of {', '.join(map(repr, inside))}.")
    if NoneType in inside:
        (other,) = (each for each in inside if each is not NoneType)
        return None if value is None else _read(other, value, where)
    return _plain(hint, value, where)


def _object(kind: Any, value: object, where: str) -> Any:
    cooperative.step()
    known = _fields(kind)
    names = known.keys()
    if not isinstance(value, dict):
        raise FieldError(f"{where or 'The file'} must be an object of named values.")
    for what, some in (("misses", names - value.keys()), ("has no field", value.keys() - names)):
        if some:
            raise FieldError(f"{where or 'It'} {what} {sorted(some)[0][:40]!r}.")
    start = f"{where}." if where else ""
    return kind(
        **{
            name: _read(hint, value[name], start + name, longest)
            for name, (hint, longest) in known.items()
        }
    )


@lru_cache(maxsize=64)
def _fields(kind: Any) -> dict[str, tuple[Any, int]]:
    """The type of each field of a dataclass, and how long it may be where it is a list."""
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.metadata.get(AT_MOST, LONGEST_LIST))
        for field in fields(kind)
    }


def _plain(hint: Any, value: Any, where: str) -> Any:
    """A text, a whole number from 0 on, or a finite number."""
    if hint is str and isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise FieldError(f"{where} has more than {LONGEST_TEXT:,} characters.")
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if hint is int and isinstance(value, int) and 0 <= value < 2**53:
            return value
        if hint is float and abs(value) < 1e300 and isfinite(value):
            return float(value)
    names = {str: "a text", int: "a whole number from 0 on", float: "a finite number"}
    raise FieldError(f"{where} must be {names[hint]}.")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
