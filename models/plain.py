"""Settings as plain frozen data: a JSON round trip that refuses what it does not know."""

import dataclasses
import json
from typing import Any, TypeVar, get_type_hints

Settings = TypeVar("Settings", bound="PlainData")


class PlainData:
    """The base of the frozen dataclasses that describe a model or its training.

    Fields are numbers, booleans and names. `fault()` says in one sentence, in the words of
    the fields, what is wrong, or None.
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
        settings = cls(**values)
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
        allowed = hint | int if hint is float else hint
        is_stray_bool = isinstance(value, bool) and hint is not bool
        if is_stray_bool or not isinstance(value, allowed):
            return f"{name} must be {getattr(hint, '__name__', hint)}, not {type(value).__name__}."
    return None


def choice_fault(settings: PlainData, choices: dict[str, tuple[str, ...]]) -> str | None:
    """Why a name is none of those there are to choose from."""
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value not in allowed:
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
