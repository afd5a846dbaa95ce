"""Cells that come out of a table or from a position: the equation says which row of which table.

Like `walk_numbers`, of which this is the part for embeddings, positions, distances, pooling
and heads side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from explorer.analysis.forward_pass.formulas import symbol_read
from explorer.analysis.forward_pass.latex import bare, under
from explorer.analysis.forward_pass.position_formulas import buckets, frequencies, slope
from explorer.analysis.forward_pass.stage_cell import Cell, Made
from explorer.analysis.residual_writes import head_outs
from models.positional import PositionalEncoding


def _embedded(cell: Cell) -> Made:
    config, token = cell.walk.config, int(cell.read())
    found = float(cell.module.weight[token, cell.column])
    place = rf"E_{{{token},\,{cell.column}}}"
    if not config.scale_embedding:
        return Made(under(bare(found, alone=True), place), found)
    scaled = rf"\sqrt{{{config.d_model}}} \cdot {under(bare(found), place)}"
    return Made(scaled, math.sqrt(config.d_model) * found)


def _positioned(cell: Cell) -> Made:
    place = int(cell.walk.places(cell.stage.stack)[cell.row])
    if not isinstance(cell.module, PositionalEncoding):
        row = place + cell.walk.config.position_offset
        found = float(cell.module.table.weight[row, cell.column])
        return Made(under(bare(found, alone=True), rf"P_{{{row},\,{cell.column}}}"), found)
    width = cell.walk.config.d_model
    if cell.walk.config.pairs == "halves":
        second, pair = divmod(cell.column, (width + 1) // 2)
    else:
        pair, second = divmod(cell.column, 2)
    name, wave = ("cos", math.cos) if second else ("sin", math.sin)
    latex = rf"\{name}\frac{{{place}}}{{10000^{{{2 * pair}/{width}}}}}"
    return Made(latex, wave(place / 10_000 ** (2 * pair / width)))


def _segment(cell: Cell) -> Made:
    row = int(cell.walk.segments(cell.stage.stack)[cell.row])
    found = float(cell.module.weight[row, cell.column])
    return Made(under(bare(found, alone=True), rf"S_{{{row},\,{cell.column}}}"), found)


def _turned(cell: Cell) -> Made:
    """A pair is turned by position × frequency; numbers beyond the pairs stay as they are."""
    config, x, column = cell.walk.config, cell.read(), cell.column
    width = config.rotary_width
    if column >= width:
        return Made(bare(float(x[column]), alone=True), float(x[column]))
    halves = config.pairs != "adjacent"
    pair = column % (width // 2) if halves else column // 2
    is_second = column >= width // 2 if halves else bool(column % 2)
    first, second = (pair, pair + width // 2) if halves else (2 * pair, 2 * pair + 1)
    place = cell.walk.places(cell.stage.stack)[cell.row]
    angle = place * frequencies(config)[pair]  # in float32, as the model has it
    stretch = 1.0 if config.rope_scaling is None else config.rope_scaling.attention_factor
    cosine, sine = float(angle.cos()), float(angle.sin())
    a, b, turn = float(x[first]), float(x[second]), bare(float(angle), alone=True)
    if is_second:
        latex, total = rf"{bare(a)} \sin {turn} + {bare(b)} \cos {turn}", a * sine + b * cosine
    else:
        latex, total = rf"{bare(a)} \cos {turn} - {bare(b)} \sin {turn}", a * cosine - b * sine
    if stretch != 1:
        latex = rf"{bare(stretch)} \left({latex}\right)"
    return Made(latex, stretch * total)


def _distance(cell: Cell) -> Made:
    """What ALiBi takes off by distance, or what the table holds for the distance's bucket."""
    places = cell.walk.places(cell.stage.stack)
    offset, head = places[cell.column] - places[cell.row], cell.walk.head
    config = cell.walk.config
    if config.positions == "alibi":
        falls, apart = slope(head, config.n_heads), abs(int(offset))
        return Made(rf"-{bare(falls)} \cdot {apart}", -falls * apart)
    bucket = int(buckets(offset, config, causal=cell.stage.stack == "decoder"))
    found = float(cell.module.table.weight[bucket, head])
    return Made(under(bare(found, alone=True), rf"B_{{{bucket},\,{head}}}"), found)


def _joined(cell: Cell) -> Made:
    """The head's own number; its output is made anew for this row."""
    head, at = divmod(cell.column, cell.walk.config.head_width)
    part = cell.stage.name.removesuffix(".concat")
    found = float(head_outs(cell.walk.forward, part, torch.tensor([cell.row]))[head, 0, at])
    return Made(under(bare(found, alone=True), rf"o^{{({head})}}_{{{at}}}"), found)


def _pooled(cell: Cell) -> Made:
    config, x = cell.walk.config, cell.whole()[:, cell.column].double()
    ids = cell.walk.ids(cell.stage.stack)
    places = [at for at in range(len(x)) if config.pad_id is None or int(ids[at]) != config.pad_id]
    if config.pooling == "mean":
        total, count = float(x[places].sum()), len(places)
        summed = under(bare(total, alone=True), rf"{count} \text{{ tokens, summed}}")
        return Made(rf"\frac{{{summed}}}{{{count}}}", total / count)
    place = places[0 if config.pooling == "first" else -1]
    found, symbol = float(x[place]), symbol_read(cell.stage, config)
    return Made(under(bare(found, alone=True), rf"{symbol}_{{{place}}}"), found)


LOOKED_UP: dict[str, Callable[[Cell], Made | None]] = {
    "embed": _embedded,
    "positions": _positioned,
    "segments": _segment,
    "turned": _turned,
    "bias": _distance,
    "concat": _joined,
    "pooled": _pooled,
}
