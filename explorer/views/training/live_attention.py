"""The attention over the reader's sentence, with the newest weights of a run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.generalisation import Generalisation
from explorer.analysis.teacher_forcing import TeacherForcing
from explorer.app import reader_models
from explorer.app.controls import follow
from explorer.app.messages import say
from explorer.app.session import state_of
from explorer.app.throttle import turn
from explorer.catalog import ModelError
from explorer.catalog.attention_parts import head_title
from explorer.catalog.open_model import OpenModel, open_entry
from explorer.components import matrix
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch_uncached
from explorer.runs.run import Run, open_folder
from explorer.runs.spec import RunError
from explorer.tasks import Task, pattern_of, pattern_score
from explorer.text import TextError, Token
from explorer.text.number_format import fixed
from explorer.views.shared import widgets
from explorer.views.training.live_answer import both_ways, draw_answer_now, generalises

HEIGHT = 340
LIMIT = 400
BEST = "the best"
NOTHING_EXPECTED = Token(0, "–", special=True)


@dataclass(frozen=True)
class LiveAttention:
    """One sentence through one set of weights, kept until either changes."""

    folder: Path
    text: str
    forward: ForwardPass | None
    fault: str
    forcing: TeacherForcing | None = None
    generalises: tuple[int, Generalisation] | None = None


@dataclass
class ShownAttention:
    """What is on screen of the run."""

    now: LiveAttention | None = None


@dataclass(frozen=True)
class AttentionPlaces:
    """Where the parts of the live attention stand."""

    sentence: DeltaGenerator
    head: DeltaGenerator
    answer: DeltaGenerator
    weights: DeltaGenerator
    pattern: DeltaGenerator


def draw_live_attention(
    run: Run,
    task: Task,
    own_text: str,
    above: tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator],
    beside: DeltaGenerator,
) -> LiveAttention | None:
    """One head's attention and the expected pattern beside the curves, what chooses above them.

    Gives what else was computed with these weights.
    """
    places = AttentionPlaces(*above, beside.container(), beside.container())
    return _draw_sentence_and_head(
        task, run.title, own_text, places, lambda text: _newest_pass(run, task, text)
    )


def draw_preview(task: Task, own_text: str) -> None:
    """The same with the finished model of this task that ships with the app."""
    st.markdown(f"**{task.title}.** {task.explanation}")
    try:
        opened = open_entry(reader_models.everybodys()[task.name])
    except (KeyError, ModelError):
        st.markdown(f"Press **Start training**. Expected after training: {task.expectation}")
        return
    st.caption("Until you start or choose a run, this is a model already trained on this task.")
    places = AttentionPlaces(
        *st.columns(2), st.container(), *st.columns(2, vertical_alignment="bottom")
    )
    _draw_sentence_and_head(
        task, task.name, own_text, places, lambda text: _run(Path(opened.name), text, opened)
    )


def _draw_sentence_and_head(
    task: Task,
    model: str,
    own_text: str,
    places: AttentionPlaces,
    run: Callable[[str], LiveAttention | None],
) -> LiveAttention | None:
    """`model` is the name of what has these weights: the run, or the finished model."""
    with places.sentence:
        text = _draw_sentence(task, own_text)
    found = run(text)
    if found is None:
        places.weights.caption("The attention appears with the first weights.")
        return None
    if found.forward is None:
        with places.weights:
            say(found.fault)
        return found
    with places.answer:
        draw_answer_now(task, found.forward)
    part, layer = _pattern_place(task, found.forward)
    heads = [BEST, *map(str, range(found.forward.part(part).heads))]
    chosen = places.head.segmented_control(
        f"Head of layer {layer}",
        heads,
        default=BEST,
        required=True,
        wrap=True,
        key=f"watched_head_{len(heads)}",
        persist_state="session",
    )
    _draw_head(task, model, found.forward, part, layer, str(chosen or BEST), places)
    return found


def _draw_sentence(task: Task, own_text: str) -> str:
    """A sentence for this task: at first that of the other pages, where its model can read it."""
    key, usual = f"watched_{task.name}", own_text if _reads(task, own_text) else task.example
    follow(key, usual)
    text = st.text_input("Sentence", value=usual, max_chars=LIMIT, key=key, persist_state="session")
    return str(text)


def _reads(task: Task, text: str) -> bool:
    """Whether the model of this task reads all of the sentence."""
    if not 0 < len(text) <= LIMIT:
        return False
    try:
        ids = task.tokenizer.ids(text)
    except TextError:
        return False
    return task.tokenizer.unk_id not in ids and len(ids) <= task.model.max_len


def _newest_pass(run: Run, task: Task, text: str) -> LiveAttention | None:
    """Run again only when the weights or the sentence changed; None before the first weights."""
    shown = state_of(ShownAttention)
    kept = shown.now
    found: LiveAttention | None = None
    for _ in range(2):  # the newest weights may be replaced between the two lines
        folder = run.latest()
        if folder is None:
            return None
        if kept is not None and (kept.folder, kept.text) == (folder, text):
            return kept
        try:
            opened = open_folder(folder)
        except ModelError as error:
            found = LiveAttention(folder, text, None, str(error))
            continue
        found = _run(folder, text, opened)
        found = shown.now = _with_more(found, run, task, opened)
        return found
    return found


def _run(folder: Path, text: str, opened: OpenModel) -> LiveAttention:
    found = LiveAttention(folder, text, None, "")
    with turn():
        try:
            found = LiveAttention(folder, text, run_batch_uncached(opened, (text,))[0], "")
        except ForwardPassError as error:
            found = LiveAttention(folder, text, None, str(error))
    return found


def _with_more(found: LiveAttention, run: Run, task: Task, opened: OpenModel) -> LiveAttention:
    """The same with what else these weights are asked."""
    if found.forward is None:
        return found
    with turn():
        try:
            return replace(
                found,
                forcing=both_ways(opened, task, found.forward),
                generalises=generalises(opened, task, run.spec_now()),
            )
        except (ForwardPassError, RunError):
            return found  # the pass itself has been drawn


def _pattern_place(task: Task, forward: ForwardPass) -> tuple[str, int]:
    """The attention and layer of the task's expected pattern; else the last ones."""
    stack, _, rest = task.pattern_site.partition(".")
    layer, _, attention = rest.partition(".")
    for part in forward.parts:
        if part.name == f"{stack}.{attention}" and layer.isdecimal():
            return part.name, min(int(layer), part.layers - 1)
    return forward.parts[-1].name, forward.parts[-1].layers - 1


