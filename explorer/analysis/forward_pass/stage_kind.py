"""A stage of a forward pass, and what every kind of stage has: a row of one table."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from explorer.analysis.forward_pass.equation import Equation
from models import TransformerConfig

if TYPE_CHECKING:
    from explorer.analysis.forward_pass.pass_values import PassValues

Some = slice | list[int]
ALL = slice(None)
Shapes = tuple[tuple[str, ...], ...]
TOKENS: Shapes = (("batch", "tokens"),)
STREAM: Shapes = (("batch", "tokens", "d_model"),)
HIDDEN: Shapes = (("batch", "tokens", "d_ff"),)
SQUARE: Shapes = (("batch", "heads", "queries", "keys"),)
HEADS: Shapes = (("batch", "heads", "tokens", "d_head"),)


@dataclass(frozen=True)
class Stage:
    """One value of the pass.

    `name` is its place in the model, `kind` its row in the table of kinds, `site` what the
    trace calls it (empty where it is not recorded), `module` the path of the module that
    computes it. `reads` are the names of the stages it is computed from; `shapes` the shapes
    it goes through in symbols, its own last; `branch` the sub-layer of a block it belongs to.
    """

    name: str
    title: str
    kind: str
    stack: str
    section: str
    reads: tuple[str, ...]
    shapes: Shapes
    site: str = ""
    module: str = ""
    layer: int | None = None
    branch: str = ""

    @property
    def part(self) -> str:
        """The kind of attention it belongs to, such as `decoder.self_attn`, or nothing."""
        return f"{self.stack}.{self.branch}" if self.branch.endswith("attn") else ""

    @property
    def is_stream(self) -> bool:
        """Whether it is the residual stream itself, not a branch of it."""
        return self.kind in ("embedding", "sum", "add", "stream norm", "final norm")

    @property
    def is_square(self) -> bool:
        """Whether its rows are queries and its columns keys."""
        return self.shapes[-1][-1] == "keys"

    @property
    def per_head(self) -> bool:
        """Whether every head has one of its own."""
        return "heads" in self.shapes[-1] or "kv heads" in self.shapes[-1]

    @property
    def per_text(self) -> bool:
        """Whether it has one row for the whole text, not one per token."""
        return not {"tokens", "source tokens", "queries"} & set(self.shapes[-1])


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a stage is computed from: these rows of the stages it reads, in one precision.

    Without a `dtype` they are as the pass had them. Of logits only some `columns` may be asked.
    """

    values: PassValues
    stage: Stage
    rows: slice = field(default_factory=lambda: ALL)
    columns: Some = field(default_factory=lambda: ALL)
    dtype: torch.dtype | None = None

    def read(self, at: int = 0) -> Tensor:
        """The rows of a stage that this one reads."""
        return self.cast(self.values[self.stage.reads[at]][self.rows])

    def whole(self, at: int = 0) -> Tensor:
        """All rows of a stage that this one reads."""
        return self.cast(self.values[self.stage.reads[at]])

    def cast(self, value: Tensor) -> Tensor:
        value = value.detach()
        return value if self.dtype is None else value.to(self.dtype)

    @property
    def module(self) -> Any:
        """The module that computes the stage."""
        return self.values.module(self.stage.module)

    @property
    def head(self) -> Any:
        """The head of the model."""
        return self.values.model.head

    @property
    def positions(self) -> Tensor:
        """(t,): the positions of all tokens of this stack."""
        return self.values.positions(self.stage.stack)

    @property
    def head_rows(self) -> slice:
        """The rows of a projection that belong to the head that is shown."""
        width = self.values.config.head_width
        head = self.values.head_of(len(self.module.weight) // width)
        return slice(head * width, (head + 1) * width)


@dataclass(frozen=True, eq=False)
class Cell(Inputs):
    """One number of a stage, by its row and column, with what it is computed from in float64."""

    dtype: torch.dtype | None = torch.float64
    row: int = 0
    column: int = 0

    def vector(self, at: int = 0) -> Tensor:
        """The same row of a stage that this one reads."""
        return self.cast(self.values[self.stage.reads[at]][self.row])

    def numbers(self) -> list[float]:
        """The same cell of every stage that this one reads."""
        return [float(self.vector(at)[self.column]) for at in range(len(self.stage.reads))]


@dataclass(frozen=True)
class Kind:
    """One row of the table of kinds.

    `formula` is LaTeX, in the symbols of this model; `compute` gives the stage's values by
    the model's own modules and functions; `equation` is one number of it, where it has one.
    `recorded` says whether the trace records it under the name of the stage.
    """

    title: str
    shapes: Shapes
    sentence: str | Callable[[TransformerConfig], str]
    formula: str | Callable[[Stage, TransformerConfig], str]
    compute: Callable[[Inputs], Tensor]
    equation: Callable[[Cell], Equation | None] = lambda cell: None
    recorded: bool = False


def run(module: nn.Module, x: Tensor, rows: Some = ALL) -> Tensor:
    """The module's output for x (…, d), in the precision of x; of a projection some `rows`."""
    made: Tensor = in_precision(module, x.dtype, rows)(x[None])[0]
    return made


def in_precision(
    module: Any, dtype: torch.dtype, rows: Some = ALL, without: tuple[str, ...] = ()
) -> Any:
    """A copy of a module with (some rows of) its weights in another precision.

    The module itself is left as it is, since other threads use it; it is returned where
    nothing differs. No weight is copied but in these rows, and no part named in `without`.
    """
    weights = {
        weight: weight.detach()[rows].to(dtype)
        for name, weight in module.named_parameters()
        if name.partition(".")[0] not in without
    }
    if rows == ALL and all(weight.dtype == dtype for weight in weights) and not without:
        return module
    parts: dict[int, Any] = {id(getattr(module, name)): nn.Identity() for name in without}
    parts |= {id(old): nn.Parameter(new, requires_grad=False) for old, new in weights.items()}
    return deepcopy(module, parts)
