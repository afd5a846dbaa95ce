"""One head's attention over the reader's sentence, with the newest weights of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.attention_sinks import sink_weights
from explorer.analysis.generalisation import MOST_EXAMPLES, Generalisation, generalisation
from explorer.analysis.teacher_forcing import TeacherForcing, teacher_forcing
from explorer.app.controls import PERSISTENT, choose, expander, follow, text_field
from explorer.app.messages import say
from explorer.app.session import state_of
from explorer.app.throttle import turn
from explorer.catalog import ModelError
from explorer.catalog.attention_parts import head_title
from explorer.catalog.available_models import Stamp
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer
from explorer.charts.figure_data import WINDOW
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch_uncached
from explorer.inference.model_inputs import ids_of
from explorer.runs.run import Run, open_folder
from explorer.runs.run_size import training_size
from explorer.runs.spec import RunError, RunSpec, is_step
from explorer.tasks import Task, pattern_of, pattern_score
from explorer.tasks.task import check_fit
from explorer.text import TextError, Token
from explorer.text.number_format import fixed, three
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.generation.teacher_forcing_view import draw_board, summary
from explorer.views.shared import widgets
from explorer.views.training.run_words import visible_task
from models import Transformer, TransformerConfig

GUESSES = 3
CONTROLS, FIGURES = (1, 1), (5, 3)
"""Shares of the sentence and the heads, and of the map and the expected pattern beside it."""


def draw_answer_now(task: Task, forward: ForwardPass) -> None:
    """Draw the answer in a line, with the right one if the task knows it."""
    answer = forward.answer
    if answer.guesses:
        best = answer.guesses[:GUESSES]
        words = " · ".join(f"**{literal(guess.label)}** {three(guess.score)}" for guess in best)
        st.markdown(f"{'Next token' if answer.kind == 'next' else 'Answer'}: {words}")
        return
    right = task.answer_text(forward.source)
    verdict = "correct" if answer.text == right else f"expected: {literal_sentence(right)}"
    st.markdown(f"Answer: **{literal_sentence(answer.text)}**{f' · {verdict}' if right else ''}")


def _forcing(opened: OpenModel, task: Task, forward: ForwardPass) -> TeacherForcing | None:
    """Teacher forcing with the task's answer, and free running; None if there is no answer."""
    answer = [token.id for token in task.answer(forward.source)]
    if not forward.source or not answer or len(answer) > opened.config.max_len:
        return None
    target = torch.tensor([forward.target[0].id, *answer])
    return teacher_forcing(opened.model, ids_of([forward.source]), target, prompt_length=1)


def draw_forcing(task: Task, forcing: TeacherForcing | None) -> None:
    """Draw teacher forcing and free running, in a panel that opens."""
    if forcing is None:
        return
    with expander("live_forcing") as panel:
        if panel.open:
            label = task.tokenizer.label
            draw_board(forcing, label, key="live_forcing_board")
            st.text(summary(forcing, label))


def _losses_at(opened: OpenModel, task: Task, spec: RunSpec) -> tuple[int, Generalisation] | None:
    """The step of the weights and their two losses; None if their record names no step."""
    step = opened.run.get("steps")
    if not is_step(step):
        return None
    return step, generalisation(opened.model, task.batch(step, spec.training), task.held_out_batch)


def draw_generalisation(step_and_losses: tuple[int, Generalisation] | None) -> None:
    if step_and_losses is None:
        return
    step, losses = step_and_losses
    st.caption(
        f"Generalisation gap at step {step:,}: **{three(losses.gap)}** nats, "
        f"{three(losses.held_out)} on held-out data, {three(losses.training)} in training.",
        help="Losses of the newest weights, without dropout or label smoothing: on at most "
        f"{MOST_EXAMPLES} held-out examples, and on as many of the next batch.",
    )


LIMIT = 400
BESIDE = 220
"""Pixels of the expected pattern, over the curve of the loss."""
RACE_MAP = 360
"""Pixels of the map of one of two runs."""
BEST = "the best"


@dataclass(frozen=True)
class LiveAttention:
    """One sentence through one set of weights, kept until either changes."""

    folder: Path
    text: str
    forward: ForwardPass | None
    fault: str
    forcing: TeacherForcing | None = None
    losses: tuple[int, Generalisation] | None = None


@dataclass
class ShownAttention:
    """The attention on screen, its task, and the sentence that was typed for each task."""

    now: LiveAttention | None = None
    task: str = ""
    typed: dict[str, str] = field(default_factory=dict)


MOST_DRAWN = 5_000_000
"""Parameters of the largest model that is drawn before it trains."""


