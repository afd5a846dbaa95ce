"""One exhibit on screen: a mistake, and the wrong and the right model side by side."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.default_head import default_head
from explorer.app.context import PageContext, config_of
from explorer.app.controls import one_of, switch
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.catalog.opened_model import OpenModel, open_entry
from explorer.charts.bars import block_bars
from explorer.charts.figure_data import WINDOW
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.results_cache import cached
from explorer.tasks import TASKS
from explorer.text.visible_text import in_quotes, literal
from explorer.views.museum import paired_training
from explorer.views.museum.exhibits import BY_LABEL, Exhibit
from explorer.views.museum.instruments import (
    INSTRUMENTS,
    InstrumentPicture,
    InstrumentResult,
    norm_placement,
)
from explorer.views.museum.measured_run import HeadPlace, right_run
from explorer.views.museum.mistakes import FILLS, MISTAKES
from explorer.views.shared import tables, widgets
from explorer.views.shared.code_panel import Script, script
from models import Transformer, TransformerConfig

MAP, FILLED, NORM_ORDER = "Attention map", "filled-row", "norm-order"
SIDES = ("wrong", "right")
FIRST_EXHIBIT = 4
"""The exhibit to begin with: what it does is seen at once."""


def draw_exhibit(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Draw the chosen exhibit: what the mistake does, both models, how to spot it; return the code.

    The controls stand in the `row`.
    """
    with row:
        labels, how = list(BY_LABEL), {"label_visibility": "collapsed"}
        label = one_of("exhibit", labels, labels[FIRST_EXHIBIT - 1], as_list=True, width=330, **how)
        exhibit = BY_LABEL[label]
        has_runs = exhibit.name in MISTAKES
        is_on = has_runs and switch("mistake")
    headline, figure = st.empty(), st.container()
    headline.markdown(f"**{exhibit.effect}**")
    lines = None
    if has_runs:
        with figure:
            lines = _draw_runs(context, exhibit, is_on, row, headline)
    elif exhibit.name == "printed-count":
        parts = parameter_counts(context.opened.model)
        counts = {name: count for name, count in parts.items() if count > 0}
        spec = block_bars([*counts], [*counts.values()], "parameters")
        title = "Parameters of the chosen model, part by part"
        with figure:
            chart(spec, height=WINDOW, key="museum_counts", title=title)
        _, printed, counted = exhibit.numbers[0]
        headline.markdown(f"**{exhibit.effect}** {counted} − {printed}.")
        draw_how_to_spot(exhibit, f"How to spot it: {printed} printed, {counted} counted.")
        lines = script(parameters_code, context.opened)
    elif exhibit.name == "random-labels":
        with figure:
            paired_training.draw_random_label_trainings()
        draw_how_to_spot(exhibit, f"How to spot it: {paired_training.random_label_accuracies()}")
        lines = script(paired_training.random_labels_code)
    wrong, right = widgets.side_by_side(1, 1)
    wrong.markdown(f"**In the {exhibit.where}.** {exhibit.error}")
    right.markdown(f"**Right.** {exhibit.right}")
    _draw_details(exhibit, context.opened)
    return lines


