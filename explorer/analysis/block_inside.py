"""The inside of one block of a pass: its parts in the order they run, each as a small picture.

The parts are the stages of the Forward pass page (`stages_of`), without dot products and the
concatenation, which are the next part in another scale or shape. Every number is that of the
pass; in a large picture cells are pooled, and `pooled` says how.
Shapes: h heads, r rows, c columns of a picture.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from explorer.analysis.forward_pass.kinds import KINDS
from explorer.analysis.forward_pass.pass_values import PassValues, record_block
from explorer.analysis.forward_pass.stage import Stage, symbol_of
from explorer.analysis.forward_pass.stage_cut import row_stack
from explorer.analysis.forward_pass.stages import sizes, stages_of
from explorer.inference.forward_pass import ForwardPass

LEFT_OUT = ("products", "concat")
ENTERS = "Encoder output", "Residual stream"
"""The titles of a block's inputs from another stack, and from its own."""
TOGETHER = {"bias": "scores", "up": "gate"}
"""Kinds that are drawn in the column of another."""
MOST_ROWS, MOST_COLUMNS, MOST_HEAD_COLUMNS = 32, 64, 16
"""The most tokens, dimensions of a vector and dimensions of a head's vector in one picture."""
MOST_INSIDE_CELLS = 9_216
"""The most cells of one part over all heads: nine heads of 32 × 32."""


@dataclass(frozen=True, eq=False)
class BlockPart:
    """One part of a block: its stage, and its values as small pictures.

    `cells` (h, r, c) has one picture for each of its heads, or one where it has none; -inf is a
    masked score. A cell is the number of largest absolute value among `pooled` rows × columns.
    `shape` are symbols with their sizes, without the batch, and `reads` the names of the parts
    that it is computed from. Parts of one `column` run side by side; those `on_stream` are the
    residual stream itself.
    """

    stage: Stage
    title: str
    formula: str
    shape: tuple[tuple[str, int], ...]
    reads: tuple[str, ...]
    column: int
    on_stream: bool
    cells: Tensor
    pooled: tuple[int, int]

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def rows(self) -> str:
        """The stack whose tokens its rows are."""
        return row_stack(self.stage)

    @property
    def is_weights(self) -> bool:
        """Whether its numbers are weights from 0 to 1; all others may be negative."""
        return self.stage.kind == "weights"


@dataclass(frozen=True, eq=False)
class BlockInside:
    """The parts of one block in their order; those that read nothing are its inputs."""

    stack: str
    layer: int
    parts: tuple[BlockPart, ...]


def block_inside(forward: ForwardPass, stack: str, layer: int) -> BlockInside:
    """All parts of one block.

    Costs the block once more, and queries × keys × d_head for each head; memory holds the
    scores of one head at a time.
    """
    every = {stage.name: stage for stage in stages_of(forward.config)}
    own = [s for s in every.values() if (s.stack, s.layer) == (stack, layer)]
    own = [stage for stage in own if stage.kind not in LEFT_OUT]
    reads = {stage.name: _reads(stage, every) for stage in own}
    outside = [name for names in reads.values() for name in names if name not in reads]
    inputs = [every[name] for name in dict.fromkeys(outside)]
    before = [stage for stage in inputs if stage.stack == stack]
    memory = [stage for stage in inputs if stage.stack != stack]
    at = next((at for at, stage in enumerate(own) if stage.branch == "cross_attn"), 0)
    stages = [*before, *own[:at], *memory, *own[at:]]  # the memory where it is first read
    columns = _columns(stages)
    cells = _cells(forward, stack, layer, stages)
    parts = [
        BlockPart(
            stage=stage,
            title=stage.title if stage.name in reads else ENTERS[stage.stack == stack],
            formula=KINDS[stage.kind].short(stage, forward.config)
            if stage.name in reads
            else symbol_of(stage.name, forward.config),
            shape=_shape(forward, stage),
            reads=reads.get(stage.name, ()),
            column=columns[stage.name],
            on_stream=stage.is_stream and stage.stack == stack,
            cells=cells[stage.name][0],
            pooled=cells[stage.name][1],
        )
        for stage in stages
    ]
    return BlockInside(stack, layer, tuple(parts))