@lru_cache(maxsize=8)
def _first_weights(config: TransformerConfig, seed: int) -> BoundedTransformer:
    """The model of a run before its first update; milliseconds for a small one."""
    return BoundedTransformer(Transformer(config, seed=seed).eval().requires_grad_(False))


def draw_preview(task: Task, spec: RunSpec | None, own_text: str) -> None:
    """Draw the same with the random weights that a run of these settings starts from.

    A run that starts from another model, or from a large one, is only described.
    """
    if spec is None or spec.parent or training_size(task, spec).parameters > MOST_DRAWN:
        st.markdown(f"**{task.title}.** {task.explanation}")
        st.markdown(f"Press **Start training**. Expected after training: {task.expectation}")
        return
    opened = OpenModel(
        name=task.name,
        folder=Path(task.name),
        title=task.title,
        model=_first_weights(spec.model, spec.weights_seed),
        config=spec.model,
        tokenizer=task.tokenizer,
        run={"classes": list(task.classes)},
        task=task,
        example=task.example,
    )
    sentence, head = st.columns(CONTROLS, vertical_alignment="center")
    watched, beside = st.columns(FIGURES)
    answer, expected = beside.container(), beside.container()
    places = sentence, head, answer, watched, expected
    draw_attention_in(places, task, task.title, own_text, partial(_run, Path(opened.name), opened))
    beside.caption(f"Expected after training: {task.expectation}")
    beside.markdown(f"**{task.title}.** {task.explanation}")
    beside.caption("This is the model before its first update: its weights are random.")


def draw_attention_in(
    places: Sequence[DeltaGenerator],
    task: Task,
    model: str,
    own_text: str,
    run: Callable[[str], LiveAttention | None],
) -> LiveAttention | None:
    """Draw one head's attention and the expected pattern in these places.

    The places are of the sentence, a head, the answer, the weights, and the expected pattern;
    `model` is the title of the run or trained model. Returns everything that was computed.
    """
    above, head_place, answer, left, right = places
    with above:
        text = _draw_sentence(task, own_text)
    live = run(text)
    if live is None:
        left.caption("The attention appears with the first weights.")
        return None
    if live.forward is None:
        with left:
            say(live.fault)
        return live
    with answer:
        draw_answer_now(task, live.forward)
    part, layer = _pattern_place(task, live.forward)
    heads = [BEST, *map(str, range(live.forward.part(part).heads))]
    chosen = head_place.segmented_control(
        f"Head of layer {layer}",
        heads,
        default=BEST,
        required=True,
        wrap=True,
        key=f"watched_head_{len(heads)}",
        persist_state="session",
    )
    forward = live.forward
    scores, expected = _scores(task, forward, part, layer)
    head = int(scores.argmax()) if chosen in (None, BEST) else min(int(chosen), len(scores) - 1)
    name = head_title(model, part, layer, head)
    with left:
        widgets.draw_map(forward, part, layer, head, "watched", name, WINDOW)
    if expected is not None:
        with right:
            rows, whole = _expected_of(task, forward, forward.rows(part), expected)
            allowed = forward.mask(part, layer)
            if rows != forward.rows(part):  # cross-attention, whose rows see the same keys
                allowed = allowed[:1].expand(len(rows), -1)
            title = f"{model} · Expected pattern"
            widgets.draw_weights(
                forward, part, whole, "expected", title, BESIDE, rows=rows, allowed=allowed
            )
        answer.caption(f"Weight: {_score_words(scores[head], expected)}.")
    for note in forward.notes:
        st.text(note)
    return live


def _draw_sentence(task: Task, own_text: str) -> str:
    """Draw the sentence's input; its default is that of the other pages, if the task reads it."""
    usual, screen = own_text if _reads(task, own_text) else task.example, state_of(ShownAttention)
    if screen.task not in ("", task.name):
        choose("sentence", screen.typed.get(task.name, usual))
    follow("sentence", usual)
    text = text_field("sentence", usual, label_visibility="collapsed", **PERSISTENT)
    screen.task = task.name
    if text != usual:
        screen.typed[task.name] = text
    return text


def _reads(task: Task, text: str) -> bool:
    """Whether the model of this task can read the whole sentence."""
    if not 0 < len(text) <= LIMIT:
        return False
    try:
        ids = task.tokenizer.ids(text)
    except TextError:
        return False
    return task.tokenizer.unk_id not in ids and len(ids) <= task.model.max_len


