"""Heads as mixtures of small programs: what describes each, and the loss when it is replaced."""

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.head_programs import (
    DESCRIBED,
    LONGEST,
    MOST_LINES,
    NO_LOSS,
    HeadPrograms,
    ProgramLines,
    example_lines,
    has_loss,
    measure_programs,
    n_described,
    programs_key,
    ranked,
    read_lines,
    replacement_cost,
    replacement_curve,
)
from explorer.app.context import PageContext
from explorer.app.controls import follow, text_field
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.program_charts import program_grid, replacement_curves
from explorer.components.chart import chart
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import is_cached
from explorer.inference.token_programs import PREDICATES, LineTokens, mixture_map
from explorer.interventions.address_text import has_room_for, to_address
from explorer.interventions.edits import ReplaceByProgram
from explorer.text import TextError
from explorer.text.number_format import signed, three
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import FULL, current_history, mixture_words
from explorer.views.shared.heads_grid import heads_grid
from explorer.views.shared.measurement import measurement
from explorer.views.shared.tables import table

GRID, MAPS, CURVE = 300, 330, 240
MEANING = (
    "A program gives each query weights over its keys from the tokens alone. A mixture of up to "
    "three is fitted by non-negative least squares, and its overlap Σ min / Σ max with the head's "
    "weights is measured on other lines, with its standard deviation over them."
)


