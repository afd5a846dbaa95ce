"""What an opened block travels as: its parts with their links, and their pictures as bytes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from explorer.analysis.block_inside import BlockInside, BlockPart
from explorer.analysis.forward_pass.stage import Stage
from explorer.components import wire
from explorer.components.mounting import neighbour


@dataclass(frozen=True)
class PartLink:
    """The page that shows a part in full, its title, and what is chosen there besides the head."""

    page: str
    title: str
    address: Mapping[str, str]


def block_panel(key: str, message: bytes, of: str, at: tuple[int, int], head: int) -> None:
    """Hand the map under this key the inside of its open block, and which head is chosen.

    `of` names the pass that they belong to, `at` are a stack of the map and a layer.
    """
    neighbour(f"{key}-inside", message)
    neighbour(f"{key}-inside-head", [of, *at, head])


def encode_block(
    inside: BlockInside, of: str, stacks: list[str], heads: int, link: Callable[[Stage], PartLink]
) -> bytes:
    """One message, a byte for every cell: see `wire.shades` and `wire.signed_shades`.

    `stacks` are those of the map, by whose places the message names them; `link` says where a
    stage leads.
    """
    parts, planes = [], dict[str, bytes]()
    for at, part in enumerate(inside.parts):
        ends, made = _picture(part)
        planes |= {f"{at}.{name}": plane for name, plane in made.items()}
        leads, stage = link(part.stage), part.stage
        is_cross = stage.branch == "cross_attn"
        parts.append(
            {
                "name": part.name,
                "title": part.title,
                "formula": part.formula,
                "shape": [[name, size] for name, size in part.shape],
                "reads": list(part.reads),
                "column": part.column,
                "stream": part.on_stream,
                "weights": part.is_weights,
                "square": stage.is_square,
                "perHead": stage.per_head,
                "cells": list(part.cells.shape),
                "pooled": list(part.pooled),
                "ends": ends,
                "rows": stacks.index(part.rows),
                "columns": stacks.index("encoder" if is_cross else stage.stack),
                "part": stage.part if stage.stack == inside.stack else "",
                "page": leads.page,
                "opens": leads.title,
                "address": dict(leads.address),
            }
        )
    header = {
        "of": of,
        "stack": stacks.index(inside.stack),
        "layer": inside.layer,
        "part": f"{inside.stack}.self_attn",
        "heads": heads,
        "parts": parts,
    }
    return wire.pack(header, planes)


def _picture(part: BlockPart) -> tuple[list[Any], dict[str, bytes]]:
    """By head where the colours end and the largest number, rounded for words; the planes."""
    if part.is_weights:
        tops, planes = wire.shades(part.cells)
        return [[top, top] for top in tops], planes
    ends, plane = wire.signed_shades(part.cells)
    rounded = [[None if end is None else float(f"{end:.4g}") for end in pair] for pair in ends]
    return rounded, {"cells": plane}
