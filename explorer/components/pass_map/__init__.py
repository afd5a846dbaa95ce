"""The picture of the whole pass: tokens are columns, layers rows, what flows are lines.

A message holds every share of `InformationFlow`, so that pointing at an answer or at a token
follows the shares in the browser: no message, whatever is asked. What the logit lens reads comes
behind, some layers at a time, as neighbours of the picture (`lens_rows`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer.analysis.block_inside import BlockInside, BlockPart
from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.information_flow import InformationFlow
from explorer.charts.figure_data import WINDOW, Figure
from explorer.components import events, wire
from explorer.components.mounting import View, neighbour, no_figures
from explorer.text.token_labels import Label, specials, texts

MAP_HTML = """
<div class="view pass-map">
  <div class="controls">
    <button type="button" class="back" aria-label="One layer back">‹</button>
    <button type="button" class="play">Play</button>
    <button type="button" class="on" aria-label="One layer on">›</button>
    <select class="speed" aria-label="Speed"></select>
    <button type="button" class="write" hidden>Continue the text</button>
    <label class="least">Importance at least
      <input type="range" min="0" step="1"><output></output></label>
    <label class="words" title="Logit lens: the likeliest token after each layer"><input
      type="checkbox">Words inside</label>
    <label class="sink"><input type="checkbox" checked>Lines from the first token</label>
  </div>
  <div class="head"><div class="sentence idle"></div></div>
  <div class="both">
    <div class="stage">
      <canvas tabindex="0" role="application"></canvas>
      <div class="inside" hidden></div>
    </div>
    <div class="aside" tabindex="0">
      <div class="asked"></div><div class="options"></div>
      <div class="card"></div>
      <div class="hint">Point at a line, an answer or a token. Click a line for its head, a layer's
      number for its inside.</div>
      <div class="means"><strong>Importance</strong>, the width of a line: the part of the answer
      that came along it. <strong>Residual stream</strong>, blue: the vector of a token, to which
      every layer adds.</div>
      <div class="means sink"><strong>Lines from the first token</strong>: many heads read it when
      nothing else matches (an attention sink). Untick to hide these lines.</div>
    </div>
  </div>
  <div class="foot">
    <span class="key stream">residual stream</span>
    <span class="key attention">attention</span>
    <span class="key mlp">feed-forward</span>
    <span class="tap">Tap a word, a line or a layer's number.</span>
    <span class="notes"></span>
  </div>
  <div class="spoken" role="status" aria-live="polite"></div>
</div>
"""

MOST_MAP_EDGES = 250_000
"""Edges of a message, 7 bytes each: the largest shares, where there are more, which only the
longest texts have; the picture says how much of an answer the others carry."""
MOST_OPTIONS = 5
"""Of one answer."""
PAGE_LINKS = {
    "attention": "Attention map",
    "head_steps": "Head, step by step",
    "query_key": "Query and key",
    "interventions": "Interventions on this edge",
}
"""The pages that show a picked edge in full, and what leads there."""

MAP_WORDS = {
    "idle": "What each position is made of.",
    "forward": "Where {token} goes: the wider a line, the larger its part of that column.",
    "back": "What led to {token}: {value}",
    "answer": "The answer: {token}, {value}",
    "enter": "The tokens enter below, a column for each.",
    "at": "{query} (#query)",
    "after": "after {query} (#query)",
    "writing": "writing {writes} (#query, after {query})",
    "reads": " reads {key} (#key)",
    "crosses": ", the decoder reads {key} (#key)",
    "puts": ", this head puts {weight} of its attention (the weight) on {key} (#key).",
    "part": "the answer came along this line (its width)",
    "traced": "the new vector of {query} came along this line from {from} (its width)",
    "share": "the reader's vector right after this attention was written along this line (its "
    "share, not its width)",
    "ends": ["input", "so far", "answer"],
    "append": "Append it to the text",
    "write": "Continue the text",
    "stop": "Stop",
    "reading": "Reading the values of this layer",
    "inside": "Each box opens its page; a small picture chooses its head. Scroll sideways for the "
    "rest.",
    "offline": "The running app shows the inside of a layer.",
}

IN_A_BOX = {"norm": "rescaled", "q": "looks for", "k": "offers", "v": "passes on"}
IN_A_BOX |= {"scores": "how they fit", "masked": "some hidden", "weights": "how much"}
IN_A_BOX |= {"head out": "values mixed", "output projection": "heads joined"}
IN_A_BOX |= {"up": "widened", "down": "narrowed"}
"""Plain words for a part of a block, by the end of its stage's name or its kind."""

