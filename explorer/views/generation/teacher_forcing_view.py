"""Teacher forcing and free running, step by step, with the shifted target."""

from collections.abc import Callable, Sequence

import streamlit as st
import torch

from explorer.analysis.teacher_forcing import TeacherForcing, teacher_forcing
from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import or_stop, say
from explorer.catalog.opened_model import OpenModel
from explorer.components.board import Cell, Column, Row, Words, board
from explorer.inference.continuation import prompt_of, unknown_in
from explorer.inference.generation_limits import (
    MAX_GENERATED,
    Prompt,
    require_probabilities,
    target_ids,
)
from explorer.inference.results_cache import kept
from explorer.text import Token
from explorer.text.number_format import three
from explorer.text.token_labels import LAST, candidate_text, text_of, texts
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script

TOO_SHORT = "One token leaves nothing to predict: type a longer sentence."
LEGEND = "Blue line: the target token. Orange: another token. A full bar is a probability of 1."
WORDS = Words(
    "step",
    "Each column is a step. The input is the target, shifted by one step.",
    "Step {column}, {row}: {value}",
)


def draw_teacher_forcing(context: PageContext) -> Script | None:
    """Inputs, targets and predictions of both ways; gives the code of teacher forcing."""
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    if prompt.source:
        target, given = _choose_target(context, prompt), 1
        source = prompt.ids
    else:
        target, source = [token.id for token in prompt.tokens], None
        if len(target) < 2:
            say(TOO_SHORT)
            return None
        given = _choose_given(len(target))
    cut = target[: given + MAX_GENERATED]
    found = kept(
        opened,
        ("forcing", text, tuple(cut), given),
        lambda: teacher_forcing(opened.model, source, torch.tensor(cut), given),
    )
    or_stop(lambda: require_probabilities(found.probabilities))
    label = opened.tokenizer.label
    draw_board(found, label, key="forcing")
    st.caption(LEGEND)
    st.text(summary(found, label))
    if len(cut) < len(target):
        hidden = len(target) - len(cut)
        st.caption(f"The first {MAX_GENERATED} steps are shown, {hidden} are not.")
    widgets.notes(context.forward.notes)
    return script(forcing_code, opened, text, cut, given)


def draw_board(found: TeacherForcing, label: Callable[[int], str], key: str) -> None:
    """Both ways as a table, a column for each step."""
    title = "Teacher forcing and free running"
    board(_columns(found), _rows(found, label), WORDS, key=key, title=title, narrow=True)


def _choose_given(tokens: int) -> int:
    """How many tokens of the sentence are the prompt."""
    most = tokens - 1
    if most == 1:
        st.caption("The first token is given, the second is predicted.")
        return 1
    if widget_state.get("given", 1) > most:
        widget_state.put("given", most)
    with st.container(width=420):
        return int(controls.slider("given", 1, most, (tokens + 1) // 2))


def _choose_target(context: PageContext, prompt: Prompt) -> list[int]:
    """The typed target; else the task's reference answer; else the model's own output."""
    opened, forward = context.opened, context.forward
    known = opened.task.answer_text(forward.source) if opened.task else ""
    own = opened.tokenizer.decode([token.id for token in forward.written])
    how = {"placeholder": known or own, **controls.PERSISTENT}
    typed = controls.text_field("target", **how).strip()
    if not typed:
        st.caption(
            "The task's reference answer; you can type another."
            if known
            else "There is no reference answer, so this is the model's own output; "
            "you can type another."
        )
    wanted = typed or known
    if not wanted:
        return [token.id for token in (*forward.target, forward.written[-1])]
    target = or_stop(lambda: target_ids(opened, prompt, wanted))
    widgets.notes(unknown_in(opened, wanted))
    return target


def _columns(found: TeacherForcing) -> list[Column]:
    steps = range(len(found.targets))
    return [Column(str(at + 1), "diverges" if at == found.diverges_at else "") for at in steps]


def _rows(found: TeacherForcing, label: Callable[[int], str]) -> list[Row]:
    """Both ways, step by step; a prediction is marked as the target or not."""
    targets = found.targets
    lines = {
        "input": _cells(found.inputs, label, "given"),
        "target": _cells(targets, label),
        "prediction": _judged_cells(found.predicted, targets, targets, label),
        "probability of the target": [Cell(three(p), p) for p in found.probabilities.tolist()],
        "free-running input": _padded(_cells(found.free_inputs, label, "given"), len(targets)),
        "free-running output": _padded(
            _judged_cells(found.generated, targets, found.generated, label), len(targets)
        ),
    }
    return [Row(line, cells, is_token=False) for line, cells in lines.items()]


def summary(found: TeacherForcing, label: Callable[[int], str]) -> str:
    """How many predictions are right each way, and where free running diverges."""
    count, at = len(found.targets), found.diverges_at
    fed = (
        f"Teacher forcing: {_equal(found.predicted, found.targets)} of {count} predictions are "
        f"correct, {three(float(found.nats.mean()))} nats per token."
    )
    if at is None:
        return f"{fed} Free running: the output is the target."
    own = text_of(label(found.generated[at])) if at < len(found.generated) else "nothing"
    wanted = text_of(label(found.targets[at]))
    return (
        f"{fed} Free running: the output diverges at step {at + 1}, with “{own}” instead of "
        f"“{wanted}”; {_equal(found.generated, found.targets)} of {count} are correct."
    )


def _equal(ids: Sequence[int], targets: Sequence[int]) -> int:
    return sum(own == wanted for own, wanted in zip(ids, targets, strict=False))


def _cells(ids: Sequence[int], label: Callable[[int], str], how: str = "") -> list[Cell]:
    """The parts of a character are named after it."""
    return [Cell(name, None, how) for name in texts([Token(each, label(each)) for each in ids])]


def _judged_cells(
    ids: Sequence[int],
    targets: Sequence[int],
    before: Sequence[int],
    label: Callable[[int], str],
) -> list[Cell]:
    """`before` are the tokens before each of these, all of them where it is a text of its own."""
    return [
        Cell(
            candidate_text(label(own), [*map(label, before[max(0, at - LAST) : at])]),
            None,
            "right" if own == wanted else "wrong",
        )
        for at, (own, wanted) in enumerate(zip(ids, targets, strict=False))
    ]


def _padded(cells: list[Cell], count: int) -> list[Cell]:
    """Free running may end before the target does."""
    return [*cells, *[Cell("", None, "cut")] * (count - len(cells))]


def forcing_code(opened: OpenModel, text: str, target: list[int], given: int) -> None:
    prompt = prompt_of(opened, text)
    source = prompt.ids if prompt.source else None
    found = teacher_forcing(opened.model, source, torch.tensor(target), given)
    print(found.predicted, found.targets, found.probabilities)
