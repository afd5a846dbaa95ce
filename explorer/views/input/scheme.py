"""One scheme of positions, or two side by side: table, similarities, waves, hands, and biases."""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.position_schemes import EXPLANATIONS, SCHEMES, learned_table, position_scheme
from explorer.app.context import PageContext, config_of
from explorer.app.controls import number, one_of
from explorer.app.messages import say
from explorer.catalog import ModelError, opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.inference.position_passes import TRAINED_POSITIONS
from explorer.text import TextError
from explorer.text.token_labels import texts
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.input.scheme_figures import CURVE_HEIGHT, SchemeColumn, draw_position_surface
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script

MOST_MODELS_NAMED = 3
NO_TABLE = "This model has no such trained positions to show."
CANNOT = "These positions are trained parameters, and this model has none."
DO_NOT_WORK = "The weights of this model do not work with this scheme: choose another one."


def draw_missing_positions(context: PageContext, scheme: str, why: str) -> None:
    """Say why the positions are missing; offer models that have them, or say how to get one."""
    if scheme not in TRAINED_POSITIONS:
        say(DO_NOT_WORK)
        return
    names = [
        entry.name for entry in context.models.values() if config_of(entry).positions == scheme
    ][:MOST_MODELS_NAMED]
    if not names:
        say(
            f"{why} No other model here has them either: train one with them (Model, Positions), "
            "open a published one, or choose another scheme."
        )
        widgets.page_links("training", "checkpoints")
        return
    say(f"{why} Open a model that was trained with them, or choose another scheme.")
    widgets.offer_models(names)


MOST_POSITIONS, ODD = 48, 7
UNPAIRED = (
    f"{ODD} dimensions are {ODD // 2} pairs and a last sine without its cosine. The code of the "
    f"lecture handout fails here: it assigns {ODD // 2 + 1} cosines to {ODD // 2} columns. "
    "With the unpaired sine, the dot product of two positions no longer depends on their distance "
    "alone."
)
OWN_WIDTH, ODD_WIDTH = "This model's width", f"An odd width, {ODD}"
ALONE = "No other scheme"
WORDS = "Dimension: one of the numbers of a row. {}: how alike the rows of two positions are."
DOT, COSINE = "Dot product", "Cosine similarity"
WITH_TABLE = {"sinusoidal", "learned", "rotary"}


def choose_other(scheme: str, messages: DeltaGenerator) -> list[str]:
    """The second scheme, shown next to this one; empty if the reader wants none.

    A message about an invalid address stands in `messages`.
    """
    names = {SCHEMES[name]: name for name in SCHEMES if name != scheme}
    title = one_of("other_scheme", (ALONE, *names), as_list=True, message_in=messages)
    return [names[title]] if title in names else []


def draw_scheme(
    context: PageContext, scheme: str, *second: str, adjust: DeltaGenerator | None = None
) -> Script | None:
    """What every position gets, and how two positions compare; returns the code.

    The other controls go into the popover `adjust`, in which the second scheme is chosen.
    """
    names, head = [scheme, *second], context.choice.head
    own = context.opened, context.choice.part.split(".")[0]
    learned = _with_learned(context, *own) if "learned" in names else own
    if learned is None:
        st.caption(scheme_caption(context, scheme))
        draw_missing_positions(context, "learned", NO_TABLE)
        return None
    messages = st.container()
    with adjust or st.container(horizontal=True):
        by_cosine, is_odd = False, False
        if names == ["sinusoidal"]:  # with a second scheme it is the model's own width
            chosen = one_of("table_width", (OWN_WIDTH, ODD_WIDTH), message_in=messages)
            is_odd = chosen == ODD_WIDTH
        if WITH_TABLE & {*names}:
            usual = DOT if len(names) == 1 else COSINE
            chosen = one_of("similar_by", (DOT, COSINE), usual, message_in=messages)
            by_cosine = chosen == COSINE
    width = ODD if is_odd else learned[0].config.d_model
    rows = learned[0].config.max_len if "learned" in names else MOST_POSITIONS
    count = min(MOST_POSITIONS, rows)
    sources = [learned if name == "learned" else own for name in names]
    results = [
        position_scheme(name, opened.model, count, head, stack, width)
        for name, (opened, stack) in zip(names, sources, strict=True)
    ]
    if by_cosine:
        results = [result and result.by_cosine() for result in results]
    on_screen = tuple(result for result in results if result is not None)
    columns = [
        SchemeColumn(
            *(name, *source, result, on_screen, head, key, source[0] is not context.opened),
            _tokens_of(context, name, source[1])
            if source[0] is context.opened and not second
            else (),
        )
        for name, source, result, key in zip(names, sources, results, ("", "other_"), strict=False)
    ]
    is_alone = len(columns) == 1
    has_figures = any(column.has_figures for column in columns)
    if has_figures and is_alone:
        if columns[0].has_table:
            st.caption(WORDS.format((DOT, COSINE)[by_cosine]))
        _draw_alone(columns[0])
    elif has_figures:
        _draw_two(columns)
    places = [st.container()] if is_alone else widgets.side_by_side(1, 1)
    for place, column in zip(places, columns, strict=True):
        with place:
            _draw_words(context, column, width, alone=is_alone)
    if not has_figures:
        return None
    if is_odd:
        st.caption(UNPAIRED)
    no_more = ""
    if "learned" in names and rows <= count:
        no_more = (
            f": the learned table has {count} rows, so there is no vector for position {count} or "
            "any later one"
        )
    st.caption(f"The first {count} positions are shown{no_more}.")
    draw_position_surface([column for column in columns if column.has_figures])
    scripts = [
        script(scheme_code, column.opened, column.name, column.stack, count, head, width, by_cosine)
        for column in columns
        if column.has_figures
    ]
    return sum(scripts[1:], start=scripts[0])


