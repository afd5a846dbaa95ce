"""The miniature: a small picture of the pass at the top of the sidebar.

It draws the strongest edges to the answer, as the large picture does at first. The part that the
page shows is lit; a click on a part goes to its page.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.information_flow import InformationFlow, Route
from explorer.components import events, wire
from explorer.components.mounting import View, neighbour

MINIATURE_HTML = """
<div class="view miniature">
  <div class="stage"><canvas></canvas></div>
  <div class="parts"></div>
</div>
"""
LEAST_IMPORTANCE = 0.01
"""The importance of the weakest edge that is drawn."""

_VIEW = View("miniature", MINIATURE_HTML)


def miniature(
    flow: InformationFlow,
    traced: Route,
    *,
    key: str,
    title: str,
    parts: Sequence[tuple[str, str]],
    lit: Sequence[str],
    layer: tuple[str, int],
    height: int,
    on_go: Callable[[str, int | None], None],
    kept: Callable[[Callable[[], bytes]], bytes] = operator.call,
) -> None:
    """Draw it with a button for each of `parts`, a name and a title from below to above.

    `lit` are the names of those that the page shows, `layer` a stack and a layer of it. `on_go`
    is told the name of a part, or "layer" and which. `kept` makes the message, or has it.
    """
    names = [name for name, _ in parts]

    def go() -> None:
        target = events.event(key, "go")
        if not isinstance(target, list) or len(target) != 2:
            return
        name, at = target
        layers = max(len(blocks) for blocks in flow.stacks.values())
        if name in names:
            on_go(name, None)
        elif name == "layer" and (chosen := events.place(at, layers)) is not None:
            on_go("layer", chosen)

    _VIEW(
        key=key,
        data=kept(lambda: encode(flow, traced, key, title, parts)),
        height=height,
        choice=_lit(names, lit, layer),
        title=title,
        on_go_change=go,
    )


def mark(
    key: str, names: Sequence[str], lit: Sequence[str], layer: tuple[str, int], *, by: str
) -> None:
    """Let a miniature that is already drawn show another layer, from another part of the page."""
    neighbour(key, _lit(names, lit, layer), by)


def _lit(names: Sequence[str], lit: Sequence[str], layer: tuple[str, int]) -> list[str | int]:
    return [*layer, *[int(name in lit) for name in names]]


def encode(
    flow: InformationFlow, traced: Route, key: str, title: str, parts: Sequence[tuple[str, str]]
) -> bytes:
    """A byte for the importance of every stream and the share of every block, and the edges."""
    stacks: list[dict[str, Any]] = []
    planes: dict[str, bytes] = {}
    for name, blocks in flow.stacks.items():
        streams = traced.streams[name]
        planes[f"{name}.streams"] = _shares(streams)
        planes[f"{name}.mlp"] = _shares(traced.mlp[name])
        stacks.append({"name": name, "layers": len(blocks), "tokens": streams.shape[1]})
    names = list(flow.stacks)
    edges = []
    for part, importance in traced.edges.items():
        to = names.index(part.split(".")[0])
        is_cross = part.endswith("cross_attn")
        for layer, query, source in (importance >= LEAST_IMPORTANCE).nonzero().tolist():
            if is_cross or query != source:
                value = round(float(importance[layer, query, source]), 4)
                edges.append([to, 0 if is_cross else to, layer, query, source, value])
    header = {
        "name": key,
        "title": title,
        "stacks": stacks,
        "edges": sorted(edges, key=lambda edge: edge[-1]),
        "parts": [list(part) for part in parts],
    }
    return wire.pack(header, planes)


def _shares(values: Tensor) -> bytes:
    """Numbers from 0 to 1 as a byte each; none is 0."""
    codes = (values.nan_to_num(0).clamp(0, 1) * 255).round().to(torch.uint8)
    return codes.cpu().numpy().tobytes()
