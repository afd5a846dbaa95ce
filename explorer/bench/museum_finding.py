"""Find it: a run with a mistake and no name; the instruments say what is wrong with it."""

from __future__ import annotations

import random

import streamlit as st

from explorer import session, widgets
from explorer.bench import museum
from explorer.bench.asked_number import whole
from explorer.choices import one_of
from explorer.museum.exhibits import FINDABLE, Exhibit
from explorer.museum.instruments import INSTRUMENTS
from models.mistakes import MISTAKES

LARGEST_SEED = 9999
NOTHING = (
    "This model can have none of the mistakes. Choose another model, such as translation, in the "
    "sidebar."
)

WHAT = (
    "Your sentence was read by a copy of the model that has one of {count} mistakes. Hold the "
    "instruments to it, then say which."
)


def show() -> None:
    """One question: the instruments on the left, the answer on the right."""
    opened = session.opened()
    fitting = [e for e in FINDABLE if MISTAKES[e.name].misfit(opened.config) is None]
    if not fitting:
        session.say(NOTHING)
        return
    reading = session.reading_of_text()
    widgets.notes(reading.notes)
    st.text(WHAT.format(count=len(fitting)))
    seed, place = _question(len(fitting))
    hidden = order(fitting, seed)[place]
    seen, asked = widgets.side_by_side(7, 4)
    with seen:
        names = list(INSTRUMENTS)
        name = one_of("Hold to it", "instrument", names)
        st.markdown(f"**{name}, of the run with a mistake**")
        found = museum.measured(opened, reading, hidden.name, (name,))[name]
        museum.draw(found, "found")
    with asked:
        key = (opened.name, seed, place)
        _answer(hidden, fitting, key)
        _score()
    if key in _answers():
        wrong = museum.measured(opened, reading, hidden.name, (hidden.sign,))[hidden.sign]
        right = museum.measured(opened, reading, "", (hidden.sign,))[hidden.sign]
        museum.given_away(hidden, wrong, right)
        for head, each in (("The run with the mistake", wrong), ("As it should be", right)):
            st.text(f"{head}: {each.said}")


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


def _answers() -> dict[tuple[str, int, int], bool]:
    answers: dict[tuple[str, int, int], bool] = st.session_state.setdefault("_museum_found", {})
    return answers


def _answer(hidden: Exhibit, fitting: list[Exhibit], key: tuple[str, int, int]) -> None:
    """The list of mistakes; the first answer to a question counts."""
    titles = {exhibit.label: exhibit for exhibit in fitting}
    picked = st.selectbox(
        "Which mistake is it?",
        list(titles),
        index=None,
        key=f"guess_{'_'.join(map(str, key))}",
        placeholder="Choose one of them",
    )
    answered = _answers()
    if (
        st.button("Answer", key="answer", type="primary", disabled=picked is None)
        and picked is not None
    ):
        answered.setdefault(key, titles[picked] is hidden)
    if key in answered:
        st.text("Found." if answered[key] else "Not that one.")
        st.markdown(f"It is **{hidden.title.lower()}**, exhibit {hidden.number}.")


def _score() -> None:
    answered = _answers()
    if answered:
        st.text(f"Found so far: {sum(answered.values())} of {len(answered)}.")