def _draw_runs(
    context: PageContext,
    exhibit: Exhibit,
    is_on: bool,
    row: DeltaGenerator,
    headline: DeltaGenerator,
) -> Script | None:
    """Draw the model with the mistake, if it is on, beside the right one; return the code."""
    mistake = exhibit.name
    if mistake == FILLED:  # the documents use different numbers
        with row:
            mistake = f"{FILLED} {one_of('fill', tuple(FILLS), label_visibility='collapsed')}"
    fitting = _fitting_model(context, mistake, has_numbers=bool(exhibit.numbers))
    if fitting is None:
        return None
    opened, forward = fitting
    head, names = head_place(context, opened), (exhibit.instrument, MAP)
    changes = changes_of(mistake, opened.config, is_on)
    results = [measure(opened, forward, change, names, head) for change in changes]
    titles = f"With{'' if is_on else 'out'} the mistake", "Right"
    if mistake == NORM_ORDER:
        wrong, right = (
            norm_placement(MISTAKES[change].make(opened.model) if change else opened.model)
            for change in changes
        )
        titles = f"{titles[0]}: {wrong}-norm", f"{titles[1]}: {right}-norm"
    measurements, maps = ([result[name] for result in results] for name in names)
    numbers = [result.short for result in measurements]
    if is_on and numbers[0] != numbers[1]:
        evidence = f"{exhibit.instrument}: {literal(numbers[0])}, right {literal(numbers[1])}."
        headline.markdown(f"**{exhibit.effect}** {evidence}")
    pair = measurements if any(result.picture for result in measurements) else maps
    for place, result, measured, side, title in zip(
        widgets.side_by_side(1, 1), pair, measurements, SIDES, titles, strict=True
    ):
        with place:
            if result.picture is not None:
                draw_picture(result.picture, f"museum_{side}", title.lower())
            if pair is measurements:
                draw_sentence(measured)
            if pair is maps:
                st.text(f"{result.sentence}.")
    for place, title, result in zip(widgets.side_by_side(1, 1), titles, measurements, strict=True):
        with place:
            if pair is maps:
                st.markdown(f"**{title}**")
                draw_sentence(result)
            draw_lines(result.lines)
    if pair is maps:
        wrong_map, right_map = (result.picture for result in maps)
        if is_on and wrong_map and right_map and wrong_map.is_like(right_map):
            st.text(
                f"{right_map.title}: the map is the same in both models, so it does not show the "
                "mistake."
            )
        elif not (wrong_map and right_map):
            for title, result in zip(titles, maps, strict=True):
                st.text(f"{title}: {result.sentence}.")
    draw_how_to_spot(exhibit, comparison(exhibit, measurements[0], measurements[1], is_on))
    return instrument_script(opened, forward, head, changes, exhibit.instrument)


def changes_of(mistake: str, config: TransformerConfig, is_on: bool) -> tuple[str, str]:
    """The change, if any, that makes the wrong and the right model of the one that is chosen.

    The repository's code is pre-norm and its README says post-norm, so of a pre-norm model it is
    the right one that is changed.
    """
    wrong, right = mistake, ""
    if mistake == NORM_ORDER and config.norm_position == "pre":
        wrong, right = right, wrong
    return (wrong if is_on else right), right


def comparison(
    exhibit: Exhibit, wrong: InstrumentResult, right: InstrumentResult, has_mistake: bool = True
) -> str:
    """The instrument's number for both models, or that it does not show the mistake here."""
    name = exhibit.instrument
    if not has_mistake:
        return f"Without the mistake: {name}, {right.short}."
    if wrong.short == right.short:
        return f"{name}, {right.short} in both: here it does not show the mistake."
    return f"How to spot it: {name}, {wrong.short} against {right.short}."


def draw_how_to_spot(exhibit: Exhibit, numbers: str) -> None:
    with st.container(border=True, key="how_to_spot"):
        st.markdown(f"**{numbers}** {exhibit.how_to_spot}")


def draw_result(result: InstrumentResult, right: InstrumentResult | None = None) -> None:
    """Draw a result's sentence and lines, compared with the `right` model's if given."""
    draw_sentence(result)
    lines = [*result.lines]
    if right is not None:
        st.text(f"As it should be: {right.sentence}")
        right_values = dict(right.lines)
        lines = [
            (name, f"{value}, as it should be")
            if right_values.get(name) == value
            else (name, f"{value}; should be {right_values.get(name, 'none')}")
            for name, value in lines
        ]
    draw_lines(lines)


def draw_sentence(result: InstrumentResult) -> None:
    # Plain text, since it may hold the reader's words.
    st.text(result.sentence[:1].upper() + result.sentence[1:])


def draw_lines(lines: Sequence[tuple[str, str]]) -> None:
    if lines:
        tables.value_table(lines, "What the instrument measured")


def draw_picture(picture: InstrumentPicture, key: str, of: str) -> None:
    """Draw a matrix as large as the window allows, diverging if some values are negative.

    `of` names the model in its title.
    """
    is_signed = bool((picture.values < 0).any())
    matrix(
        picture.values,
        picture.down,
        picture.across,
        key=key,
        title=f"{picture.title}, {of}",
        heading=of.capitalize(),
        scale="diverging" if is_signed else "sequential",
        row_name=picture.axes[0],
        column_name=picture.axes[1],
        top=None if picture.unit == "output" and is_signed else 1.0,
        sentence="{row}, {column}: {value}",
        unit=picture.unit,
    )
    if picture.caption:
        st.caption(picture.caption)


