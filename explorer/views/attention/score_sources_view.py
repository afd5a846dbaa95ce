"""Why a head attends there: the sources of one score, which a reader follows back to a word."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.batched_passes import QUICK
from explorer.analysis.pair_directions import pair_directions
from explorer.analysis.score_sources import (
    KEY,
    POSITION_BIAS,
    QUERY,
    ScoreSources,
    Source,
    SourcesError,
    multiplications,
    score_sources,
    sources_in_words,
    strongest_sources,
)
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of, token_names
from explorer.app.messages import say
from explorer.app.persistent_choices import PersistentChoices
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.head_charts import source_bars
from explorer.components.chart import chart
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import AblateHead
from explorer.text import Token
from explorer.text.number_format import signed, three
from explorer.text.token_labels import label_at, named_at
from explorer.text.visible_text import cut, in_quotes, literal
from explorer.views.shared import pinned, widgets
from explorer.views.shared.edit_history import link_with_edit
from explorer.views.shared.measurement import measurement
from explorer.views.shared.pinned import PinnedCell
from explorer.views.shared.tables import table

SHOWN, IN_TABLE = 11, 14
"""Sources on each side; the rest are one row."""
FEED_FORWARD = "feed-forward"
FOLLOWED = 2
"""Heads of each side with a button, for readers without a mouse."""
MEAN, PLAIN = "mean of the others", "nothing: the score itself"
LONGEST_NAME, MOST_STEPS = 14, 12
QUICK_TOKENS = 160
"""The longest text whose sources a panel computes unasked."""
STEP = re.compile(r"(\d)\.(\d{1,4})\.(\d{1,4})q(\d{1,5})k(\d{1,5})")
TRAIL = PersistentChoices("trail", {"trail": ""})


@dataclass(frozen=True)
class HeadCell:
    """A cell of a head: one step of a trail."""

    part: str
    layer: int
    head: int
    query: int
    key: int


def sources_of(
    opened: OpenModel,
    forward: ForwardPass,
    cell: HeadCell,
    against: int | None = None,
    *,
    plain: bool = False,
) -> ScoreSources | None:
    """The sources of a score of this pass, computed once; None where they wait for a click."""
    at = (cell.part, cell.layer, cell.head, cell.query, cell.key)
    return measurement(
        opened,
        "score sources",
        ("score sources", *forward.key, at, against, plain),
        lambda _: score_sources(forward, *at, against, plain=plain),
        cost=multiplications(forward, cell.part, cell.layer),
        doing="Computing the sources of the score",
    )


def draw_sources(
    context: PageContext,
    query: int,
    key: int,
    sentence: str,
    controls: DeltaGenerator,
    *,
    as_table: bool = False,
) -> None:
    """The sources of the score of this pair as two lists of bars, or as a table, and in words.

    `sentence` has the weight of the pair; one more control joins the `controls`.
    """
    at, forward = context.choice, context.forward
    here = HeadCell(at.part, at.layer, at.head, query, key)
    columns = forward.columns(at.part)
    visible = forward.mask(at.part, at.layer)[query]
    others = [place for place in visible.nonzero()[:, 0].tolist() if place != key]
    names = token_names(columns)
    options = [MEAN, PLAIN, *(names[place] for place in others)]
    with controls:
        picked = one_of("against", options, as_list=True, width=260)
    against = None if picked in (MEAN, PLAIN) else names.index(picked)
    figures, words = widgets.side_by_side(*(1, 1) if as_table else (8, 3))
    words = words.container(gap="xsmall", key="source_words")
    with words:
        _draw_trail(context, _trail(context, here))
        st.text(sentence)
        try:
            sources = sources_of(context.opened, forward, here, against, plain=picked == PLAIN)
        except SourcesError as error:
            say(str(error))
            return
        if sources is None:
            return
        other = "" if against is None else f"that of {in_quotes(label_at(columns, against))}"
        if sources.others:
            st.text(_match_in_words(context, sources, here))
        st.text(sources_in_words(sources, forward.columns, other))
    largest = [strongest_sources(side, SHOWN) for side in sources.sides]
    with figures:
        if as_table:
            _draw_table(context, sources, here)
        else:
            _draw_bars(context, sources, here, largest)
    with words:
        if as_table:
            _draw_directions(forward, here)
        for name, some in zip((QUERY, KEY), largest, strict=True):
            if heads := [one for one in some if one.part][:FOLLOWED]:
                st.caption(f"Follow the {name} to")
            for one in heads:
                st.button(
                    f"{_named(one)} {literal(_reads(context, one))}",
                    key=f"follow_{name}_{one.name}",
                    icon=":material/arrow_forward:",
                    type="tertiary",
                    on_click=_follow,
                    args=(context, here, name, one),
                )
        if not any(one.part for side in sources.sides for one in side):
            st.caption("No head writes before this one, so the trail ends here.")
        link_with_edit(f"Answer without head {at.layer}.{at.head}", AblateHead(*at.place))
    st.caption(_about(sources))


def _match_in_words(context: PageContext, sources: ScoreSources, here: HeadCell) -> str:
    """Which source of each side does most for the match, or against it."""
    sign, how = (-1, "worse") if sources.contrast < 0 else (1, "better")
    sides = (max(side, key=lambda one: sign * one.value) for side in sources.sides)
    query, key = (f"{'the ' * one.name.isalpha()}{_named(one)}" for one in sides)
    row, column = (in_quotes(label_at(*_place(context, here, side))) for side in (QUERY, KEY))
    because = f"most of all because of {query} (query) and {key} (key)"
    return f"{row} and {column} match {how} than average, {because}."


def _draw_bars(
    context: PageContext,
    sources: ScoreSources,
    here: HeadCell,
    largest: Sequence[Sequence[Source]],
) -> None:
    bars = [
        _bars(context, here, side, some, sources.position_bias)
        for side, some in zip(sources.sides, largest, strict=True)
    ]
    values = [value for side in bars for _, _, value in side]
    columns = st.columns(2)
    for column, name, drawn, some in zip(columns, (QUERY, KEY), bars, largest, strict=True):
        with column:
            where = in_quotes(label_at(*_place(context, here, name)))
            title = f"Sources of the {name} {where} · click a head"
            chart(
                source_bars(drawn, (min(values), max(values)), title),
                key=f"sources_of_{name}",
                title=f"Sources of the {name}",
                height=WINDOW,
                on_pick=partial(_follow_row, context, here, name, some),
                chosen=_written(context, here),
            )


def _bars(
    context: PageContext,
    here: HeadCell,
    side: Sequence[Source],
    largest: Sequence[Source],
    position_bias: float | None,
) -> list[tuple[str, str, float]]:
    """The largest sources, then the sum of the others and the position bias."""
    bars = [(_named(one), _reads(context, one), one.value) for one in largest]
    if more := len(side) - len(largest):
        rest = sum(one.value for one in side) - sum(one.value for one in largest)
        bars.append((f"{more:,} more", "", rest))
    if position_bias is not None:
        bars.append((POSITION_BIAS, "", position_bias))
    return bars


def _named(source: Source) -> str:
    """Its name; that of a head alone would look like a number."""
    return f"head {source.name}" if source.part else source.name.replace("mlp", FEED_FORWARD)


def _reads(context: PageContext, source: Source) -> str:
    """The token that a head read most, with its position; nothing of another source."""
    if not source.part:
        return ""
    tokens = context.forward.columns(source.part)
    return f"from {in_quotes(cut(label_at(tokens, source.read), LONGEST_NAME))} ({source.read})"


def _place(context: PageContext, here: HeadCell, side: str) -> tuple[Sequence[Token], int]:
    forward = context.forward
    if side == QUERY:
        return forward.rows(here.part), here.query
    return forward.columns(here.part), here.key


def _follow_row(
    context: PageContext,
    here: HeadCell,
    side: str,
    largest: Sequence[Source],
    row: Mapping[str, Any],
) -> None:
    """For the callback of a chart: a row that is no head does nothing."""
    place = row.get("place")
    if type(place) is int and 0 <= place < len(largest) and largest[place].part:
        _follow(context, here, side, largest[place])


def _follow(context: PageContext, here: HeadCell, side: str, source: Source) -> None:
    """For a callback: go to the head that wrote it, where it wrote, and the token that it read."""
    query = here.query if side == QUERY else here.key
    cell = HeadCell(source.part, source.layer, source.head, query, source.read)
    trail = [*_trail(context, here), cell][-MOST_STEPS:]
    _go_to(context, trail)


def _go_to(context: PageContext, trail: Sequence[HeadCell]) -> None:
    """For a callback: the last cell of this trail is the chosen one."""
    cell = trail[-1]
    choose_head(cell.layer, cell.head, cell.part)
    pinned.pin(PinnedCell(cell.query, cell.key))
    TRAIL.put("trail", "-".join(_written(context, one) for one in trail))


def _written(context: PageContext, cell: HeadCell) -> str:
    part = [part.name for part in context.forward.parts].index(cell.part)
    return f"{part}.{cell.layer}.{cell.head}q{cell.query}k{cell.key}"


def _trail(context: PageContext, here: HeadCell) -> list[HeadCell]:
    """The cells that the reader followed to this one; this one alone where they chose another."""
    text = str(TRAIL.texts().get("trail", ""))
    cells = [_cell(context, step) for step in text.split("-")[-MOST_STEPS:]] if text else []
    known = [cell for cell in cells if cell is not None]
    is_known = 1 < len(known) == len(cells)
    TRAIL.settle({"trail": text if is_known else ""})  # it stays for the way back
    return known if is_known and known[-1] == here else [here]


def _cell(context: PageContext, text: str) -> HeadCell | None:
    """The cell that a step of the address names, if this text has it."""
    forward, match = context.forward, STEP.fullmatch(text)
    if match is None or int(match[1]) >= len(forward.parts):
        return None
    part, (layer, head, query, key) = forward.parts[int(match[1])], map(int, match.groups()[1:])
    sizes = part.layers, part.heads, len(forward.rows(part.name)), len(forward.columns(part.name))
    fits = all(at < size for at, size in zip((layer, head, query, key), sizes, strict=True))
    return HeadCell(part.name, layer, head, query, key) if fits else None


def _draw_trail(context: PageContext, trail: Sequence[HeadCell]) -> None:
    """A button for every earlier cell of the trail, which goes back to it."""
    for at, cell in enumerate(trail[:-1]):
        row, column = (label_at(*_place(context, cell, side)) for side in (QUERY, KEY))
        row, column = (literal(cut(name, LONGEST_NAME)) for name in (row, column))
        st.button(
            f"Head {cell.layer}.{cell.head}: {row} attends to {column}",
            key=f"trail_{at}",
            type="tertiary",
            icon=":material/arrow_back:",
            on_click=_go_to,
            args=(context, trail[: at + 1]),
        )


def _draw_table(context: PageContext, sources: ScoreSources, here: HeadCell) -> None:
    """The largest sources of the query down and of the key across, the others as one each.

    A click follows the head of the row, or that of the column where the row is none.
    """
    scores, sides = sources.table, list[list[Source]]()
    names, short = list[list[str]](), list[list[str]]()
    for axis, side in enumerate(sources.sides):
        order = scores.abs().sum(1 - axis).argsort(descending=True).tolist()
        largest, rest = sorted(order[:IN_TABLE]), order[IN_TABLE:]
        some = scores.index_select(axis, torch.tensor(largest))
        if rest:
            others = scores.index_select(axis, torch.tensor(rest)).sum(axis, keepdim=True)
            some = torch.cat([some, others], axis)
        scores = some
        sides.append([side[at] for at in largest])
        more = [f"{len(rest):,} more"] * bool(rest)
        names.append([*(_named(side[at]) for at in largest), *more])
        short.append([*(side[at].name for at in largest), *more])

    def follow(*cell: int) -> None:
        for name, side, at in zip((QUERY, KEY), sides, cell, strict=True):
            if at < len(side) and side[at].part:
                return _follow(context, here, name, side[at])

    cells(
        scores,
        *names,
        short_names=(short[0], short[1]),
        key="source_table",
        title=f"{widgets.head_title(context)} · sources of the query × of the key",
        selected=None,
        on_pick=follow,
        row_name="source of the query",
        column_name="source of the key",
        sentence="{row} in the query with {column} in the key: {value}",
        unit="score",
        scale="diverging",
    )


def _draw_directions(forward: ForwardPass, here: HeadCell) -> None:
    """The score by direction: which tokens ask for it, and which offer it."""
    rows, columns = forward.rows(here.part), forward.columns(here.part)
    at = (here.part, here.layer, here.head, here.query, here.key)
    directions = pair_directions(forward, *at)
    st.markdown("**What the query asks for, and the key offers**")
    table(
        {
            "score": [signed(one.value) for one in directions],
            "asks most": [_in_a_row(rows, one.asks) for one in directions],
            "offers most": [_in_a_row(columns, one.offers) for one in directions],
        },
        right=("score",),
    )
    st.caption(
        "The strongest directions of W_Qᵀ W_K between these two positions, with their part of the "
        "score itself, and the tokens of the text that lie furthest along each."
    )


def _in_a_row(tokens: Sequence[Token], places: Sequence[int]) -> str:
    return ", ".join(named_at(tokens, at) for at in places)


def _about(sources: ScoreSources) -> str:
    """What the numbers are, and what they leave out."""
    text = "Every norm keeps the scale that it has in this pass, so that the sources add up."
    if sources.cap is not None:
        text += f" The score is the one before the cap of ± {three(sources.cap)}."
    widgets.check("The score, as the sum of its sources", sources.difference)
    return text


def why_in_words(opened: OpenModel, forward: ForwardPass, cell: HeadCell) -> str:
    """The weight of a cell and where its score comes from; empty where that is not quick."""
    if not (why := quick_sources_in_words(opened, forward, cell)):
        return ""
    query, key = cell.query, cell.key
    rows, columns = forward.rows(cell.part), forward.columns(cell.part)
    weight = three(float(forward.weights(cell.part, cell.layer, cell.head)[query, key]))
    names = {"row": named_at(rows, query), "column": named_at(columns, key)}
    return f"{forward.part(cell.part).words.cell.format(**names, value=weight)}. {why}"


def quick_sources_in_words(opened: OpenModel, forward: ForwardPass, cell: HeadCell) -> str:
    """Where the score of a cell comes from; empty where that is not quick."""
    tokens = len(forward.columns(cell.part))
    if tokens > QUICK_TOKENS or multiplications(forward, cell.part, cell.layer) > QUICK:
        return ""
    with suppress(SourcesError):
        if sources := sources_of(opened, forward, cell):
            return sources_in_words(sources, forward.columns)
    return ""


def sources_code(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> None:
    sources = score_sources(forward, part, layer, head, query, key)
    for side in sources.sides:
        print([(one.name, one.value) for one in strongest_sources(side, 8)])
    print(sources.sums, sources.contrast, sources.table)
