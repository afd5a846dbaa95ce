"""The museum on the screen: one mistake, the wrong and the right run side by side."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.entries import LibraryError, Opened, open_entry
from explorer.components import matrix
from explorer.inference.first_look import first_look
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.results_cache import kept
from explorer.snippets import museum_code as snippets
from explorer.views.museum import exhibit_details
from explorer.views.museum.case import Case, case_of
from explorer.views.museum.exhibits import BY_LABEL, Exhibit
from explorer.views.museum.instrument_pictures import Picture
from explorer.views.museum.instruments import INSTRUMENTS, Found
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.museum.mistakes.attention_mistakes import FILLS
from explorer.views.shared import tables, widgets

MAP, FILLED = "A map", "filled-row"
SIDES = ("wrong", "right")
PICTURE_HEIGHT, FLAT_HEIGHT, FLAT = 360, 240, 0.5
"""A picture much wider than high, as of a few positions, needs less room."""
NO_MODEL = "No model here can have this mistake: {why}. The document's own numbers stand below."


def show() -> Callable[[], str]:
    """The chosen exhibit, top to bottom: what it is, both runs, what gives it away; its lines."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = one_of("Exhibit", "exhibit", list(BY_LABEL), as_list=True, width=420)
        exhibit = BY_LABEL[picked]
        has_runs = exhibit.name in MISTAKES
        on = has_runs and st.toggle("Make the mistake", True, **url.bound("mistake"))
    wrong, right = widgets.side_by_side(1, 1)
    wrong.markdown(f"**In the {exhibit.where}.** {exhibit.error}")
    right.markdown(f"**Right.** {exhibit.right}")
    mistake = _filled_with() if exhibit.name == FILLED else exhibit.name
    chosen = fitting(mistake) if has_runs else None
    if chosen is not None:
        _runs(exhibit, mistake if on else "", *chosen)
    elif not has_runs:
        with st.container(border=True, key="given_away"):
            st.markdown(f"**{exhibit_details.numbers(exhibit)}** {exhibit.telling}")
    exhibit_details.show(exhibit)
    return lambda: _lines(exhibit, mistake if on else "", chosen)


def _filled_with() -> str:
    """The mistake of the fill that is chosen: the documents do not agree on one."""
    return f"{FILLED} {one_of('Filled with', 'fill', tuple(FILLS))}"


def _lines(exhibit: Exhibit, mistake: str, chosen: tuple[Opened, ForwardPass] | None) -> str:
    if chosen is None:
        return snippets.of_the_document(exhibit)
    opened, forward = chosen
    folder = page_context().shelf[opened.name].folder
    return snippets.both_runs(exhibit.sign, mistake, forward, folder, look_of(opened))


def _runs(exhibit: Exhibit, mistake: str, opened: Opened, forward: ForwardPass) -> None:
    """The run with the mistake, if one is made, and the right one beside it."""
    names = (exhibit.sign, MAP)
    before, after = (measured(opened, forward, made, names) for made in (mistake, ""))
    heads = "The mistake is made" if mistake else "The mistake is not made", "As it should be"
    places = widgets.side_by_side(1, 1)
    for place, head, found, side in zip(places, heads, (before, after), SIDES, strict=True):
        with place:
            st.markdown(f"**{head}**")
            draw(found[exhibit.sign], f"museum_{side}")
    if all(found[exhibit.sign].picture is None for found in (before, after)):
        _maps(before[MAP], after[MAP], is_one=bool(mistake))
    given_away(exhibit, before[exhibit.sign], after[exhibit.sign])


def _maps(wrong: Found, right: Found, is_one: bool) -> None:
    """The chosen head in both runs; a mistake that does not show there is said to be unseen."""
    pictures = wrong.picture, right.picture
    if is_one and pictures[0] and pictures[1] and pictures[0].is_like(pictures[1]):
        st.text(f"{_begun(right.said)}, in both runs: the mistake does not show there.")
        return
    places = widgets.side_by_side(1, 1)
    for place, found, side in zip(places, (wrong, right), SIDES, strict=True):
        with place:
            draw(found, f"museum_{side}")