_VIEW = View("pass_map", MAP_HTML)


@dataclass(frozen=True)
class MapStack:
    """One stack as it is drawn, its parts in their order, and what each step behind it writes."""

    name: str
    title: str
    tokens: Sequence[Label]
    parts: Sequence[str]
    writes: Sequence[Label] = ()


@dataclass(frozen=True)
class MapAnswer:
    """The answer of the model at a position: the largest options with their scores."""

    label: str
    options: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class PassMap:
    """All that a map shows, besides the shares themselves.

    `answers` are those known at first, by their start of the flow; the others come behind
    (`other_answers`). `behind` says of which position an answer is ({token} is its token), and
    `of` names the pass, `score` the number of an option.
    """

    flow: InformationFlow
    stacks: Sequence[MapStack]
    answers: Mapping[int, MapAnswer]
    heads: int
    behind: str
    has_lens: bool
    of: str
    score: str = "probability"


def pass_map(
    message: bytes,
    *,
    key: str,
    title: str,
    choice: Sequence[float],
    on_chosen: Callable[[Any], None],
    on_go: Callable[[Any], None],
    height: int | str = WINDOW,
    appends: Sequence[bool] = (),
    on_append: Callable[[int], None] | None = None,
    figures: Callable[[], Sequence[Figure]] = no_figures,
) -> None:
    """Draw what `encode` made of it. `choice` is what the address holds.

    `on_chosen` receives what is pinned, `on_go` the link that was opened; both from a browser,
    which may send anything. `appends` says which of the last answer's options can be appended to
    the text, and `on_append` receives the one to append.
    """

    def append() -> None:
        option = events.place(events.event(key, "append"), len(appends))
        if option is not None and appends[option] and on_append:
            on_append(option)

    _VIEW(
        key=key,
        data=message,
        height=height,
        choice=list(choice),
        figures=figures,
        title=title,
        on_chosen_change=lambda: on_chosen(events.chosen(key)),
        on_go_change=lambda: on_go(events.event(key, "go")),
        on_append_change=append,
    )


def lens_rows(key: str, first: int, rows: Sequence[Sequence[tuple[str, float]]], of: str) -> None:
    """Hand the map what the lens reads behind some layers: a word and its probability a token.

    `of` names the pass that they belong to.
    """
    neighbour(
        f"{key}-late-{first}",
        [of, first, [[[word, wire.finite(p)] for word, p in row] for row in rows]],
    )


def _answer(answer: MapAnswer) -> list[Any]:
    return [answer.label, [[label, wire.finite(p)] for label, p in answer.options]]


def other_answers(key: str, answers: Sequence[MapAnswer], of: str) -> None:
    neighbour(f"{key}-late-answers", [of, -1, [_answer(answer) for answer in answers]])