def newest_pass(run: Run, task: Task, text: str) -> LiveAttention | None:
    """Run only if the weights or the sentence changed; None before the first weights."""
    screen = state_of(ShownAttention)
    live: LiveAttention | None = None
    for _ in range(2):  # the newest weights may be replaced between the two lines
        folder = run.latest()
        if folder is None:
            return None
        if screen.now is not None and (screen.now.folder, screen.now.text) == (folder, text):
            return screen.now
        try:
            opened = open_folder(folder)
            check_fit(task, opened.config)
        except (ModelError, TextError) as error:
            live = LiveAttention(folder, text, None, str(error))
            continue
        live = screen.now = _with_losses(_run(folder, opened, text), run, task, opened)
        return live
    return live


def _run(folder: Path, opened: OpenModel, text: str) -> LiveAttention:
    with turn():
        try:
            return LiveAttention(folder, text, run_batch_uncached(opened, (text,))[0], "")
        except ForwardPassError as error:
            return LiveAttention(folder, text, None, str(error))


def _with_losses(live: LiveAttention, run: Run, task: Task, opened: OpenModel) -> LiveAttention:
    """The same with teacher forcing and the losses of these weights."""
    if live.forward is None:
        return live
    with turn():
        try:
            return replace(
                live,
                forcing=_forcing(opened, task, live.forward),
                losses=_losses_at(opened, task, run.spec_now()),
            )
        except (ForwardPassError, RunError):
            return live  # the pass itself can be drawn


def _pattern_place(task: Task, forward: ForwardPass) -> tuple[str, int]:
    """The attention and layer of the task's expected pattern; else the last ones."""
    stack, _, rest = task.pattern_site.partition(".")
    layer, _, attention = rest.partition(".")
    for part in forward.parts:
        if part.name == f"{stack}.{attention}" and layer.isdecimal():
            return part.name, min(int(layer), part.layers - 1)
    return forward.parts[-1].name, forward.parts[-1].layers - 1


def _expected_of(
    task: Task, forward: ForwardPass, rows: Sequence[Token], expected: Tensor
) -> tuple[Sequence[Token], Tensor]:
    """The tokens and the pattern of the right answer, whatever the model wrote.

    Where the rows are not those of an answer, or the task knows none, they stay as they are.
    """
    answer = task.answer(forward.source) if rows == forward.output_tokens else ()
    pattern = task.pattern(forward.source, (forward.target[0], *answer[:-1])) if answer else None
    return (rows, expected) if pattern is None else (answer, pattern)


def _score_words(score: Tensor, expected: Tensor) -> str:
    """A head's score, and in how many rows, since nothing is expected after a wrong token."""
    rows, expecting = len(expected), int((expected.sum(dim=-1) > 0).sum())
    of_rows = f" in {expecting} of {rows} rows" if expecting < rows else ""
    return f"{fixed(score.item(), 2)} on the expected pattern{of_rows}"


def _scores(
    task: Task, forward: ForwardPass, part: str, layer: int
) -> tuple[Tensor, Tensor | None]:
    """Each head's weight on the expected pattern, and the pattern.

    Without a pattern the score of a head is its mean largest weight of a row.
    """
    weights = forward.all_weights(part)[layer]
    answer = forward.target if forward.source else ()
    expected = pattern_of(task, forward.tokens, answer, weights.shape[1:])
    if expected is None:
        return weights.amax(dim=-1).mean(dim=-1), None
    return pattern_score(weights, expected), expected


@lru_cache(maxsize=2_000)
def largest_sink(folder: Path, stamp: Stamp, text: str) -> float | None:
    """The largest sink weight of the first stack's heads, by the weights with this `stamp`."""
    (forward,) = run_batch_uncached(open_folder(folder), (text,))
    weights = sink_weights(forward, forward.parts[0].name)
    return float(weights.nan_to_num(-1).max()) if weights.isfinite().any() else None


def draw_newest(run: Run, key: str, heading: str) -> None:
    """Draw the best head and the answer of the task's example, with the newest weights of a run.

    Nothing before the first weights, or where a run that trains has just replaced them.
    """
    folder, task = run.latest(), visible_task(run)
    if folder is None:
        return
    try:
        live = _run(folder, open_folder(folder), task.example)
    except ModelError:
        return
    if (forward := live.forward) is not None:
        part, layer = _pattern_place(task, forward)
        head = int(_scores(task, forward, part, layer)[0].argmax())
        title = head_title(run.title, part, layer, head)
        weights, allowed = forward.weights(part, layer, head), forward.mask(part, layer)
        which = f"{heading} · layer {layer}, head {head}"
        how: dict[str, Any] = {"heading": which, "allowed": allowed}
        widgets.draw_weights(forward, part, weights, key, title, RACE_MAP, **how)
        draw_answer_now(task, forward)
