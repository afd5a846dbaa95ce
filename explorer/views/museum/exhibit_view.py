"""One exhibit on screen: a mistake, the wrong and the right model side by side, what shows it."""

from collections.abc import Callable

import streamlit as st

from explorer.app.context import PageContext, config_of
from explorer.app.controls import one_of, switch
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel, open_entry
from explorer.components import matrix
from explorer.inference.default_head import default_head
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.results_cache import kept
from explorer.views.museum import exhibit_measurements
from explorer.views.museum.document_numbers import DOCUMENT_NUMBERS
from explorer.views.museum.exhibits import BY_LABEL, Exhibit
from explorer.views.museum.instrument_pictures import InstrumentPicture
from explorer.views.museum.instruments import INSTRUMENTS, InstrumentResult
from explorer.views.museum.measured_run import HeadPlace, right_run
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.museum.mistakes.attention_mistakes import FILLS
from explorer.views.museum.paired_training import train_on_random_labels
from explorer.views.shared import tables, widgets
from explorer.views.shared.code_panel import Script, script

MAP, FILLED = "Attention map", "filled-row"
SIDES = ("wrong", "right")
PICTURE_HEIGHT, FLAT_HEIGHT, FLAT = 360, 240, 0.5
"""A picture much wider than high, as of a few positions, needs less room."""
NO_MODEL_FOR_IT = "No model here can have this mistake: {why}."
HAS_NUMBERS = " The document's own numbers are below."


