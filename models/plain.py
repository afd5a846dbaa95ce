"""Settings as plain frozen data that round-trips through JSON and refuses unknown keys."""

import dataclasses
import json
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Settings = TypeVar("Settings", bound="PlainData")


def choice_field(default: str | None, options: Iterable[str]) -> Any:
    """A field of `PlainData` that holds one of these names."""
    return dataclasses.field(default=default, metadata={"options": tuple(options)})


def number_field(default: float | None, least: float, most: float) -> Any:
    """A field of `PlainData` that holds a number in this range, both ends included."""
    return dataclasses.field(default=default, metadata={"range": (least, most)})


class PlainData:
    """The base of the frozen dataclasses that describe a model or its training.

    Fields are numbers, booleans, names, tuples of them, or plain data again.
    """

    def fault(self) -> str | None:
        """One sentence that says which field is wrong and why, or None."""
        return _type_fault(self) or _value_fault(self)

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
        kind: Any = cls
        hints = _hints(kind)
        if unknown := sorted(map(repr, values.keys() - hints.keys())):
            raise ValueError(f"There are unknown keys: {', '.join(unknown[:5])[:200]}.")
        if missing := sorted(_required(kind) - values.keys()):
            raise ValueError(f"There is no {' and no '.join(missing)}.")
        settings = cls(**{name: _shaped(hints[name], value) for name, value in values.items()})
        if fault := settings.fault():
            raise ValueError(fault)
        return settings

    @classmethod
    def from_json(cls: type[Settings], text: str) -> Settings:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError("The settings are not readable JSON.") from error
        return cls.from_dict(values)


_hints = cache(get_type_hints)


@cache
def _required(cls: type) -> frozenset[str]:
    """The fields that have no default."""
    return frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is field.default_factory is dataclasses.MISSING
    )


def _type_fault(settings: PlainData) -> str | None:
    """Why a value is not of its field's type. An int passes for a float, a bool for neither."""
    kind: Any = type(settings)
    for name, hint in _hints(kind).items():
        value = getattr(settings, name)
        allowed = hint | int if float in (hint, *get_args(hint)) else hint
        is_stray_bool = isinstance(value, bool) and bool not in (hint, *get_args(hint))
        if get_origin(hint) is tuple:
            item = get_args(hint)[0]
            if not isinstance(value, tuple) or any(type(element) is not item for element in value):
                return f"{name} must be a list of {item.__name__}."
        elif is_stray_bool or not isinstance(value, allowed):
            return f"{name} must be {getattr(hint, '__name__', hint)}, not {type(value).__name__}."
        elif isinstance(value, PlainData) and (fault := value.fault()):
            return f"{name}: {fault}"
    return None


def _shaped(hint: Any, value: Any) -> Any:
    """JSON's lists and objects as the tuples and plain data that a field holds."""
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(value)
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    for kind in kinds:
        if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, PlainData):
            return kind.from_dict(value)
    return value


def _value_fault(settings: PlainData) -> str | None:
    """Why a name is not an option of its field, or a number not in its range (NaN never is)."""
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        name, value = field.name, getattr(settings, field.name)
        if value is None:
            continue
        options = field.metadata.get("options", (value,))
        if value not in options:
            return f"{name} must be one of {', '.join(options)}, not {value[:40]!r}."
        least, most = field.metadata.get("range", (None, None))
        if least is not None and not least <= value <= most:
            return f"{name} must be between {least:,} and {most:,}, not {str(value)[:40]}."
    return None
