"""One scheme of positions, or two side by side: table, similarities, waves, hands, and biases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.position_schemes import (
    EXPLANATIONS,
    SCHEMES,
    PositionScheme,
    learned_table,
    position_scheme,
)
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext, config_of
from explorer.app.controls import number, one_of
from explorer.app.messages import say
from explorer.catalog import ModelError, open_model
from explorer.catalog.open_model import OpenModel
from explorer.inference.position_passes import TRAINED_POSITIONS
from explorer.text.literal import literal
from explorer.views.input.scheme_figures import Side, draw_position_surface
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script

MOST_MODELS_NAMED = 3
NO_TABLE = "This model has no such trained positions to show."
CANNOT = "These positions are trained parameters, and this model has none."
DO_NOT_WORK = "The weights of this model do not work with this scheme: choose another one."


def draw_missing_positions(context: PageContext, scheme: str, why: str) -> None:
    """One sentence, with models here that have such positions, or how to get one."""
    if scheme not in TRAINED_POSITIONS:
        say(DO_NOT_WORK)
        return
    found = [
        entry.name for entry in context.models.values() if config_of(entry).positions == scheme
    ][:MOST_MODELS_NAMED]
    if not found:
        say(
            f"{why} No other model here has them either: train one with them (Model, Positions), "
            "open a published one, or choose another scheme."
        )
        widgets.page_links("training", "checkpoints")
        return
    say(f"{why} Open a model that was trained with them, or choose another scheme.")
    offer_models(found)


def offer_models(names: Sequence[str]) -> None:
    """A button for each, which chooses it."""
    with st.container(horizontal=True):
        for model in names:
            label = f"Open {literal(model)}"
            st.button(label, key=f"with_{model}", on_click=choose_model, args=(model,))


SHOWN, ODD = 48, 7
OWN_WIDTH, ODD_WIDTH = "This model's width", f"An odd width, {ODD}"
ALONE = "No other scheme"
LIST_WIDTH = 176
DOT, COSINE = "Dot product", "Cosine similarity"
WITH_TABLE = {"sinusoidal", "learned", "rotary"}
ALONE_HEIGHT = 350
"""Pixels of the curve beside the only matrix of a scheme without a table."""


@dataclass(frozen=True, eq=False)
class Source:
    """A model whose positions are shown, and in which of its stacks."""

    opened: OpenModel
    stack: str


@dataclass(frozen=True, eq=False)
class SchemeColumn:
    """One scheme on screen; `shown` is None where its model's weights do not work with it."""

    name: str
    source: Source
    shown: PositionScheme | None


def choose_other(scheme: str) -> list[str]:
    """The scheme to be shown beside this one, if any."""
    others = {SCHEMES[name]: name for name in SCHEMES if name != scheme}
    chosen = one_of("other_scheme", (ALONE, *others), as_list=True, width=LIST_WIDTH)
    other = others.get(chosen)
    return [] if other is None else [other]


def draw_scheme(
    context: PageContext, scheme: str, *other: str, row: DeltaGenerator | None = None
) -> Script | None:
    """What every position gets, and how two positions compare; gives the code.

    What can be chosen stands in the `row` of the other scheme.
    """
    names = [scheme, *other]
    own = Source(context.opened, context.choice.part.split(".")[0])
    learned = _with_learned(context, own) if "learned" in names else own
    if learned is None:
        _say_of(context, scheme)
        draw_missing_positions(context, "learned", NO_TABLE)
        return None
    with row or st.container(horizontal=True):
        chosen = _choose_width(names)
        by_cosine = _choose_similarity(names)
    width = _width(chosen, learned.opened.config.d_model)
    rows = learned.opened.config.max_len if "learned" in names else SHOWN
    columns = [
        _column(each, learned if each == "learned" else own, context, rows, width, by_cosine)
        for each in names
    ]
    for place, column in zip(_columns(columns), columns, strict=True):
        with place:
            _draw_words(context, column, width, alone=len(columns) == 1)
    sides = _sides(columns, own, context.choice.head)
    if not any(side.has_figures for side in sides):
        return None
    head, count = context.choice.head, min(SHOWN, rows)
    st.caption(_how_many(names, count, rows))
    if len(columns) == 1:
        _draw_alone(sides[0])
    else:
        _draw_beside(columns, sides)
    draw_position_surface([side for side in sides if side.has_figures])
    made = [
        script(scheme_code, c.source.opened, c.name, c.source.stack, count, head, width, by_cosine)
        for c in columns
        if c.shown is not None and c.name != "none"
    ]
    return sum(made[1:], start=made[0])


def _with_learned(context: PageContext, own: Source) -> Source | None:
    """The chosen model where it has learned positions, else one that has, a shipped one first."""
    if learned_table(own.opened.model, own.stack) is not None:
        return own
    entries = [each for each in context.models.values() if config_of(each).positions == "learned"]
    for entry in sorted(entries, key=lambda each: each.origin != "shipped"):
        try:
            opened = open_model.open_entry(entry)
        except ModelError:
            continue
        stack = "encoder" if opened.config.kind == "encoder" else "decoder"
        return Source(opened, stack)
    return None


def _choose_width(names: Sequence[str]) -> str:
    """Whether the model's own width, or an odd one; beside another scheme it is the own one."""
    if names != ["sinusoidal"]:
        return OWN_WIDTH
    return one_of("table_width", (OWN_WIDTH, ODD_WIDTH))