def _draw_head(
    task: Task,
    model: str,
    forward: ForwardPass,
    part: str,
    layer: int,
    chosen: str,
    places: AttentionPlaces,
) -> None:
    weights = forward.all_weights(part)[layer]
    written = forward.target if forward.source else ()
    expected = pattern_of(task, forward.tokens, written, weights.shape[1:])
    scores = _scores(weights, expected)
    head = int(scores.argmax()) if chosen == BEST else min(int(chosen), len(weights) - 1)
    left, right = places.weights, places.pattern
    rows = forward.rows(part)
    with left:
        name = head_title(model, part, layer, head)
        title = widgets.bold_title(name)
        st.markdown(title if expected is None else f"{title} · {_said(scores[head], expected)}")
        _draw_map(forward, part, layer, weights[head], rows, "watched", name)
    with right:
        st.markdown("**Expected pattern**")
        if expected is None:
            st.markdown(f"After training: {task.expectation}")
        else:
            title = f"{name}, expected pattern"
            rows = _expected_rows(task, forward, rows)
            _draw_map(forward, part, layer, expected, rows, "expected", title)
    if expected is not None:
        st.caption(f"Expected after training: {task.expectation}")
    for note in forward.notes:
        st.text(note)


def _expected_rows(task: Task, forward: ForwardPass, rows: tuple[Token, ...]) -> tuple[Token, ...]:
    """The right answer's tokens, which an untrained model does not write; others are as they are.

    A row after the end of the answer has nothing to expect.
    """
    answer = task.answer(forward.source) if rows == forward.written else ()
    if not answer:
        return rows
    beyond = (NOTHING_EXPECTED,) * (len(rows) - len(answer))
    return (*answer[: len(rows)], *beyond)


def _draw_map(
    forward: ForwardPass,
    part: str,
    layer: int,
    values: Tensor,
    rows: tuple[Token, ...],
    key: str,
    title: str,
) -> None:
    words = forward.part(part).words
    matrix(
        values,
        rows,
        forward.columns(part),
        key=key,
        title=title,
        allowed=forward.mask(part, layer),
        row_name=words.row,
        column_name=words.column,
        sentence=words.cell,
        height=HEIGHT,
        top=1.0,
    )


def _said(score: Tensor, expected: Tensor) -> str:
    """A head's score, and over which rows: nothing is expected after a wrong word."""
    rows, expecting = len(expected), int((expected.sum(dim=-1) > 0).sum())
    of_rows = f" in {expecting} of {rows} rows" if expecting < rows else ""
    return f"{fixed(score.item(), 2)} on the expected pattern{of_rows}"


def _scores(weights: Tensor, expected: Tensor | None) -> Tensor:
    """For each head the weight on the pattern; without one, the mean largest weight of a row."""
    if expected is None:
        return weights.amax(dim=-1).mean(dim=-1)
    return torch.tensor([pattern_score(head, expected) for head in weights])
