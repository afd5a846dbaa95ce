"""Teacher forcing beside free running, on the screen, with the shifted row drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st
import torch

from explorer.analysis.teacher_forcing import Forced, forced
from explorer.app import number_controls, url
from explorer.app.context import page_context
from explorer.app.messages import or_stop, say
from explorer.catalog.entries import Opened
from explorer.components.board import Cell, Column, Row, Words, board
from explorer.inference.continuation import start_of, unknown_in
from explorer.inference.forward_pass import run_text
from explorer.inference.generated_text import MOST_WRITTEN
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept, size_of
from explorer.snippets import decoding_code as snippets
from explorer.tasks.reference_answer import right_answer, target_of
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.shared import widgets

ONE = "There is one token here, so none to be right or wrong about: type a longer sentence."
LOOKS = "A blue line: the target. Orange: another token. A full bar: a probability of 1."
WORDS = Words(
    "step",
    "A column is a step. The target in is the target out, one step later.",
    "Step {column}, {row}: {value}",
)


def show() -> Callable[[], str] | None:
    """The two rows of the target, what the model says when fed them, and what it says alone.

    Gives the lines of the first.
    """
    opened, text = page_context().opened, page_context().choice.text
    start = or_stop(lambda: start_of(opened, text))
    if start.source:
        target, given = _target(opened, text), 1
        source = ids_of([start.source])
    else:
        target, source = [token.id for token in start.begun], None
        if len(target) < 2:
            say(ONE)
            return None
        given = _given(len(target))
    cut = target[: given + MOST_WRITTEN]
    found = kept(
        opened,
        ("forcing", text, tuple(cut), given),
        lambda: forced(opened.model, source, torch.tensor(cut), given),
        size_of,
    )
    name = opened.tokenizer.label
    board(columns(found), rows(found, name), WORDS, key="forcing", narrow=True)
    st.caption(LOOKS)
    st.text(in_words(found, name))
    if len(cut) < len(target):
        st.caption(f"The first {MOST_WRITTEN} steps are shown, {len(target) - len(cut):,} are not.")
    widgets.notes(run_text(opened, text).notes)
    has_first = bool(start.source) and opened.config.first_id is not None
    return partial(snippets.forcing, start, page_context().folder, cut, given, has_first)


def _given(tokens: int) -> int:
    """How many tokens of the sentence stand there before the first step."""
    most = tokens - 1
    if most == 1:
        st.caption("One token is given, and one is to come.")
        return 1
    if st.session_state.get("given", 1) > most:
        st.session_state["given"] = most
    with st.container(width=420):
        return int(number_controls.slider("Tokens given", "given", 1, most, (tokens + 1) // 2))


def _target(opened: Opened, text: str) -> list[int]:
    """The right answer that is typed; else by the rules of the task; else the model's own."""
    known = right_answer(opened.task, run_text(opened, text).source)
    own = opened.tokenizer.decode([token.id for token in run_text(opened, text).written])
    typed = st.text_input(
        "The right answer",
        **url.bound("target"),
        persist_state="session",
        placeholder=known or own,
        max_chars=400,
    )
    if not (typed or "").strip():
        st.caption(
            "By the rules of the task; type another."
            if known
            else "Nobody knows the right one here, so it is the model's own answer: type another."
        )
    wanted = (typed or "").strip() or known
    if not wanted:
        return [
            token.id
            for token in (*run_text(opened, text).target, run_text(opened, text).written[-1])
        ]
    target = or_stop(lambda: target_of(opened, text, wanted))
    widgets.notes(unknown_in(opened, wanted))
    return target


def columns(found: Forced) -> list[Column]:
    return [
        Column(str(at + 1), "departs" if at == found.departs else "")
        for at in range(len(found.right))
    ]


def rows(found: Forced, name: Callable[[int], str]) -> list[Row]:
    """The shifted target, and both ways of running; a token that is not the target is marked."""
    steps = range(len(found.right))
    chances = [Cell(three(float(chance)), float(chance)) for chance in found.chances]
    lines = {
        "target in": _plain(found.fed, name, "given"),
        "target out": _plain(found.right, name),
        "fed the target, it says": _judged(found.said, found.right, name),
        "its chance of the target": chances,
        "its own words in": _padded(_plain(found.fed_free, name, "given"), len(steps)),
        "its own words out": _padded(_judged(found.free, found.right, name), len(steps)),
    }
    return [Row(line, cells, is_token=False) for line, cells in lines.items()]


def in_words(found: Forced, name: Callable[[int], str]) -> str:
    """How many are right each way, and where the model's own writing departs."""
    count, at = len(found.right), found.departs
    right = sum(said == wanted for said, wanted in zip(found.said, found.right, strict=True))
    fed = (
        f"Fed the target, {right} of {count} are right, at {three(float(found.nats.mean()))} "
        "nats a token."
    )
    if at is None:
        return f"{fed} Fed its own words, it writes the target and never departs."
    same = sum(own == wanted for own, wanted in zip(found.free, found.right, strict=False))
    own = text_of(name(found.free[at])) if at < len(found.free) else "nothing"
    wanted = text_of(name(found.right[at]))
    return (
        f"{fed} Fed its own words, it departs at step {at + 1}, with “{own}” for “{wanted}”; "
        f"{same} of {count} are right."
    )


def _plain(ids: Sequence[int], name: Callable[[int], str], how: str = "") -> list[Cell]:
    return [Cell(text_of(name(each)), None, how) for each in ids]


def _judged(ids: Sequence[int], right: Sequence[int], name: Callable[[int], str]) -> list[Cell]:
    looks = ("right" if own == wanted else "wrong" for own, wanted in zip(ids, right, strict=False))
    return [Cell(text_of(name(own)), None, how) for own, how in zip(ids, looks, strict=True)]


def _padded(cells: list[Cell], count: int) -> list[Cell]:
    """It may end before the target does; nothing stands there."""
    return [*cells, *[Cell("", None, "cut")] * (count - len(cells))]