def _width(chosen: str, usual: int) -> int:
    """The usual width, of the model or the learned table, or an odd one: its last sine is alone."""
    width = usual if chosen == OWN_WIDTH else ODD
    if width % 2:
        half = width // 2
        st.caption(
            f"{width} dimensions are {half} pairs and a last sine without its cosine. The code "
            f"of the lecture handout fails here: it assigns {half + 1} cosines to {half} columns. "
            "With the unpaired sine, the dot product of two positions no longer depends on their "
            "distance alone."
        )
    return width


def _choose_similarity(names: Sequence[str]) -> bool:
    """Whether position vectors are compared by cosine: at first those of two schemes are."""
    if not WITH_TABLE & {*names}:
        return False
    default = DOT if len(names) == 1 else COSINE
    return one_of("similar_by", (DOT, COSINE), default) == COSINE


def _column(
    name: str, source: Source, context: PageContext, rows: int, width: int, by_cosine: bool
) -> SchemeColumn:
    head, count = context.choice.head, min(SHOWN, rows)
    shown = position_scheme(name, source.opened.model, count, head, source.stack, width)
    return SchemeColumn(name, source, shown.by_cosine() if shown and by_cosine else shown)


def _draw_words(context: PageContext, column: SchemeColumn, width: int, *, alone: bool) -> None:
    """The name of one of two schemes, and what is true of it here."""
    if not alone:
        st.markdown(f"**{SCHEMES[column.name]}**")
    more = []
    if column.source.opened is not context.opened:
        more.append(
            f"The chosen model has no learned positions: this is the trained table of "
            f"{literal(column.source.opened.name)}."
        )
    if column.name == "sinusoidal" and not alone and width != context.opened.config.d_model:
        more.append(f"They are {width} wide, as is the learned table beside them.")
    if column.shown and column.shown.unit == "bucket":
        more.append(
            "This model has no trained biases for distances; shown is the bucket of each distance, "
            "at this model's sizes."
        )
    _say_of(context, column.name, *more, alone=alone)
    if column.source.opened is not context.opened:
        offer_models([column.source.opened.name])
    if column.shown is None:
        say(DO_NOT_WORK)
    elif column.name == "none" and alone:
        st.caption("There is nothing to draw; choose “Permutation” to see what follows from it.")


def _say_of(context: PageContext, scheme: str, *more: str, alone: bool = True) -> None:
    st.caption(" ".join([scheme_caption(context, scheme, alone=alone), *more]))


def scheme_caption(context: PageContext, scheme: str, *, alone: bool = True) -> str:
    """Whether it is the chosen model's own scheme, and how it works."""
    own = context.opened.config.positions
    whose = f"The chosen model uses another one: {SCHEMES[own]}. " if alone else ""
    if scheme == own:
        whose = "This is the chosen model's own scheme. "
    return f"{whose}{EXPLANATIONS[scheme]}"


def _columns(columns: Sequence[SchemeColumn]) -> list[st.delta_generator.DeltaGenerator]:
    if len(columns) == 1:
        return [st.container()]
    return widgets.side_by_side(1, 1)


def _sides(columns: Sequence[SchemeColumn], own: Source, head: int) -> list[Side]:
    """Those that can be drawn."""
    together = tuple(column.shown for column in columns if column.shown is not None)
    sides = []
    for column, key in zip(columns, ("", "other_"), strict=False):
        if column.shown is not None:
            model = "" if column.source is own else column.source.opened.name
            sides.append(Side(column.shown, together, head, model, key))
    return sides


def _how_many(names: Sequence[str], count: int, rows: int) -> str:
    """How many positions are shown; a learned table ends, and nothing is made up beyond it."""
    if "learned" not in names or rows > count:
        return f"The first {count} positions are shown."
    return (
        f"The first {count} positions are shown: the learned table has {count} rows, so there is "
        f"no vector for position {count} or any later one."
    )


def _draw_alone(side: Side) -> None:
    left, right = widgets.side_by_side(1, 1)
    if side.shown.table is None:
        with left:
            side.draw_pairs()
        with right:
            side.draw_by_distance(ALONE_HEIGHT)
        return
    with left:
        side.draw_table()
        side.draw_waves(_choose_pair([side]))
    with right:
        side.draw_pairs()
        side.draw_by_distance()
    place = _choose_place([side])
    side.draw_hands(place)


def _draw_beside(columns: Sequence[SchemeColumn], sides: Sequence[Side]) -> None:
    """Row by row, so that figures of one kind stand beside each other."""

    def draw_row(draw: Callable[[Side], None]) -> None:
        for place, column in zip(widgets.side_by_side(1, 1), columns, strict=True):
            with place:
                for side in sides:
                    if side.shown is column.shown:
                        draw(side)

    has_table = [side for side in sides if side.shown.table is not None]
    draw_row(Side.draw_table)
    draw_row(Side.draw_pairs)
    draw_row(Side.draw_by_distance)
    if has_table:
        pair = _choose_pair(has_table)
        draw_row(lambda side: side.draw_waves(pair))
        place = _choose_place(has_table)
        draw_row(lambda side: side.draw_hands(place))


def _choose_pair(sides: Sequence[Side]) -> int:
    last = min(len(side.shown.pairs) for side in sides) - 1
    return number("dimensions", last)


def _choose_place(sides: Sequence[Side]) -> int:
    last = min(len(side.shown.products) for side in sides) - 1
    with st.container(width=widgets.WIDEST):
        return number("place", last, min(3, last))


def scheme_code(
    opened: OpenModel, scheme: str, stack: str, count: int, head: int, width: int, by_cosine: bool
) -> None:
    shown = position_scheme(scheme, opened.model, count, head, stack, width)
    shown = shown.by_cosine() if shown and by_cosine else shown
    print(shown)
