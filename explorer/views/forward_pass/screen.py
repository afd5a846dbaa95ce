"""The whole pass on the screen: the spine of its stages, and the values of the one chosen."""

from __future__ import annotations

import math

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.forward_pass.formulas import formula, sentence
from explorer.analysis.forward_pass.recompute import ALL, difference
from explorer.analysis.forward_pass.stage_line import Stage, sizes
from explorer.analysis.forward_pass.stage_values import Walk, recorded
from explorer.analysis.forward_pass.stage_view import (
    Cut,
    columns_are,
    cut,
    is_of_text,
    is_square,
    row_names,
    tokens_of,
    windows,
    writes,
)
from explorer.analysis.forward_pass.substitution import equation, in_numbers
from explorer.analysis.forward_pass.sum_terms import as_sum, in_latex
from explorer.analysis.query_key import strongest
from explorer.app.context import page_context
from explorer.app.controls import token_names
from explorer.catalog.opened_model import Opened
from explorer.components import matrix
from explorer.components.spine import Bone, spine
from explorer.inference.answers import option_name
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.forward_pass import tokenization
from explorer.views.shared import pass_position as choices
from explorer.views.shared import pinned_pair, widgets
from models.trace import Trace

HEIGHT, MATRIX_HEIGHT, SQUARE_HEIGHT = 720, 700, 500
BRANCHES = {"self_attn": "self-attention", "cross_attn": "cross-attention", "mlp": "feed-forward"}


def show(opened: Opened, forward: ForwardPass) -> None:
    """The spine on the left, the stage beside it; to be drawn in a fragment of its own.

    Where a step or a link leads to another layer, the whole page is drawn, so that the sidebar
    follows.
    """
    if st.session_state.pop(choices.LED, False):  # before this run writes an address of its own
        st.rerun()
    at = choices.chosen(forward)
    walk = walk_of(opened, forward, at)
    left, right = st.container(width=widgets.WIDEST).columns([4, 9], gap="medium")
    with left:
        spine(
            bones(walk, at),
            key="spine",
            at=at.place,
            on_move=lambda place: choices.move(at, place),
            height=HEIGHT,
            note=f"Bars: stream length of {streams(walk, at)}",
        )
    with right:
        _stage(opened, walk, at)


def walk_of(opened: Opened, forward: ForwardPass, at: choices.At) -> Walk:
    """The values of the pass; what is recorded besides the reading is kept, block by block."""
    chosen = page_context().choice

    def record(sites: tuple[str, ...]) -> Trace:
        key = ("walk", chosen.text, chosen.pair, sites)
        return kept(opened, key, lambda: recorded(forward, sites), _bytes)

    return Walk(forward, chosen.head, at.tokens[forward.config.stacks[-1]], record)


def _bytes(made: Trace) -> int:
    held: dict[int, Tensor] = {value.data_ptr(): value for value in made.values.values()}
    return sum(value.nbytes for value in held.values())


def bones(walk: Walk, at: choices.At) -> list[Bone]:
    """The sections of the pass, each with the length of the chosen token's stream behind it."""
    made: list[Bone] = []
    two = walk.config.kind == "encoder-decoder"
    grouped: dict[tuple[str, str], list[Stage]] = {}
    for stage in walk.stages.values():
        grouped.setdefault((stage.stack, stage.section), []).append(stage)
    for (stack, section), group in grouped.items():
        length = _length(walk, group, at.tokens[stack])
        made.append(
            Bone(
                title=f"{stack.capitalize()} {section.lower()}" if two else section,
                stages=tuple(stage.title for stage in group),
                branches=tuple(BRANCHES.get(stage.branch, "") for stage in group),
                on_line=tuple(stage.is_stream for stage in group),
                length=length,
                said="NaN" if math.isnan(length) else three(length) if length else "",
            )
        )
    return made


def streams(walk: Walk, at: choices.At) -> str:
    """Whose the lengths are: the chosen token of each stack."""
    chosen = [tokens_of(walk, stack)[place] for stack, place in at.tokens.items()]
    return ", ".join(f"“{text_of(token)}”" for token in chosen)


