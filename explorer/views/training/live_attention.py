"""The attention of the reader's own sentence, through the newest weights of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
import torch
from torch import Tensor

from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.catalog import ModelError, opened_model
from explorer.catalog.opened_model import Opened
from explorer.components import matrix
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch_uncached
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run
from explorer.tasks import Task, pattern_of, pattern_score
from explorer.text import TextError

HEIGHT = 340
LIMIT = 400
BEST = "the best"


@dataclass(frozen=True)
class Look:
    """One sentence through one set of weights, kept until either changes."""

    folder: Path
    text: str
    forward: ForwardPass | None
    fault: str


def watch(run: Run, task: Task) -> None:
    """The sentence, one head's attention, and what one expects to see beside it."""
    _view(task, lambda text: _look(run, text))


def preview(task: Task) -> None:
    """The same through the finished model of this task that ships with the app."""
    try:
        opened = opened_model.open_model(task.name)
    except ModelError:
        st.markdown(f"Press **Start training**. {task.expectation}")
        return
    st.markdown("No run is shown yet. This is what a finished model of this task does.")
    _view(task, lambda text: _read(Path(opened.name), text, opened))


def _view(task: Task, look: Callable[[str], Look | None]) -> None:
    sentence, head = st.columns(2, vertical_alignment="bottom")
    with sentence:
        text = _sentence(task)
    at = look(text)
    if at is None:
        st.caption("The attention appears with the first weights.")
        return
    if at.forward is None:
        say(at.fault)
        return
    part, layer = _site(task, at.forward)
    heads = [BEST, *map(str, range(at.forward.part(part).heads))]
    chosen = head.segmented_control(
        f"Head of layer {layer}",
        heads,
        default=BEST,
        required=True,
        wrap=True,
        key=f"watched_head_{len(heads)}",
        persist_state="session",
    )
    _draw(task, at.forward, part, layer, str(chosen or BEST))


def _sentence(task: Task) -> str:
    """The reader's own sentence, chosen once for every page; another where it cannot be read."""
    own = page_context().choice.text
    why_not = _why_not(task, own)
    if own and not why_not:
        st.caption("Your sentence is watched.")
        return own
    if own:
        st.caption(f"{why_not}, so another is watched.")
    text = st.text_input(
        "Watch the attention of",
        value=task.example,
        max_chars=LIMIT,
        key=f"watched_{task.name}",
        persist_state="session",
    )
    return str(text)


def _why_not(task: Task, text: str) -> str:
    """Why the model of this task cannot read the sentence; nothing where it can."""
    too_long = "Your sentence is longer than this task's model reads"
    if len(text) > LIMIT:
        return too_long
    try:
        ids = task.tokenizer.ids(text)
    except TextError:
        return too_long
    if task.tokenizer.unk_id in ids:
        return "Not all of your sentence is in this task's vocabulary"
    return too_long if len(ids) > task.model.max_len else ""


def _look(run: Run, text: str) -> Look | None:
    """Read anew only when the weights or the sentence changed."""
    kept = st.session_state.get("_look")
    look: Look | None = None
    for _ in range(2):  # the newest weights may be replaced between the two lines
        folder = run.latest()
        if folder is None:
            return None
        if isinstance(kept, Look) and (kept.folder, kept.text) == (folder, text):
            return kept
        try:
            opened = open_folder(folder)
        except ModelError as error:
            look = Look(folder, text, None, str(error))
            continue
        kept = st.session_state["_look"] = _read(folder, text, opened)
        return kept
    return look


def _read(folder: Path, text: str, opened: Opened) -> Look:
    try:
        return Look(folder, text, run_batch_uncached(opened, (text,))[0], "")
    except ForwardPassError as error:
        return Look(folder, text, None, str(error))


def _site(task: Task, forward: ForwardPass) -> tuple[str, int]:
    """Where the task's pattern is to be seen; else the last layer of the last attention."""
    stack, _, rest = task.pattern_site.partition(".")
    layer, _, attention = rest.partition(".")
    for part in forward.parts:
        if part.name == f"{stack}.{attention}" and layer.isdecimal():
            return part.name, min(int(layer), part.layers - 1)
    return forward.parts[-1].name, forward.parts[-1].layers - 1


def _draw(task: Task, forward: ForwardPass, part: str, layer: int, chosen: str) -> None:
    weights = forward.all_weights(part)[layer]
    written = forward.target if forward.source else ()
    expected = pattern_of(task, forward.tokens, written, weights.shape[1:])
    scores = _scores(weights, expected)
    head = int(scores.argmax()) if chosen == BEST else min(int(chosen), len(weights) - 1)
    seen, hoped = st.columns(2)
    with seen:
        said = f"**Layer {layer}, head {head}**"
        st.markdown(f"{said} · {scores[head]:.2f} on the pattern" if expected is not None else said)
        _matrix(forward, part, layer, weights[head], "watched")
    with hoped:
        st.markdown("**What one expects**")
        if expected is None:
            st.markdown(task.expectation)
        else:
            _matrix(forward, part, layer, expected, "expected")
    if expected is not None:
        st.caption(task.expectation)
    for note in forward.notes:
        st.text(note)


def _matrix(forward: ForwardPass, part: str, layer: int, values: Tensor, key: str) -> None:
    words = forward.part(part).words
    matrix(
        values,
        forward.rows(part),
        forward.columns(part),
        key=key,
        allowed=forward.mask(part, layer),
        row_name=words.row,
        column_name=words.column,
        sentence=words.cell,
        height=HEIGHT,
        top=1.0,
    )


def _scores(weights: Tensor, expected: Tensor | None) -> Tensor:
    """How well each head does what is expected; how decided it is, where nothing is."""
    if expected is None:
        return weights.amax(dim=-1).mean(dim=-1)
    return torch.tensor([pattern_score(head, expected) for head in weights])
