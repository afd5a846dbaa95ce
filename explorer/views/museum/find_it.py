"""Find it: a run with a mistake and no name; the instruments say what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable

import streamlit as st

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.number_controls import whole
from explorer.snippets import museum_code as snippets
from explorer.views.museum import exhibit_view
from explorer.views.museum.exhibits import FINDABLE, Exhibit
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.shared import widgets

LARGEST_SEED = 9999
TRIES = 2
AGAIN = "You have a second try: look for the instrument whose number is far from what it should be."
NOTHING = (
    "This model can have none of the mistakes. Choose another model, such as translation, in the "
    "sidebar."
)

WHAT = (
    "Your sentence was read by a copy of the model that has one of {count} mistakes. Hold the "
    "instruments to it, then say which."
)


def show() -> Callable[[], str] | None:
    """One question: the instruments on the left, the answer on the right; its lines.

    Until it is settled they are those of the right run, or they would tell the answer.
    """
    opened = page_context().opened
    fitting = [e for e in FINDABLE if MISTAKES[e.name].misfit(opened.config) is None]
    if not fitting:
        say(NOTHING)
        return None
    forward = page_context().forward
    widgets.notes(forward.notes)
    st.text(WHAT.format(count=len(fitting)))
    seed, place = _question(len(fitting))
    hidden = order(fitting, seed)[place]
    seen, asked = widgets.side_by_side(7, 4)
    with seen:
        names = list(INSTRUMENTS)
        name = one_of("Hold to it", "instrument", names)
        st.markdown(f"**{name}, of the run with a mistake**")
        found, right = (
            exhibit_view.measured(opened, forward, made, (name,))[name]
            for made in (hidden.name, "")
        )
        exhibit_view.draw(found, "found", right)
    with asked:
        key = (opened.name, seed, place)
        _answer(hidden, fitting, key)
        _score()
    if _is_settled(key):
        wrong = exhibit_view.measured(opened, forward, hidden.name, (hidden.sign,))[hidden.sign]
        right = exhibit_view.measured(opened, forward, "", (hidden.sign,))[hidden.sign]
        exhibit_view.given_away(hidden, wrong, right)
        for head, each in (("The run with the mistake", wrong), ("As it should be", right)):
            st.text(f"{head}: {each.said}")
    made = hidden.name if _is_settled(key) else ""
    folder, look = page_context().folder, exhibit_view.look_of(opened)
    return lambda: snippets.both_runs(name, made, forward, folder, look)


def order(exhibits: list[Exhibit], seed: int) -> list[Exhibit]:
    """Every mistake once, in an order that follows from the seed."""
    return random.Random(seed).sample(exhibits, len(exhibits))


def _question(count: int) -> tuple[int, int]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = whole("Seed of the order", "order", 0, LARGEST_SEED, 0, width=160)
        if st.session_state.get("question", 1) > count:
            st.session_state["question"] = count
        place = whole(f"Run, of {count}", "question", 1, count, 1, width=160)
        st.button(
            "Next run", key="next_run", disabled=place >= count, on_click=_next, args=(place,)
        )
    return seed, place - 1


def _next(place: int) -> None:
    st.session_state["question"] = place + 1


def _answers() -> dict[tuple[str, int, int], dict[str, bool]]:
    """What was answered to each question, in order, and whether it was right."""
    answers: dict[tuple[str, int, int], dict[str, bool]]
    answers = st.session_state.setdefault("_museum_found", {})
    return answers


def _is_settled(key: tuple[str, int, int]) -> bool:
    """Found, or tried as often as one may."""
    tried = _answers().get(key, {})
    return any(tried.values()) or len(tried) >= TRIES


def _answer(hidden: Exhibit, fitting: list[Exhibit], key: tuple[str, int, int]) -> None:
    """The list of mistakes; after a wrong answer there is a second one."""
    titles = {exhibit.label: exhibit for exhibit in fitting}
    tried = _answers().get(key, {})
    picked = st.selectbox(
        "Which mistake is it?",
        list(titles),
        index=None,
        key=f"guess_{'_'.join(map(str, key))}",
        placeholder="Choose one of them",
    )
    is_new = picked is not None and picked not in tried and not _is_settled(key)
    if st.button("Answer", key="answer", type="primary", disabled=not is_new) and picked:
        _answers().setdefault(key, {})[picked] = titles[picked] is hidden
        st.rerun()
    if _is_settled(key):
        st.text("Found." if any(tried.values()) else "Not that one either.")
        st.markdown(f"It is **{hidden.title.lower()}**, exhibit {hidden.number}.")
    elif tried:
        st.text(f"Not {next(iter(tried))}. {AGAIN}")


def _score() -> None:
    settled = [tried for key, tried in _answers().items() if _is_settled(key)]
    if settled:
        found = sum(any(tried.values()) for tried in settled)
        st.text(f"Found so far: {found} of {len(settled)}.")
