"""Interventions: plain frozen edits that name a site and compute its new value.

Give them to `trace(…, edits=…)`. `site` may be a pattern (`decoder.*.self_attn.weights`), and
where an edit has a `head`, it changes that head alone (b, h, …).
A forward pass in which an edit meets no site, or a value it does not fit, ends in an EditError.
Shapes: b batch, h heads, t tokens, q queries, k keys, d width of a vector.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


class EditError(ValueError):
    """An edit that could not be made, in one sentence."""


class AbsentIndexError(EditError):
    """An edit of a head or a position that its site does not have."""


@runtime_checkable
class Edit(Protocol):
    """A site, and a function from its value to another of the same shape."""

    @property
    def site(self) -> str: ...

    def __call__(self, value: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Scale:
    """The value times a factor; 0 ablates it."""

    site: str
    factor: float = 0.0
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        return _in_head(self.head, value * self.factor, value, self.site)


@dataclass(frozen=True)
class Mean:
    """Mean ablation: every position gets the mean over all positions (…, t, d).

    Source: Interpretability in the Wild (Wang et al. 2022), section 2.
    """

    site: str
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            raise EditError(f"{self.site} holds no numbers that have a mean.")
        mean = value.mean(-2, keepdim=True).expand_as(value)
        return _in_head(self.head, mean, value, self.site)


@dataclass(frozen=True)
class SetNeuron:
    """One number of the vector at every position (…, t, d), for example in an `mlp.hidden`.

    `to` None stands for its mean over positions.
    """

    site: str
    neuron: int
    to: float | None = 0.0

    def __call__(self, value: Tensor) -> Tensor:
        check_index("neuron", self.neuron, value.shape[-1], self.site)
        changed, column = value.clone(), value[..., self.neuron]
        changed[..., self.neuron] = column.mean(-1, keepdim=True) if self.to is None else self.to
        return changed


@dataclass(frozen=True)
class SetCell:
    """One cell of a matrix (…, q, k): true or false in a `mask`, a number among `weights`.

    Weights are not renormalised. `query` None stands for all queries, `to` None for the mean
    over the queries that attend to this key.
    """

    site: str
    query: int | None
    key: int
    to: float | bool | None = 0.0
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        if self.query is not None:
            check_index("query", self.query, value.shape[-2], self.site)
        check_index("key", self.key, value.shape[-1], self.site)
        if (value.dtype == torch.bool) != isinstance(self.to, bool):
            raise EditError(f"A cell of {self.site} is {value.dtype}, not {self.to!r}.")
        changed, column = value.clone(), value[..., self.key]
        to: Tensor | float | None = self.to
        if to is None:
            to = column.sum(-1, keepdim=True) / (column > 0).sum(-1, keepdim=True).clamp(min=1)
        rows = slice(None) if self.query is None else slice(self.query, self.query + 1)
        changed[..., rows, self.key] = to
        return _in_head(self.head, changed, value, self.site)


@dataclass(frozen=True, eq=False)
class ReplaceAt:
    """Another vector (d) at one position (…, t, d): activation patching from another text.

    Source: Locating and Editing Factual Associations in GPT (Meng et al. 2022), section 2.
    """

    site: str
    position: int
    value: Tensor
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        check_index("position", self.position, value.shape[-2], self.site)
        if self.value.shape != value.shape[-1:]:
            ours, theirs = tuple(self.value.shape), tuple(value.shape[-1:])
            raise EditError(f"A vector of {self.site} has the shape {theirs}, not {ours}.")
        changed = value.clone()
        changed[..., self.position, :] = self.value.to(value)
        return _in_head(self.head, changed, value, self.site)


@dataclass(frozen=True, eq=False)
class Add:
    """The value plus a vector (d) times a factor, at every position (…, t, d).

    With `value` (b, 1, d) every row of a batch gets its own. Tokens that are generated with a
    cache get it like those of the prompt. Source: Steering Language Models With Activation
    Engineering (Turner et al. 2023), section 3; Steering Llama 2 via Contrastive Activation
    Addition (Panickssery et al. 2024), section 3.
    """

    site: str
    value: Tensor
    factor: float = 1.0

    def __call__(self, value: Tensor) -> Tensor:
        return value + self.factor * fit(self.value, value, self.site)


@dataclass(frozen=True, eq=False)
class Replace:
    """Another value in place of the site's, for example a mask, or one of another forward pass."""

    site: str
    value: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        return fit(self.value, value, self.site)


def _in_head(head: int | None, changed: Tensor, value: Tensor, site: str) -> Tensor:
    """`changed` in one head (b, h, …) and `value` in the others; `changed` when `head` is None."""
    if head is None:
        return changed
    if value.dim() != 4:
        raise EditError(f"{site} is not divided into heads.")
    check_index("head", head, value.shape[1], site)
    heads = torch.arange(value.shape[1], device=value.device) == head
    return torch.where(heads[:, None, None], changed, value)


def fit(source: Tensor, value: Tensor, site: str) -> Tensor:
    """`source` with the type, shape and device of the site's value."""
    try:
        return source.to(value).expand_as(value)
    except RuntimeError as error:
        ours, theirs = tuple(source.shape), tuple(value.shape)
        raise EditError(f"{site} has the shape {theirs}, not {ours}.") from error


def check_index(what: str, index: int, size: int, site: str) -> None:
    """AbsentIndexError unless the site has it."""
    if not 0 <= index < size:
        raise AbsentIndexError(f"{site} has no {what} {index}: there are {size}.")