def draw_exhibit(context: PageContext) -> Script | None:
    """The chosen exhibit: the mistake, both models, what gives it away; its pasted lines."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = one_of("exhibit", list(BY_LABEL), as_list=True, width=420)
        exhibit = BY_LABEL[picked]
        has_runs = exhibit.name in MISTAKES
        on = has_runs and switch("mistake")
    wrong, right = widgets.side_by_side(1, 1)
    wrong.markdown(f"**In the {exhibit.where}.** {exhibit.error}")
    right.markdown(f"**Right.** {exhibit.right}")
    mistake = exhibit.name
    if mistake == FILLED:  # the documents fill with different numbers
        mistake = f"{FILLED} {one_of('fill', tuple(FILLS))}"
    chosen = _fitting_model(context, mistake) if has_runs else None
    made = mistake if on else ""
    if chosen is not None:
        _draw_runs(exhibit, made, *chosen, head_place(context, chosen[0]))
    elif not has_runs:
        with st.container(border=True, key="given_away"):
            st.markdown(f"**{exhibit_measurements.telling_number(exhibit)}** {exhibit.telling}")
    exhibit_measurements.draw_details(exhibit, context)

    if chosen is not None:
        head = head_place(context, chosen[0])
        return instrument_script(*chosen, head, made, exhibit.sign)
    if exhibit.name == "random-labels":
        return script(random_labels_code)
    return script(document_code, exhibit.name) if exhibit.name in DOCUMENT_NUMBERS else None


def _draw_runs(
    exhibit: Exhibit, mistake: str, opened: OpenModel, forward: ForwardPass, head: HeadPlace
) -> None:
    """The model with the mistake, if one is made, and the right one beside it."""
    names = (exhibit.sign, MAP)
    before, after = (measure(opened, forward, made, names, head) for made in (mistake, ""))
    titles = "With the mistake" if mistake else "Without the mistake", "Right"
    places = widgets.side_by_side(1, 1)
    for place, title, found, side in zip(places, titles, (before, after), SIDES, strict=True):
        with place:
            st.markdown(f"**{title}**")
            draw_measured(found[exhibit.sign], f"museum_{side}", title.lower())
    if all(found[exhibit.sign].picture is None for found in (before, after)):
        _draw_maps(before[MAP], after[MAP], titles, is_made=bool(mistake))
    draw_given_away(exhibit, before[exhibit.sign], after[exhibit.sign], is_made=bool(mistake))


def _draw_maps(
    wrong: InstrumentResult, right: InstrumentResult, titles: tuple[str, str], is_made: bool
) -> None:
    """The chosen head in both models, or that the mistake does not show there."""
    pictures = wrong.picture, right.picture
    if is_made and pictures[0] and pictures[1] and pictures[0].is_like(pictures[1]):
        name = pictures[1].title
        st.text(f"{name}: the map is the same in both models, the mistake does not show there.")
        return
    places = widgets.side_by_side(1, 1)
    for place, title, found, side in zip(places, titles, (wrong, right), SIDES, strict=True):
        with place:
            draw_measured(found, f"museum_{side}", title.lower())


def draw_given_away(
    exhibit: Exhibit, wrong: InstrumentResult, right: InstrumentResult, is_made: bool = True
) -> None:
    """The number that gives the mistake away, of both models, or that it does not here."""
    said = f"What gives it away: {exhibit.sign}, {wrong.short} against {right.short}."
    if not is_made:
        said = f"Without the mistake: {exhibit.sign}, {right.short}."
    elif wrong.short == right.short:
        said = f"{exhibit.sign}, {right.short} in both: here it does not give the mistake away."
    with st.container(border=True, key="given_away"):
        st.markdown(f"**{said}** {exhibit.telling}")


def draw_measured(
    found: InstrumentResult, key: str, of: str, right: InstrumentResult | None = None
) -> None:
    """A sentence, its lines and its picture; beside the right model's numbers where given.

    `of` says which of two models it is, where the picture is exported.
    """
    st.text(_capitalized(found.said))  # may hold the reader's own words
    lines = [*found.lines]
    if right is not None:
        st.text(f"As it should be: {right.said}")
        should = dict(right.lines)
        lines = [
            (name, f"{value}, as it should be")
            if should.get(name) == value
            else (name, f"{value}; should be {should.get(name, 'none')}")
            for name, value in lines
        ]
    if lines:
        tables.value_table(lines, "What the instrument measured")
    if found.picture is not None:
        _draw_picture(found.picture, key, of)


def _draw_picture(picture: InstrumentPicture, key: str, of: str) -> None:
    """A matrix; with a diverging scale where some values are negative."""
    if picture.shows:
        st.text(picture.shows)
    shape = len(picture.down) / max(len(picture.across), 1)
    signed = bool((picture.values < 0).any())
    matrix(
        picture.values,
        picture.down,
        picture.across,
        key=key,
        title=f"{picture.title}, {of}",
        scale="diverging" if signed else "sequential",
        row_name=picture.axes[0],
        column_name=picture.axes[1],
        height=FLAT_HEIGHT if shape < FLAT else PICTURE_HEIGHT,
        top=None if picture.unit == "output" and signed else 1.0,
        sentence="{row}, {column}: {value}",
        unit=picture.unit,
    )


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def measure(
    opened: OpenModel,
    forward: ForwardPass,
    mistake: str,
    instruments: tuple[str, ...],
    head: HeadPlace,
) -> dict[str, InstrumentResult]:
    """What these instruments measure of the model with a mistake, or with none; kept."""

    def make() -> dict[str, InstrumentResult]:
        run = right_run(opened, forward, head)
        run = run.with_model(MISTAKES[mistake].make(run.model)) if mistake else run
        return {name: INSTRUMENTS[name](run) for name in instruments}

    key = ("museum", mistake, instruments, head, forward.text, forward.pair)
    return kept(opened, key, make, _bytes)


def head_place(context: PageContext, opened: OpenModel) -> HeadPlace:
    """The chosen head, or of another model the one that is shown first."""
    at = context.choice
    return (at.part, at.layer, at.head) if at.model == opened.name else default_head(opened)


def _fitting_model(context: PageContext, mistake: str) -> tuple[OpenModel, ForwardPass] | None:
    """The chosen model where it can have the mistake, else the first that can, with a sentence."""
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
            other = open_entry(entry)
            forward = _run_sentence(other, context.choice.text, entry.example)
        except (ModelError, ForwardPassError):
            continue
        say(
            f"{own_name(opened.name)} cannot have this mistake: {why}. So it is made in "
            f"{other.name}, which reads “{forward.text}”."
        )
        return other, forward
    has_numbers = mistake.partition(" ")[0] in DOCUMENT_NUMBERS
    say(NO_MODEL_FOR_IT.format(why=why) + HAS_NUMBERS * has_numbers)
    return None


def _run_sentence(opened: OpenModel, text: str, example: str) -> ForwardPass:
    """The reader's sentence where this model knows its words, else the model's own example."""
    try:
        forward = run_text(opened, text)
    except ForwardPassError:
        return run_text(opened, example)
    return run_text(opened, example) if forward.notes else forward


def _bytes(found: dict[str, InstrumentResult]) -> int:
    pictures = (each.picture for each in found.values())
    return sum(each.values.nbytes for each in pictures if each is not None) + 4096


def instrument_script(
    opened: OpenModel, forward: ForwardPass, head: HeadPlace, mistake: str, instrument: str
) -> Script:
    """What the instrument says of the model with a mistake, if one is made, and the right one."""
    right = script(right_code, opened, forward, head, instrument)
    if not mistake:
        return right
    return script(wrong_code, opened, forward, head, instrument, mistake) + right


def wrong_code(
    opened: OpenModel, forward: ForwardPass, head: HeadPlace, instrument: str, mistake: str
) -> None:
    model = MISTAKES[mistake].make(opened.model)
    wrong = right_run(opened, forward, head).with_model(model)
    print(INSTRUMENTS[instrument](wrong).said)


def right_code(opened: OpenModel, forward: ForwardPass, head: HeadPlace, instrument: str) -> None:
    right = right_run(opened, forward, head)
    print(INSTRUMENTS[instrument](right).said)


def random_labels_code() -> None:
    for point in train_on_random_labels():
        print(point.step, point.curve, point.value)


def document_code(mistake: str) -> None:
    for line in DOCUMENT_NUMBERS[mistake]():
        print(*line)