def _tokens_of(context: PageContext, scheme: str, stack: str) -> Sequence[str]:
    """The tokens of the sentence, if the scheme is that of their positions."""
    config, at = context.opened.config, context.choice
    if scheme in TRAINED_POSITIONS and stack != config.stacks[0]:
        return ()
    try:
        return texts(context.opened.tokenizer.encode(at.text, at.pair or None))
    except TextError:
        return ()


def _with_learned(context: PageContext, own: OpenModel, stack: str) -> tuple[OpenModel, str] | None:
    """The chosen model if it has learned positions, else another that has, shipped ones first."""
    if learned_table(own.model, stack) is not None:
        return own, stack
    entries = [
        entry for entry in context.models.values() if config_of(entry).positions == "learned"
    ]
    for entry in sorted(entries, key=lambda entry: entry.origin != "shipped"):
        try:
            opened = opened_model.open_entry(entry)
        except ModelError:
            continue
        return opened, "encoder" if opened.config.kind == "encoder" else "decoder"
    return None


def borrowed_from(context: PageContext) -> str:
    """Whose learned table is drawn, if it is not the chosen model's."""
    learned = _with_learned(context, context.opened, context.choice.part.split(".")[0])
    if learned is None or learned[0] is context.opened:
        return ""
    return " " + literal_sentence(f"Shown for {learned[0].title}, not for {context.title}.")


def _draw_words(context: PageContext, column: SchemeColumn, width: int, *, alone: bool) -> None:
    """What is true of a scheme in this model, below its name if there are two."""
    if not alone:
        st.markdown(f"**{SCHEMES[column.name]}**")
    words = [scheme_caption(context, column.name, alone=alone)]
    if column.is_borrowed and column.key:
        words.append(
            f"The chosen model has no learned positions: this is the trained table of "
            f"{literal(column.opened.name)}."
        )
    if column.name == "sinusoidal" and not alone and width != context.opened.config.d_model:
        words.append(f"They are {width} wide, as is the learned table beside them.")
    if column.scheme and column.scheme.unit == "bucket":
        words.append(
            "This model has no trained biases for distances; the map shows the bucket of each "
            "distance, at this model's sizes."
        )
    st.caption(" ".join(words))
    if column.is_borrowed:
        widgets.offer_models([column.opened.name])
    if column.scheme is None:
        say(DO_NOT_WORK)


def scheme_caption(context: PageContext, scheme: str, *, alone: bool = True) -> str:
    """Whether it is the chosen model's own scheme, and how it works."""
    own = context.opened.config.positions
    whose = f"The chosen model uses another one: {SCHEMES[own]}. " if alone else ""
    if scheme == own:
        whose = "This is the chosen model's own scheme. "
    return f"{whose}{EXPLANATIONS[scheme]}"


def _draw_alone(column: SchemeColumn) -> None:
    left, right = widgets.side_by_side(1, 1)
    with left:
        if column.has_table:
            column.draw_table()
            column.draw_waves(_choose_pair([column]))
        else:
            column.draw_pairs()
    with right:
        if column.has_table:
            column.draw_pairs()
        column.draw_by_distance(CURVE_HEIGHT if column.has_table else WINDOW)
    if column.has_table:
        column.draw_hands(_choose_place([column]))


def _draw_two(columns: Sequence[SchemeColumn]) -> None:
    """Two schemes row by row, so that figures of the same kind are side by side."""
    with_table = [column for column in columns if column.has_table]
    with_figures = [column for column in columns if column.has_figures]

    def draw_row(draw: Callable[[SchemeColumn], None], drawn: Sequence[SchemeColumn]) -> None:
        for place, column in zip(widgets.side_by_side(1, 1), columns, strict=True):
            with place:
                if column in drawn:
                    draw(column)

    maps = [(SchemeColumn.draw_table, with_table), (SchemeColumn.draw_pairs, with_figures)]
    for draw, drawn in maps if len(with_table) == len(columns) else maps[::-1]:
        draw_row(draw, drawn)
    draw_row(SchemeColumn.draw_by_distance, with_figures)
    if with_table:
        pair = _choose_pair(with_table)
        draw_row(lambda column: column.draw_waves(pair), with_table)
        place = _choose_place(with_table)
        draw_row(lambda column: column.draw_hands(place), with_table)


def _choose_pair(columns: Sequence[SchemeColumn]) -> int:
    last = min(len(column.scheme.pairs) for column in columns if column.scheme) - 1
    return number("dimensions", last)


def _choose_place(columns: Sequence[SchemeColumn]) -> int:
    last = min(len(column.scheme.products) for column in columns if column.scheme) - 1
    with st.container(width=widgets.WIDEST):
        return number("place", last, min(3, last))


def scheme_code(
    opened: OpenModel, scheme: str, stack: str, count: int, head: int, width: int, by_cosine: bool
) -> None:
    positions = position_scheme(scheme, opened.model, count, head, stack, width)
    if positions and by_cosine:
        positions = positions.by_cosine()
    print(positions)
