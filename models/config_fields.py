"""Settings as plain frozen data that round-trips through JSON and refuses unknown keys."""

import dataclasses
import json
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from models.file_text import parse_json

Settings = TypeVar("Settings", bound="PlainData")

LARGEST_NUMBER, LONGEST_TEXT, LONGEST_LIST = 1e300, 20_000, 100_000


def choice_field(default: str | None, options: Iterable[str]) -> Any:
    """A field of `PlainData` that holds one of these names."""
    return dataclasses.field(default=default, metadata={"options": tuple(options)})


def number_field(default: float | None, least: float, most: float) -> Any:
    """A field of `PlainData` that holds a number in this range, both ends included."""
    return dataclasses.field(default=default, metadata={"range": (least, most)})


class PlainData:
    """The base of the frozen dataclasses that describe a model or its training.

    Fields are finite numbers, booleans, texts, plain data again, or tuples of one of these; no
    text and no tuple is longer than the bounds above.
    """

    def fault(self) -> str | None:
        """One sentence that says which field is wrong and why, or None."""
        kind: Any = type(self)
        for field in dataclasses.fields(kind):
            if fault := _fault(field, _hints(kind)[field.name], getattr(self, field.name)):
                return fault
        return None

    def replace(self: Settings, **changes: Any) -> Settings:
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def from_dict(cls: type[Settings], values: object) -> Settings:
        """From parsed JSON. ValueError, in one sentence, for unknown keys or invalid values."""
        if not isinstance(values, dict):
            raise ValueError("The settings must be a JSON object of named values.")
        settings: Settings = _read(cls, values)
        if fault := settings.fault():
            raise ValueError(fault)
        return settings

    @classmethod
    def from_json(cls: type[Settings], text: str) -> Settings:
        try:
            values = parse_json(text)
        except (ValueError, RecursionError) as error:
            raise ValueError("The settings are not readable JSON.") from error
        return cls.from_dict(values)


_hints = cache(get_type_hints)


def _read(kind: Any, values: dict[str, Any]) -> Any:
    """Plain data of this kind, its values unchecked. ValueError for unknown or missing keys."""
    fields = dataclasses.fields(kind)
    if unknown := sorted(map(repr, values.keys() - {field.name for field in fields})):
        raise ValueError(f"There are unknown keys: {', '.join(unknown[:5])[:200]}.")
    needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    if missing := sorted(needed - values.keys()):
        raise ValueError(f"There is no {' and no '.join(missing)}.")
    hints = _hints(kind)
    return kind(**{name: _shaped(hints[name], value) for name, value in values.items()})


def _fault(field: dataclasses.Field[Any], hint: Any, value: Any) -> str | None:
    """Why a value is not of its field's type, options or range (NaN is in none).

    An int counts as a float, a bool as neither.
    """
    name, kinds = field.name, get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        return None if value in kinds else f"{name} must be one of {', '.join(map(repr, kinds))}."
    if get_origin(hint) is tuple:
        return _tuple_fault(name, kinds, value)
    is_stray_bool = isinstance(value, bool) and bool not in kinds
    if is_stray_bool or not isinstance(value, (*kinds, int) if float in kinds else kinds):
        return f"{name} must be {getattr(hint, '__name__', hint)}, not {type(value).__name__}."
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{name} has more than {LONGEST_TEXT:,} characters."
    if isinstance(value, PlainData) and (fault := value.fault()):
        return f"{name}: {fault}"
    options: Any = field.metadata.get("options")
    limits: Any = field.metadata.get("range")
    if options and value is not None and value not in options:
        return f"{name} must be one of {', '.join(options)}, not {str(value)[:40]!r}."
    if limits and value is not None and not limits[0] <= value <= limits[1]:
        return f"{name} must be between {limits[0]:,} and {limits[1]:,}, not {str(value)[:40]}."
    if not limits and isinstance(value, int | float) and not abs(value) < LARGEST_NUMBER:
        return f"{name} must be a finite number."
    return None


def _tuple_fault(name: str, kinds: tuple[Any, ...], value: Any) -> str | None:
    """Why a value is not a tuple of `kinds[0]`, of any length or of as many as there are kinds."""
    count = "" if kinds[-1] is Ellipsis else f"{len(kinds)} "
    is_list = isinstance(value, tuple) and (not count or len(value) == len(kinds))
    if not is_list or any(type(item) is not kinds[0] for item in value):
        return f"{name} must be a list of {count}{kinds[0].__name__}."
    if len(value) > LONGEST_LIST:
        return f"{name} must be a list of at most {LONGEST_LIST:,}."
    if any(isinstance(item, str) and len(item) > LONGEST_TEXT for item in value):
        return f"{name} holds a text of more than {LONGEST_TEXT:,} characters."
    for at, item in enumerate(value):
        if isinstance(item, PlainData) and (fault := item.fault()):
            return f"{name}[{at}]: {fault}"
    return None


def _shaped(hint: Any, value: Any) -> Any:
    """JSON's lists and objects as the tuples and plain data that a field holds."""
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(_shaped(get_args(hint)[0], element) for element in value)
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for kind in kinds:
        if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, PlainData):
            return _read(kind, value)
    return value
