"""One stage of a forward pass as plain data, and the description that every kind gives of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import Tensor

from explorer.analysis.forward_pass.equation import Equation
from models import TransformerConfig

Shapes = tuple[tuple[str, ...], ...]
TOKENS: Shapes = (("batch", "tokens"),)
STREAM: Shapes = (("batch", "tokens", "d_model"),)
HIDDEN: Shapes = (("batch", "tokens", "d_ff"),)
SQUARE: Shapes = (("batch", "heads", "queries", "keys"),)
HEADS: Shapes = (("batch", "heads", "tokens", "d_head"),)


@dataclass(frozen=True)
class Stage:
    """One value of the pass.

    `name` is its place in the model, `kind` its row in the table of kinds, `site` its name in
    the trace (empty where it is not recorded), `module` the path of the module that computes
    it. `reads` are the names of the stages that it is computed from; `shapes` are the shapes
    that it goes through in symbols, its own last; `branch` is its sub-layer of a block.
    `aliases` are all of its names in the trace.
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
    aliases: tuple[str, ...] = ()

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
        """Whether every head has its own value."""
        return "heads" in self.shapes[-1] or "kv heads" in self.shapes[-1]

    @property
    def per_text(self) -> bool:
        """Whether it has one row for the whole text, not one per token."""
        return not {"tokens", "source tokens", "queries"} & set(self.shapes[-1])


@dataclass(frozen=True, eq=False)
class StageCell:
    """One number of a stage, and the values that it is computed from.

    `value` gives the whole value of a stage by its name, and `places` are the positions of the
    rows of this one; `ids`, `segments` and `positions` are of the tokens of its stack, (t,),
    and `mask` is that of its attention, (q, k).
    """

    stage: Stage
    row: int
    column: int
    model: Any
    head: int
    value: Callable[[str], Tensor]
    places: Sequence[int]
    ids: Tensor
    segments: Tensor
    positions: Tensor
    mask: Tensor | None

    def whole(self, at: int = 0) -> Tensor:
        """A stage that this one reads."""
        return self.value(self.stage.reads[at]).detach().double()

    def read(self, at: int = 0) -> Tensor:
        """The same row of a stage that this one reads."""
        return self.whole(at)[self.row]

    def numbers(self) -> list[float]:
        """The same cell of every stage that this one reads."""
        return [float(self.read(at)[self.column]) for at in range(len(self.stage.reads))]

    @property
    def config(self) -> TransformerConfig:
        config: TransformerConfig = self.model.config
        return config

    @property
    def module(self) -> Any:
        return attrgetter(self.stage.module)(self.model)

    @property
    def activation(self) -> Any:
        """The activation function of the feed-forward layer that the stage belongs to."""
        stage = self.stage
        return getattr(self.model, stage.stack).blocks[stage.layer].mlp.activation

    @property
    def unembedding(self) -> Tensor:
        """The matrix (v, d) of the output head of a language model."""
        weight: Tensor | None = self.model.head.weight
        return self.model.last_stack.embedding.weight if weight is None else weight


class Kind:
    """One kind of stage: its title, its formula, and the equation of one of its numbers.

    `taps` are the names under which the model first passes such a value to a tap.
    """

    title = ""
    text = ""
    latex = ""
    plain = ""
    shapes = STREAM

    def __init__(self, *taps: str) -> None:
        self.taps = taps

    def title_of(self, name: str, config: TransformerConfig) -> str:
        """The title of the stage of this name."""
        return self.title or name.split(".")[-1].replace("_", " ").capitalize()

    def shapes_of(self, name: str, config: TransformerConfig) -> Shapes:
        """The shapes that it goes through in symbols, its own last."""
        return self.shapes

    def sentence(self, config: TransformerConfig) -> str:
        return self.text

    def formula(self, stage: Stage, config: TransformerConfig) -> str:
        """How it follows from the stages that it reads, in LaTeX with this model's symbols."""
        return self.latex

    def short(self, stage: Stage, config: TransformerConfig) -> str:
        """The same on one short line without LaTeX, for the kinds that a block has."""
        return self.plain

    def equation(self, cell: StageCell) -> Equation | None:
        """How one number follows from those that it is computed from; None without an equation."""
        return None


SYMBOLS = {
    "norm": "y",
    "final": "y",
    "concat": "H",
    "hidden": "h",
    "pooled": "c",
    "transform": "c",
    "out_norm": "z",
}


def symbol_of(name: str, config: TransformerConfig) -> str:
    """The symbol of a stage in its own formula and in those of the stages that read it."""
    if name == "encoder.final" and config.kind == "encoder-decoder":
        return "m"
    return SYMBOLS.get(name.split(".")[-1], "x")


def symbol_read(stage: Stage, config: TransformerConfig) -> str:
    """The symbol of a stage's input; cross-attention reads its keys from the memory m."""
    if stage.branch == "cross_attn" and not stage.reads[0].startswith(f"{stage.stack}."):
        return "m"
    return symbol_of(stage.reads[0], config)