def encode(
    picture: PassMap,
    key: str,
    title: str,
    traced: int,
    appends: Sequence[bool] = (),
    most: int = MOST_MAP_EDGES,
) -> bytes:
    """The shares in single precision, an edge for every key with a share, and all labels.

    `traced` is the answer that is traced first, `appends` says which of its options can be
    appended. Of more than `most` edges the smallest are left out.
    """
    flow, stacks = picture.flow, []
    planes: dict[str, bytes] = {}
    least, edges = _least_share(flow, most), 0
    for stack in picture.stacks:
        blocks = flow.stacks[stack.name]
        for part in stack.parts:
            shares = torch.stack([block.attentions[part].keys for block in blocks])
            heads = torch.stack([block.attentions[part].heads for block in blocks])
            residual = torch.stack([block.attentions[part].residual for block in blocks])
            planes |= _edges(part, shares, heads, least)
            edges += int((shares > 0).sum())
            if part.endswith("self_attn"):  # what stays at a token is no edge
                edges -= int((shares.diagonal(dim1=1, dim2=2) > 0).sum())
            planes[f"{part}.residual"] = wire.singles(wire.as_array(residual))
        if blocks and blocks[0].mlp is not None:
            mlp = torch.stack([block.mlp for block in blocks if block.mlp is not None])
            planes[f"{stack.name}.mlp"] = wire.singles(wire.as_array(mlp))
        stacks.append(
            {
                "name": stack.name,
                "title": stack.title,
                "tokens": texts(stack.tokens),
                "writes": texts(stack.writes),
                "muted": specials(stack.tokens),
                "layers": len(blocks),
                "parts": stack.parts,
                "parallel": bool(blocks) and blocks[0].parallel,
            }
        )
    starts = flow.starts
    identity = starts.shape[0] == starts.shape[1] and bool((starts == torch.eye(len(starts))).all())
    if not identity:
        planes["starts"] = wire.singles(wire.as_array(starts))
    header = {
        "name": key,
        "title": title,
        "tells": True,
        "words": MAP_WORDS,
        "stacks": stacks,
        "heads": picture.heads,
        "edges": edges,
        "least": least,
        "asked": traced,
        "answers": [[at, *_answer(answer)] for at, answer in picture.answers.items()],
        "hasAnswers": bool(picture.answers),
        "count": len(starts),
        "behind": picture.behind,
        "score": picture.score,
        "of": picture.of,
        "appends": list(appends),
        "hasLens": picture.has_lens,
        "hasSink": picture.stacks[-1].name == "decoder",
        "links": [[page, name] for page, name in PAGE_LINKS.items()],
    }
    return wire.pack(header, planes)


def _least_share(flow: InformationFlow, most: int) -> float:
    """The smallest share that is sent, 0 where all are."""
    positive = [
        shares.keys[shares.keys > 0]
        for blocks in flow.stacks.values()
        for block in blocks
        for shares in block.attentions.values()
    ]
    every = torch.cat(positive) if positive else torch.zeros(0)
    return float(every.topk(most).values[-1]) if len(every) > most else 0.0


def _edges(part: str, shares: Tensor, heads: Tensor, least: float) -> dict[str, bytes]:
    """The positive shares (layers, q, k), row by row: how many, their keys, sizes and heads."""
    is_sent = (shares > 0) & (shares >= least)
    kind = "<u1" if int(heads.max()) < 256 else "<u2"
    rows = is_sent.flatten(0, 1)
    keys = rows.nonzero()[:, 1]

    def whole(values: Tensor, dtype: str) -> bytes:
        return np.asarray(values.cpu().numpy()).astype(dtype).tobytes()

    return {
        f"{part}.counts": whole(rows.sum(1), "<u2"),
        f"{part}.keys": whole(keys, "<u2"),
        f"{part}.shares": wire.singles(wire.as_array(shares[is_sent])),
        f"{part}.heads": whole(heads[is_sent], kind),
    }


def block_panel(key: str, message: bytes, of: str, at: tuple[int, int], head: int) -> None:
    """Hand the map under this key the inside of its open block, and which head is chosen.

    `of` names the pass that they belong to, `at` are a stack of the map and a layer.
    """
    neighbour(f"{key}-inside", message)
    neighbour(f"{key}-inside-head", [of, *at, head])


def encode_block(
    inside: BlockInside,
    of: str,
    stacks: list[str],
    heads: int,
    link: Callable[[Stage], dict[str, Any]],
) -> bytes:
    """One message, a byte for every cell: see `wire.shades` and `wire.signed_shades`.

    `stacks` are those of the map, by whose places the message names them; `link` says of a stage
    the `page` that shows it in full, how that `opens`, and the `address` of what is chosen there.
    """
    parts, planes = [], dict[str, bytes]()
    for at, part in enumerate(inside.parts):
        ends, pictures = _picture(part)
        planes |= {f"{at}.{name}": plane for name, plane in pictures.items()}
        stage = part.stage
        is_cross = stage.branch == "cross_attn"
        parts.append(
            {
                **wire.fields(part, "name title formula shape reads column pooled"),
                "stream": part.on_stream,
                "weights": part.is_weights,
                "square": stage.is_square,
                "perHead": stage.per_head,
                "cells": list(part.cells.shape),
                "ends": ends,
                "rows": stacks.index(part.rows),
                "columns": stacks.index("encoder" if is_cross else stage.stack),
                "part": stage.part if stage.stack == inside.stack else "",
                "says": IN_A_BOX.get(stage.name.split(".")[-1]) or IN_A_BOX.get(stage.kind, ""),
                **link(stage),
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
