"""A stage of a forward pass, and what every kind of stage has."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from explorer.analysis.forward_pass.equation import Equation
from explorer.analysis.residual_writes import positions_of
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

    Without a `dtype` they are as the pass had them. `columns` limits logits, whose rows are as
    long as the vocabulary. For the equation of one number there is one row, and its `column`.
    """

    values: PassValues
    stage: Stage
    rows: slice = field(default_factory=lambda: ALL)
    columns: Some = field(default_factory=lambda: ALL)
    dtype: torch.dtype | None = None
    column: int = 0

    def read(self, at: int = 0) -> Tensor:
        """The rows of a stage that this one reads."""
        return self.cast(self.values[self.stage.reads[at]][self.rows])

    def whole(self, at: int = 0) -> Tensor:
        """All rows of a stage that this one reads."""
        return self.cast(self.values[self.stage.reads[at]])

    def cast(self, value: Tensor) -> Tensor:
        value = value.detach()
        return value if self.dtype is None else value.to(self.dtype)

    def numbers(self) -> list[float]:
        """The same cell of every stage that this one reads."""
        return [float(self.read(at)[0, self.column]) for at in range(len(self.stage.reads))]

    @property
    def row(self) -> int:
        return int(self.rows.start)

    @property
    def config(self) -> TransformerConfig:
        return self.values.config

    @property
    def module(self) -> Any:
        """The module that computes the stage."""
        return attrgetter(self.stage.module)(self.values.model)

    @property
    def branch(self) -> Any:
        """The attention or feed-forward layer that the stage belongs to."""
        stack = getattr(self.values.model, self.stage.stack)
        return getattr(stack.blocks[self.stage.layer], self.stage.branch)

    @property
    def head(self) -> Any:
        """The head of the model."""
        return self.values.model.head

    @property
    def positions(self) -> Tensor:
        """(t,): the positions of all tokens of this stack."""
        return positions_of(self.values.forward, self.stage.stack)


class Kind:
    """All about one kind of stage: its words, its formula, how it is computed, one number of it.

    `recorded` says whether the trace records it under the name of the stage.
    """

    title = ""
    text = ""
    latex = ""
    shapes = STREAM
    recorded = False

    def sentence(self, config: TransformerConfig) -> str:
        """What happens at this stage."""
        return self.text

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        """How it follows from the stages it reads, in LaTeX and the symbols of this model."""
        return self.latex

    def compute(self, inputs: Inputs) -> Tensor:
        """Its values, by the model's own modules and functions."""
        return run(inputs.module, inputs.read())

    def equation(self, inputs: Inputs) -> Equation | None:
        """One number of it, from the numbers it is computed from; None where there is none."""
        return None


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