def _length(walk: Walk, group: list[Stage], token: int) -> float:
    """Of the stream behind a section, as the reading has it; nothing more is computed for it."""
    forward, stage = walk.forward, group[-1]
    name = f"{stage.stack}.{stage.layer}.resid_post"
    if stage.layer is None:
        name = f"{stage.stack}.0.resid_pre" if stage.section == "Input" else ""
    if name not in forward.trace:
        return 0.0
    return float(forward.trace[name][forward.row, token].norm())


def _stage(opened: Opened, walk: Walk, at: choices.At) -> None:
    stage = at.stage
    where = f"{stage.stack.capitalize()}, {stage.section.lower()}"
    branch = f", {BRANCHES[stage.branch]}" if stage.branch else ""
    st.markdown(f"**{stage.title}** · {where}{branch}")
    st.latex(formula(stage, walk.config))
    st.caption(f"{sentence(stage, walk.config)} {named(stage)} {shape_said(walk, stage)}")
    is_cut = columns_are(stage) == "number" and stage.kind != "tokens"
    names = [] if is_of_text(walk, stage) else token_names(row_names(walk, stage))
    if stage.kind == "tokens":
        choices.controls(at, names, [])
        tokenization.show(walk, stage, at.row)
        return
    choices.controls(at, names, windows(walk[stage.name].shape[1]) if is_cut else [])
    drawn = cut(walk, stage, at.row, at.window, lambda option: option_name(opened, option))
    _matrix(walk, stage, drawn, at)
    _cell_in_numbers(walk, stage, drawn, at)
    st.caption(" ".join(said(walk, stage, drawn, at)))
    if stage.part:
        pinned_pair.ways_on(at.tokens[stage.stack], key_of(walk, at))


def named(stage: Stage) -> str:
    """What the trace calls it, or what made it where the trace does not show it."""
    if stage.kind == "tokens":
        return "They are what the model is given, so the trace does not show them."
    if stage.site:
        return f"The trace calls it `{stage.site}`."
    if stage.module:
        return f"The trace does not show it; made by the model's own `{stage.module}`."
    return "The trace does not show it; made from `" + "` and `".join(stage.reads) + "`."


def shape_said(walk: Walk, stage: Stage) -> str:
    """The shapes that it goes through: symbols with their numbers."""
    forward = walk.forward
    tokens = len(forward.source if stage.stack == "encoder" else forward.target)
    source = len(forward.source)
    keys = source if stage.branch == "cross_attn" else tokens
    known = sizes(walk.config, 1, tokens, source, keys)
    chain = [" × ".join(f"{symbol} {known[symbol]:,}" for symbol in shape) for shape in stage.chain]
    return "Shape: " + " → ".join(chain) + "."


def _matrix(walk: Walk, stage: Stage, drawn: Cut, at: choices.At) -> None:
    square = is_square(stage)
    shares = stage.kind in ("weights", "probabilities")
    allowed = None
    if stage.kind in ("masked", "weights"):
        allowed = walk.mask(stage)[torch.tensor(drawn.rows)][:, torch.tensor(drawn.columns)]
    cell = held(walk, drawn, at)

    def hold(cell: tuple[int, int] | None) -> None:
        if cell is None:
            choices.hold(at, None, None)
        else:
            row = None if is_of_text(walk, stage) else drawn.rows[cell[0]]
            choices.hold(at, row, drawn.columns[cell[1]])

    what = columns_are(stage)
    matrix(
        drawn.values,
        drawn.row_labels,
        drawn.column_labels,
        key="walk_values",
        scale="sequential" if shares else "diverging",
        allowed=allowed,
        row_name=row_name(walk, stage),
        column_name=what,
        sentence="{row}, number {column}: {value}"
        if what == "number"
        else None
        if stage.kind == "weights"
        else "{row}, {column}: {value}",
        unit={"weights": "weight", "probabilities": "chance"}.get(stage.kind, "value"),
        height=height_of(len(drawn.rows), square),
        top=1.0 if shares else None,
        exact=True,
        places=(drawn.rows, drawn.columns),
        held=cell,
        on_hold=hold,
    )


