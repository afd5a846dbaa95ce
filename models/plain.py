"""Settings as plain frozen data: a JSON round trip that refuses what it does not know."""

import dataclasses
import json
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Settings = TypeVar("Settings", bound="PlainData")


class PlainData:
    """The base of the frozen dataclasses that describe a model or its training.

    Fields are numbers, booleans, names, tuples of them, or plain data again. `fault()` says
    in one sentence, in the words of the fields, what is wrong, or None.
    """

    def fault(self) -> str | None:
        return type_fault(self)

    def replace(self: Settings, **changes: Any) -> Settings:
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def from_dict(cls: type[Settings], values: object) -> Settings:
        """From plain data. ValueError, in one sentence, when it describes nothing sound."""
        if not isinstance(values, dict):
            raise ValueError("The settings must be a JSON object of named values.")
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if unknown := sorted(map(repr, values.keys() - known)):
            raise ValueError(f"There are unknown keys: {', '.join(unknown[:5])[:200]}.")
        hints = get_type_hints(cls)
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


def type_fault(settings: PlainData) -> str | None:
    """Why a value is not of its field's type. An int passes for a float, a bool for neither."""
    for name, hint in get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        allowed = hint | int if float in (hint, *get_args(hint)) else hint
        is_stray_bool = isinstance(value, bool) and bool not in (hint, *get_args(hint))
        if get_origin(hint) is tuple:
            item = get_args(hint)[0]
            if not isinstance(value, tuple) or any(type(one) is not item for one in value):
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


def choice_fault(settings: PlainData, choices: dict[str, tuple[str, ...]]) -> str | None:
    """Why a name is none of those there are to choose from."""
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value is not None and value not in allowed:
            return f"{name} must be one of {', '.join(allowed)}, not {value[:40]!r}."
    return None


def range_fault(
    settings: PlainData, names: tuple[str, ...], least: float, most: float
) -> str | None:
    """Why a number is out of its range, both ends included. None and NaN: allowed, and not."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:
            return f"{name} must be between {least:,} and {most:,}, not {str(value)[:40]}."
    return None