def draw_programs(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The mixture of every head, that of the chosen one, and the curve; returns the code."""
    opened, at = context.opened, context.choice
    usual = "\n".join(example_lines(opened))
    follow("program_lines", usual)
    with row, st.popover("Lines and your own program", icon=":material/tune:"):
        text = text_field("program_lines", usual, has_lines=True, height=220)
        own = text_field("head_program", placeholder="key is capital and before query").strip()
        st.caption(f"Up to {MOST_LINES} lines, {LONGEST} tokens each. A program: {PREDICATES}.")
    try:
        lines = read_lines(opened, [line for line in text.splitlines() if line.strip()])
    except (ForwardPassError, TextError) as error:
        say(str(error))
        return None
    if at.part != (part := lines.part).name:
        say(f"Programs describe {part.words.name} here: choose {part.title} under Attention.")
        return None
    heads = measured(opened, lines, own)
    if heads is None:
        return None
    _draw_heads(context, lines, heads)
    _draw_chosen(context, lines, heads[at.layer * part.heads + at.head])
    _draw_curve(opened, lines, heads)
    if own:
        using = [head for head in heads if own in dict(head.mixture)]
        st.text(f"Your program is in the mixtures of {len(using)} of {len(heads)} heads.")
    best = ranked(heads)
    table(
        {
            "head": [f"{head.layer}.{head.head}" for head in best],
            "mixture": [mixture_words(head.mixture) for head in best],
            "overlap": [head.overlap for head in best],
            "± over lines": [head.spread for head in best],
        },
        numbers={"overlap": "%.3f", "± over lines": "%.3f"},
    )
    return script(programs_code, opened, text, own, at.layer, at.head)


def measured(
    opened: OpenModel, lines: ProgramLines, own: str = ""
) -> tuple[HeadPrograms, ...] | None:
    """The programs of all heads, at once or after a click; None until they are measured."""
    passes = 0 if is_cached(opened, lines.key) else lines.n_tokens * opened.model.n_parameters
    return measurement(
        opened,
        "programs",
        programs_key(lines, own),
        lambda report: measure_programs(opened, lines, [own] if own else [], report),
        cost=3 * passes,
        doing="Describing all heads",
    )


def _draw_heads(context: PageContext, lines: ProgramLines, heads: tuple[HeadPrograms, ...]) -> None:
    at, part = context.choice, lines.part
    colours, overlaps = widgets.side_by_side(1, 1)
    rows = [
        (of.layer, of.head, of.mixture[0][0], mixture_words(of.mixture), of.overlap)
        for of in heads
        if of.mixture
    ]
    with colours:
        title = map_title(at.called, at.part, "Strongest program of every head")
        grid = program_grid(rows, "layer", "head")
        chart(grid, key="program_grid", title=title, height=GRID)
    with overlaps:
        heads_grid(
            context,
            torch.tensor([of.overlap for of in heads]).view(part.layers, part.heads),
            key="program_overlaps",
            title=map_title(at.called, at.part, "Overlap of every head with its programs"),
            unit="overlap",
            top=1.0,
            height=GRID,
        )
    cut = f" {lines.cut} lines are cut to {LONGEST} tokens." if lines.cut else ""
    st.caption(
        f"{MEANING} {lines.fitted} lines are fitted, {len(lines.rows) - lines.fitted} scored.{cut} "
        f"{n_described(heads)} of {len(heads)} heads overlap by {DESCRIBED} or more; paler colours "
        "overlap less."
    )


def _draw_chosen(context: PageContext, lines: ProgramLines, of: HeadPrograms) -> None:
    """The mixture of the chosen head in words, and both maps over the sentence."""
    opened, forward, at = context.opened, context.forward, context.choice
    where = f"Layer {of.layer}, head {of.head}{', ' * bool(of.name)}{of.name}"
    st.markdown(f"**{where}** · {of.in_words}{measured_cost(opened, lines, of)}")
    if not of.mixture:
        return
    mixture = tuple((program, round(share, 3)) for program, share in of.mixture)
    edit = ReplaceByProgram(at.part, at.layer, at.head, mixture)
    history = current_history()
    has_room = has_room_for(history, edit)
    st.button(
        "Replace the head by its programs",
        key="replace_map",
        on_click=_replace,
        args=(to_address(history.add(edit)),),
        disabled=not has_room,
    )
    if not has_room:
        st.text(FULL)
    line = LineTokens.of(forward.columns(at.part), forward.text, forward.pair)
    program = mixture_map(of.mixture, line, forward.mask(at.part, at.layer))
    own, other = widgets.side_by_side(1, 1)
    with own:
        title = widgets.head_title(context)
        widgets.draw_map(forward, *at.place, "head_beside_programs", title, MAPS)
    with other:
        title, allowed = f"{title} · its programs", forward.mask(at.part, at.layer)
        what = forward, at.part, program, "map_of_programs", title, MAPS
        widgets.draw_weights(*what, allowed=allowed)


def _replace(edits: str) -> None:
    """In a callback: open Interventions with these."""
    session().next_page, session().next_address = "interventions", {"edits": edits}


def measured_cost(opened: OpenModel, lines: ProgramLines, of: HeadPrograms) -> str:
    """What replacing the head costs, where that is quick or was measured."""
    if not has_loss(opened) or not of.mixture:
        return ""
    passes = 2 * lines.n_scored * opened.model.n_parameters
    cost = measurement(
        opened,
        "program_cost",
        ("program cost", *lines.key, of),
        lambda report: replacement_cost(opened, lines, of),
        cost=passes,
        doing="Replacing this head",
    )
    return "" if cost is None else f"; replacing it changes the loss by {signed(cost)} nats"


def _draw_curve(opened: OpenModel, lines: ProgramLines, heads: tuple[HeadPrograms, ...]) -> None:
    st.markdown("**Loss with heads replaced**")
    if not has_loss(opened):
        st.caption(NO_LOSS)
        return
    points = measurement(
        opened,
        "program_curve",
        ("program curve", *lines.key, heads),
        lambda report: replacement_curve(opened, lines, heads, report),
        cost=16 * lines.n_scored * opened.model.n_parameters,
        doing="Replacing more and more heads",
    )
    if points is None:
        return
    curves = replacement_curves([(at.heads, at.loss, at.loss_random) for at in points])
    chart(curves, key="program_curve_chart", title="Loss with heads replaced", height=CURVE)
    count = n_described(heads)
    described = next(at for at in points if at.heads == count)
    st.caption(
        f"Next-token loss on the scored lines, {three(points[0].loss)} nats with no head replaced. "
        f"With the {count} heads that overlap by {DESCRIBED} or more replaced, it changes by "
        f"{signed(described.loss - points[0].loss)}."
    )


def programs_code(opened: OpenModel, text: str, own: str, layer: int, head: int) -> None:
    lines = read_lines(opened, [line for line in text.splitlines() if line.strip()])
    heads = measure_programs(opened, lines, [own] if own else [])
    chosen = heads[layer * lines.part.heads + head]
    print(chosen.in_words, replacement_cost(opened, lines, chosen) if has_loss(opened) else "")