def given_away(exhibit: Exhibit, wrong: Found, right: Found) -> None:
    """The number that gives the mistake away, of both runs."""
    with st.container(border=True, key="given_away"):
        numbers = f"{wrong.short} against {right.short}"
        st.markdown(f"**What gives it away: {exhibit.sign}, {numbers}.** {exhibit.telling}")


def draw(found: Found, key: str, right: Found | None = None) -> None:
    """What an instrument shows: a sentence, its lines, and its picture where it has one.

    Where there is a right run to compare with, its numbers stand beside.
    """
    st.text(_begun(found.said))  # may hold the reader's own words
    if right is not None:
        st.text(f"As it should be: {right.said}")
    lines = [*found.lines] if right is None else _compared(found, right)
    if lines:
        tables.steps(lines, "What the instrument shows")
    if found.picture is not None:
        drawn(found.picture, key)


def _compared(found: Found, right: Found) -> list[tuple[str, str]]:
    """Every line with what the right run has there."""
    should = dict(right.lines)
    return [
        (name, f"{value}, as it should be")
        if should.get(name) == value
        else (name, f"{value}; should be {should.get(name, 'none')}")
        for name, value in found.lines
    ]


def drawn(picture: Picture, key: str) -> None:
    """The numbers of an instrument as a matrix; those below zero have colours of their own."""
    if picture.shows:
        st.caption(picture.shows)
    shape = len(picture.down) / max(len(picture.across), 1)
    signed = bool((picture.values < 0).any())
    matrix(
        picture.values,
        picture.down,
        picture.across,
        key=key,
        scale="diverging" if signed else "sequential",
        row_name=picture.axes[0],
        column_name=picture.axes[1],
        height=FLAT_HEIGHT if shape < FLAT else PICTURE_HEIGHT,
        top=None if picture.unit == "output" and signed else 1.0,
        sentence="{row}, {column}: {value}",
        absent="not a number",
        unit=picture.unit,
    )


def _begun(said: str) -> str:
    """A sentence begins with a capital letter."""
    return said[:1].upper() + said[1:]


def measured(
    opened: Opened, forward: ForwardPass, mistake: str, instruments: tuple[str, ...]
) -> dict[str, Found]:
    """What these instruments show of the model with a mistake, or with none; kept."""

    look = look_of(opened)

    def make() -> dict[str, Found]:
        case = with_mistake(case_of(opened, forward, look), mistake)
        return {name: INSTRUMENTS[name](case) for name in instruments}

    key = ("museum", mistake, instruments, look, forward.text, forward.pair)
    return kept(opened, key, make, _size)


def look_of(opened: Opened) -> tuple[str, int, int]:
    """The chosen head, or of another model the one that is worth seeing first."""
    at = page_context().choice
    return (at.part, at.layer, at.head) if at.model == opened.name else first_look(opened)


def with_mistake(case: Case, mistake: str) -> Case:
    """The same inputs for a copy of the model that has the mistake."""
    return case.of(MISTAKES[mistake].make(case.model)) if mistake else case


def fitting(mistake: str) -> tuple[Opened, ForwardPass] | None:
    """The chosen model where it can have the mistake, else the first that can, and says so."""
    misfit: Callable[..., str | None] = MISTAKES[mistake].misfit
    opened = page_context().opened
    why = misfit(opened.config)
    if why is None:
        forward = page_context().forward
        widgets.notes(forward.notes)
        return opened, forward
    for entry in page_context().shelf.values():
        if entry.config is None or misfit(entry.config) is not None:
            continue
        try:
            other = open_entry(entry)
            forward = _read(other, entry.example)
        except (LibraryError, ForwardPassError):
            continue
        say(
            f"{opened.name} cannot have this mistake: {why}. So {other.name} makes it here, and "
            f"reads “{forward.text}”."
        )
        return other, forward
    say(NO_MODEL.format(why=why))
    return None


def _read(opened: Opened, example: str) -> ForwardPass:
    """The reader's sentence where this model knows its words, else one of the model's own."""
    try:
        forward = run_text(opened, page_context().choice.text)
    except ForwardPassError:
        return run_text(opened, example)
    return run_text(opened, example) if forward.notes else forward


def _size(found: dict[str, Found]) -> int:
    pictures = (each.picture for each in found.values())
    return sum(each.values.nbytes for each in pictures if each is not None) + 4096
