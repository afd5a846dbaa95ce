"""The values of a GGUF file, asked for by name and type, beside the shapes of its tensors."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from models.families.published import Published

ROPE_FACTORS = "rope_freqs.weight"
"""Divides rotary frequencies: numbers of a config that are stored like a weight."""
MOST_ROWS = 1 << 16
"""Numbers of a tensor that may be read for a config."""


class Metadata:
    """The metadata of one file. `numbers` reads one of its tensors."""

    def __init__(
        self,
        values: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        numbers: Callable[[str], Tensor],
    ) -> None:
        self._values, self._shapes, self._numbers = Published(values), shapes, numbers
        name = values.get("general.architecture")
        if not isinstance(name, str):
            raise ValueError("general.architecture must be a name.")
        self.architecture = name

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number; ValueError where it is not given and has no default."""
        return self._values.int(self._full(name), default)

    def number(self, name: str) -> float:
        """A number that must be given."""
        if self._full(name) not in self._values:
            raise ValueError(f"{self._full(name)} must be given as a number.")
        return self._values.number(self._full(name), 0)

    def pick(self, *same: str, **names: str) -> dict[str, Any]:
        """The values of these that the file has, by their names in a published config."""
        names |= {name: name for name in same}
        keys = {published: self._full(name) for published, name in names.items()}
        values = self._values.values
        return {name: values[full] for name, full in keys.items() if full in values}

    def require(self, name: str, *allowed: object) -> None:
        """Refuses every value but these, and none at all when the first is None."""
        self._values.require(self._full(name), *allowed)

    def token(self, role: str) -> int | None:
        """The ID of a special token; None where the file names none."""
        return self._values.optional_int(f"tokenizer.ggml.{role}_token_id")

    def has(self, tensor: str) -> bool:
        return tensor in self._shapes

    def rows(self, tensor: str) -> int:
        """The length of the first axis of a tensor that must be there."""
        if not self._shapes.get(tensor):
            raise ValueError(f"there is no {tensor}.")
        return self._shapes[tensor][0]

    def few(self, tensor: str) -> list[float]:
        """The numbers of a short tensor."""
        if len(self._shapes[tensor]) != 1 or self.rows(tensor) > MOST_ROWS:
            raise ValueError(f"{tensor} has a shape that it cannot have.")
        numbers: list[float] = self._numbers(tensor).tolist()
        return numbers

    def _full(self, name: str) -> str:
        return f"{self.architecture}.{name}"