def _reads(stage: Stage, every: Mapping[str, Stage]) -> tuple[str, ...]:
    """The parts that a stage is computed from, directly or through those that are left out."""
    names: list[str] = []
    for name in stage.reads:
        source = every[name]
        if source.kind in LEFT_OUT:
            names += _reads(source, every)
        elif source.kind != "tokens":
            names.append(name)
    return tuple(dict.fromkeys(names))


def _columns(stages: list[Stage]) -> dict[str, int]:
    """The column of every part: parts of one kind in a sub-layer share one."""
    by_group: dict[object, int] = {}
    columns = {}
    for at, stage in enumerate(stages):
        own: object = stage.branch, TOGETHER.get(stage.kind, stage.kind)
        if stage.is_stream or stage.kind in ("norm", "output norm"):
            own = stage.name
        before = stages[at - 1] if at else stage
        if stage.kind == "norm" and before.stack != stage.stack:
            own = before.name  # next to the memory
        columns[stage.name] = by_group.setdefault(own, len(by_group))
    return columns


def _shape(forward: ForwardPass, stage: Stage) -> tuple[tuple[str, int], ...]:
    """The shape of a stage in symbols with their sizes, without the batch."""
    tokens, source = len(forward.rows(f"{stage.stack}.self_attn")), len(forward.source)
    keys = source if stage.branch == "cross_attn" else tokens
    config = forward.config.of_encoder if stage.stack == "encoder" else forward.config
    lengths = sizes(config, 1, tokens, source, keys)
    return tuple((name, lengths[name]) for name in stage.shapes[-1] if name != "batch")


def _cells(
    forward: ForwardPass, stack: str, layer: int, stages: list[Stage]
) -> dict[str, tuple[Tensor, tuple[int, int]]]:
    """Every picture and the pooling of its cells, head by head, so that memory holds few scores."""
    passed = record_block(forward, stack, layer)
    config = forward.config
    shared = {stages[0].name: forward.trace[f"{stack}.{layer}.resid_pre"][forward.row]}
    shared |= {s.name: forward.trace["memory"][forward.row] for s in stages if s.stack != stack}
    pictures_of: dict[str, list[Tensor]] = {stage.name: [] for stage in stages}
    pooled: dict[str, tuple[int, int]] = {}
    for head in range(config.n_heads):
        values = PassValues(forward, head, 0, lambda sites: passed)
        values.by_name.update(shared)
        for stage in stages:
            pictures = pictures_of[stage.name]
            count = 1
            if stage.per_head:
                count = config.kv_heads if "kv heads" in stage.shapes[-1] else config.n_heads
            if pictures and values.head_of(count) < len(pictures):
                continue  # this head shares keys and values that are there already
            whole = values[stage.name].detach().float()
            if not stage.per_head:
                shared[stage.name] = values.by_name[stage.name]
            pooled[stage.name] = _pooling(stage, whole, count)
            pictures.append(largest(whole, *pooled[stage.name]))
    return {name: (torch.stack(pictures), pooled[name]) for name, pictures in pictures_of.items()}


def _pooling(stage: Stage, whole: Tensor, heads: int) -> tuple[int, int]:
    """The numbers of rows and columns that become one cell."""
    rows, columns = whole.shape
    if stage.is_square:
        n = _parts(max(rows, columns), MOST_ROWS)
        while heads * _parts(rows, n) * _parts(columns, n) > MOST_INSIDE_CELLS:
            n += 1
        return n, n
    most = MOST_HEAD_COLUMNS if stage.per_head else MOST_COLUMNS
    return _parts(rows, MOST_ROWS), _parts(columns, most)


def _parts(count: int, most: int) -> int:
    return max(1, -(-count // most))


def largest(values: Tensor, rows: int, columns: int) -> Tensor:
    """The number of largest absolute value in every block of rows × columns, with its sign.

    A mean would hide outliers. -inf, a masked score, only where all are; NaN where one is.
    """
    if rows == columns == 1:
        return values
    masked = values.isneginf()
    numbers = values.where(~masked, 0)
    above, below, any_visible = (
        max_pool2d(x[None], (rows, columns), ceil_mode=True)[0]
        for x in (numbers, -numbers, (~masked).to(values.dtype))
    )
    return above.where(above >= below, -below).masked_fill(any_visible == 0, -torch.inf)
