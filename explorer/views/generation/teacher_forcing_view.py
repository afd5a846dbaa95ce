"""Teacher forcing and free running, step by step, with the target shifted by one."""

from collections.abc import Callable, Sequence

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.teacher_forcing import TeacherForcing, teacher_forcing
from explorer.app import controls, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import or_stop, say
from explorer.catalog.opened_model import OpenModel
from explorer.components.board import Cell, Column, Row, board
from explorer.inference.continuation import prompt_of, unknown_in
from explorer.inference.generation_limits import (
    MAX_GENERATED,
    Prompt,
    require_probabilities,
    target_ids,
)
from explorer.inference.results_cache import cached
from explorer.text import Token
from explorer.text.number_format import three
from explorer.text.token_labels import LAST, candidate_text, text_of, texts
from explorer.text.visible_text import in_quotes
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script

TOO_SHORT = "One token leaves nothing to predict: type a longer sentence."
LEGEND = "Blue line: the target token. {}A full bar is a probability of 1."


def draw_teacher_forcing(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Draw inputs, targets and predictions of both; return the code of teacher forcing."""
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    if prompt.source:
        with row:
            target, prompt_length = _choose_target(context, prompt), 1
        source = prompt.ids
    else:
        target, source = [token.id for token in prompt.tokens], None
        if len(target) < 2:
            say(TOO_SHORT)
            return None
        with row:
            prompt_length = _choose_prompt_length(len(target))
    cut = target[: prompt_length + MAX_GENERATED]
    forcing = cached(
        opened,
        ("forcing", text, tuple(cut), prompt_length),
        lambda: teacher_forcing(opened.model, source, torch.tensor(cut), prompt_length),
    )
    or_stop(lambda: require_probabilities(forcing.probabilities))
    label = opened.tokenizer.label
    draw_board(forcing, label, key="forcing")
    st.text(summary(forcing, label))
    if len(cut) < len(target):
        hidden = len(target) - len(cut)
        st.caption(f"Only the first {MAX_GENERATED} steps are shown; {hidden} more are not.")
    widgets.notes(context.forward.notes)
    return script(forcing_code, opened, text, cut, prompt_length)


def draw_board(forcing: TeacherForcing, label: Callable[[int], str], key: str) -> None:
    """Draw both as a table, a column for each step, and what its colours mean."""
    title = "Teacher forcing and free running"
    steps = range(len(forcing.targets))
    board(
        [Column(str(at + 1), "diverges" if at == forcing.diverges_at else "") for at in steps],
        _rows(forcing, label),
        key=key,
        title=title,
        corner="step",
        idle="Each column is a step. The input is the target, shifted by one step; free-running, "
        "the model reads what it wrote itself.",
        sentence="Step {column}, {row}: {value}",
        narrow=True,
    )
    judged = zip(forcing.predicted + forcing.generated, forcing.targets * 2, strict=False)
    st.caption(LEGEND.format("Orange: another token. " * any(one != of for one, of in judged)))


def _choose_prompt_length(tokens: int) -> int:
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
    """The typed target, else the task's reference answer, else the model's own output."""
    opened, forward = context.opened, context.forward
    reference = opened.task.answer_text(forward.source) if opened.task else ""
    own = opened.tokenizer.decode([token.id for token in forward.output_tokens])
    how = {"placeholder": reference or own, **controls.PERSISTENT}
    typed = controls.text_field("target", **how).strip()
    if not typed:
        st.caption(
            "The task's reference answer; you can type another."
            if reference
            else "There is no reference answer, so this is the model's own output; "
            "you can type another."
        )
    target_text = typed or reference
    if not target_text:
        return [token.id for token in (*forward.target, forward.output_tokens[-1])]
    target = or_stop(lambda: target_ids(opened, prompt, target_text))
    widgets.notes(unknown_in(opened, target_text))
    return target


def _rows(forcing: TeacherForcing, label: Callable[[int], str]) -> list[Row]:
    """Both, step by step; each prediction is marked right or wrong."""
    targets = forcing.targets
    rows = {
        "input": _cells(forcing.inputs, label, "given"),
        "target": _cells(targets, label),
        "prediction": _judged_cells(forcing.predicted, targets, targets, label),
        "probability of the target": [Cell(three(p), p) for p in forcing.probabilities.tolist()],
        "free-running input": _padded(_cells(forcing.free_inputs, label, "given"), len(targets)),
        "free-running output": _padded(
            _judged_cells(forcing.generated, targets, forcing.generated, label), len(targets)
        ),
    }
    return [Row(name, cells, is_token=False) for name, cells in rows.items()]


def summary(forcing: TeacherForcing, label: Callable[[int], str]) -> str:
    """How many predictions of each are correct, and where free running diverges."""
    count, at = len(forcing.targets), forcing.diverges_at
    teacher_forced = (
        f"Teacher forcing: {_equal(forcing.predicted, forcing.targets)} of {count} predictions are "
        f"correct, with a loss of {three(float(forcing.nats.mean()))} nats per token (0: sure of "
        "each)."
    )
    if at is None:
        return f"{teacher_forced} Free running: the output is the target."
    own = text_of(label(forcing.generated[at])) if at < len(forcing.generated) else "nothing"
    target = text_of(label(forcing.targets[at]))
    return (
        f"{teacher_forced} Free running: the output diverges at step {at + 1}, "
        f"with {in_quotes(own)} instead of {in_quotes(target)}; "
        f"{_equal(forcing.generated, forcing.targets)} of {count} are correct."
    )


def _equal(ids: Sequence[int], targets: Sequence[int]) -> int:
    return sum(token == target for token, target in zip(ids, targets, strict=False))


def _cells(ids: Sequence[int], label: Callable[[int], str], how: str = "") -> list[Cell]:
    """A cell for each token, by its label; tokens that are bytes of one character name it."""
    return [Cell(name, None, how) for name in texts([Token(token, label(token)) for token in ids])]


def _judged_cells(
    ids: Sequence[int], targets: Sequence[int], before: Sequence[int], label: Callable[[int], str]
) -> list[Cell]:
    """A cell for each prediction, right or wrong; `before` is the sequence that each continues."""
    return [
        Cell(
            candidate_text(label(token), [*map(label, before[max(0, at - LAST) : at])]),
            None,
            "right" if token == target else "wrong",
        )
        for at, (token, target) in enumerate(zip(ids, targets, strict=False))
    ]


def _padded(cells: list[Cell], count: int) -> list[Cell]:
    """The cells and empty ones up to `count`, since free running may end before the target."""
    return [*cells, *[Cell("", None, "cut")] * (count - len(cells))]


def forcing_code(opened: OpenModel, text: str, target: list[int], prompt_length: int) -> None:
    prompt = prompt_of(opened, text)
    source = prompt.ids if prompt.source else None
    forcing = teacher_forcing(opened.model, source, torch.tensor(target), prompt_length)
    print(forcing.predicted, forcing.targets, forcing.probabilities)