def held(walk: Walk, drawn: Cut, at: choices.At) -> tuple[int, int] | None:
    """The cell of the chosen token and column; the first column where that is not drawn.

    Where no key was chosen, it is the one that the query looks at most, as on other pages.
    """
    is_one = len(drawn.rows) == 1
    if not (is_one or at.row in drawn.rows) or not drawn.columns:
        return None
    wish = key_of(walk, at) if columns_are(at.stage) == "key" else at.column
    column = drawn.columns.index(wish) if wish in drawn.columns else 0
    return 0 if is_one else drawn.rows.index(at.row), column


def row_name(walk: Walk, stage: Stage) -> str:
    if writes(walk, stage):
        return "reads" if columns_are(stage) == "number" else "reads / writes"
    return "query" if is_square(stage) else "token"


def key_of(walk: Walk, at: choices.At) -> int:
    stage = at.stage
    wish = at.columns.get(pinned_pair.key_of(stage.part))
    if wish is not None or stage.layer is None:
        return wish or 0
    return strongest(walk.forward, stage.part, stage.layer, walk.head, at.tokens[stage.stack])


def _cell_in_numbers(walk: Walk, stage: Stage, drawn: Cut, at: choices.At) -> None:
    """The number of the held cell by the formula, with what is read there."""
    cell = held(walk, drawn, at)
    if cell is None:
        return
    row, column = walk.rows(stage.name).index(drawn.rows[cell[0]]), drawn.columns[cell[1]]
    value = float(drawn.values[cell])
    if found := as_sum(walk, stage, row, column):
        st.latex(in_latex(found, stage, walk.config, value))
    elif made := in_numbers(walk, stage, row, column):
        st.latex(equation(made, value))


def height_of(rows: int, square: bool) -> int:
    """Room for so many rows whose numbers can be read; cells of a square are as wide as high."""
    if square:
        return min(SQUARE_HEIGHT, 54 * rows + 120)
    return min(MATRIX_HEIGHT, 40 * max(rows, 2) + 118)


def said(walk: Walk, stage: Stage, drawn: Cut, at: choices.At) -> list[str]:
    """What is cut, whose head it is, and how well the formula gives the same numbers."""
    lines = []
    if at.place == len(at.stages) - 1 and walk.config.head == "none":
        lines.append(f"The pass ends here. {widgets.ENDS_IN_VECTORS}")
    if stage.per_head:
        count = walk.config.n_heads if "heads" in stage.chain[-1] else walk.config.kv_heads
        head = walk.head_of(stage, count)
        of = "heads" if count == walk.config.n_heads else "heads of keys and values"
        lines.append(
            f"Head {head} of the {of} 0 to {count - 1}; for another, scroll the sidebar to “Head”."
        )
    if drawn.width > len(drawn.columns):
        what = {"key": "keys", "option": "options", "number": "numbers"}[columns_are(stage)]
        best = "the largest of the chosen token, then the largest of every other row"
        how = best if what == "options" else "no more are drawn at once"
        lines.append(f"{len(drawn.columns)} of {drawn.width:,} {what}: {how}.")
    if drawn.height > len(drawn.rows):
        lines.append(f"{len(drawn.rows)} of {drawn.height:,} tokens, the chosen one among them.")
    lines += beyond(stage, drawn, at)
    row = walk.rows(stage.name).index(at.row) if at.row in walk.rows(stage.name) else 0
    of_words = stage.kind == "logits"  # a whole vocabulary would be too much for each step
    found = difference(walk, stage, slice(row, row + 1), [*drawn.columns] if of_words else ALL)
    what = "what is drawn of this token's row" if of_words else "this token's row"
    lines.append(
        f"No value of {what} is finite, so the formula's values cannot be compared with it."
        if math.isnan(found)
        else f"Made again by the formula from the stages before, {what} differs by at most "
        f"{three(found)} of its largest number."
    )
    return lines


def beyond(stage: Stage, drawn: Cut, at: choices.At) -> list[str]:
    """That the held column, of the address or of a wider stage, is not here."""
    if at.column is None or at.column in drawn.columns:
        return []
    what = columns_are(stage)
    first = f"the first of those drawn is held; click another {what} to hold it."
    if at.column >= drawn.width:
        return [f"There is no {what} {at.column:,} here, the last is {drawn.width - 1:,}: {first}"]
    return [f"The held {what} {at.column:,} is not among those drawn: {first}"]