def measure(
    opened: OpenModel,
    forward: ForwardPass,
    mistake: str,
    instruments: tuple[str, ...],
    head: HeadPlace,
) -> dict[str, InstrumentResult]:
    """The results of these instruments for the model with a mistake, or with none; cached."""

    def results() -> dict[str, InstrumentResult]:
        run = right_run(opened, forward, head)
        run = run.with_model(MISTAKES[mistake].make(run.model)) if mistake else run
        return {name: INSTRUMENTS[name](run) for name in instruments}

    key = ("museum", mistake, instruments, head, forward.text, forward.pair)
    return cached(opened, key, results)


def head_place(context: PageContext, opened: OpenModel) -> HeadPlace:
    """The chosen head, or the default head of another model."""
    at = context.choice
    return (at.part, at.layer, at.head) if at.model == opened.name else default_head(opened)


def _fitting_model(
    context: PageContext, mistake: str, has_numbers: bool
) -> tuple[OpenModel, ForwardPass] | None:
    """The chosen model if it can have the mistake, or else the first that can, and a sentence."""
    misfit: Callable[..., str | None] = MISTAKES[mistake].misfit
    opened = context.opened
    why = misfit(opened.config)
    if why is None:
        widgets.notes(context.forward.notes)
        return opened, context.forward
    for entry in context.models.values():
        if misfit(config_of(entry)) is not None:
            continue
        try:
            fitting = open_entry(entry)
            forward = _run_sentence(fitting, context.choice.text, entry.example)
        except (ModelError, ForwardPassError):
            continue
        say(
            f"{opened.title} cannot have this mistake: {why}. So it is made in "
            f"{fitting.title}, which reads {in_quotes(forward.text)}."
        )
        return fitting, forward
    numbers = " The document's own numbers are below." if has_numbers else ""
    say(f"No model here can have this mistake: {why}.{numbers}")
    return None


def _run_sentence(opened: OpenModel, text: str, example: str) -> ForwardPass:
    """Run the reader's sentence if this model knows its words, or else the model's example."""
    try:
        forward = run_text(opened, text)
    except ForwardPassError:
        return run_text(opened, example)
    return run_text(opened, example) if forward.notes else forward


def _draw_details(exhibit: Exhibit, opened: OpenModel) -> None:
    """Draw the document's own numbers, and what only this exhibit has."""
    if exhibit.note:
        st.text(exhibit.note)
    if exhibit.numbers:
        st.markdown("**In the document's own configuration**")
        columns = zip(*exhibit.numbers, strict=True)
        tables.static_table(
            dict(zip(exhibit.columns, columns, strict=True)),
            "Numbers of the document's own configuration, with the mistake and right",
        )
    if exhibit.name == "softmax-twice":
        paired_training.draw_softmax_trainings(opened.task or TASKS["negation"])
    if exhibit.name == "printed-count":
        counts = parameter_counts(opened.model)
        st.markdown("**The chosen model, part by part**")
        tables.static_table(
            {"part": list(counts), "parameters": [f"{count:,}" for count in counts.values()]},
            "The parts of the chosen model and their numbers of parameters",
        )


def parameter_counts(model: Transformer) -> dict[str, int]:
    """The number of parameters of each part of a model, and their total."""
    counts = {}
    for name, part in model.named_children():
        if count := sum(parameter.numel() for parameter in part.parameters()):
            counts[name] = count
    if shared := sum(counts.values()) - model.n_parameters:
        counts["counted twice, since shared"] = -shared
    return counts | {"total": model.n_parameters}


def instrument_script(
    opened: OpenModel,
    forward: ForwardPass,
    head: HeadPlace,
    changes: Iterable[str],
    instrument: str,
) -> Script:
    """The code that measures the model with each of these changes once; "" is the model itself."""
    at = (opened, forward, head, instrument)
    scripts = (
        script(changed_code, *at, change) if change else script(unchanged_code, *at)
        for change in dict.fromkeys(changes)
    )
    return reduce(add, scripts)


def changed_code(
    opened: OpenModel, forward: ForwardPass, head: HeadPlace, instrument: str, mistake: str
) -> None:
    model = MISTAKES[mistake].make(opened.model)
    changed = right_run(opened, forward, head).with_model(model)
    print(INSTRUMENTS[instrument](changed).sentence)


def unchanged_code(
    opened: OpenModel, forward: ForwardPass, head: HeadPlace, instrument: str
) -> None:
    unchanged = right_run(opened, forward, head)
    print(INSTRUMENTS[instrument](unchanged).sentence)


def parameters_code(opened: OpenModel) -> None:
    for part, count in parameter_counts(opened.model).items():
        print(part, f"{count:,}")
