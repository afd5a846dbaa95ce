"""The film: one head, all heads and the answer at every snapshot of a training run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

import streamlit as st
from torch import Tensor

from explorer.analysis.head_formation import NOTICEABLE, SHARE, Formation, formation_of, formations
from explorer.analysis.information_flow import first_answer, is_computable
from explorer.analysis.thumbnails import thumbnails_of
from explorer.app import address, streamlit_patches, widget_state
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title, map_title
from explorer.charts.figure_data import WINDOW
from explorer.charts.training_curves import thinned
from explorer.components.film import Curve, Moment, film
from explorer.components.film import encode as encode_film
from explorer.components.mounting import filmed
from explorer.components.pass_map import encode, pass_map
from explorer.components.picker import EveryHead, grid
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.runs.cluster import is_active, status_of
from explorer.runs.run import Run
from explorer.runs.spec import RunError
from explorer.text.number_format import three
from explorer.views.overview.map_choices import LEAST_USUAL, MapSelection, choice_of
from explorer.views.overview.pass_picture import picture_of
from explorer.views.shared import widgets
from explorer.views.shared.map_pair import MapSide, draw_map_pair
from explorer.views.shared.tables import table
from explorer.views.training.live_run import EVERY, draw_followed
from explorer.views.training.run_words import progress_words
from explorer.views.training_history.moments import EXPECTED, History, PassAtStep, opened_at

MOST_MAPS = 3
"""So many of the heads that form have a map."""
VIEW, TITLE = "history_view", "Two moments"
FIRST, SECOND = "first_step", "second_step"
STEP_WIDTH = 220
FILM, STEP = "film", "film_step"
WHOLE_MAP = "film_pass"
MOST_FILM_BYTES = 16_000_000
"""Of all frames together; a larger film has the thumbnails of all heads, not their weights."""
MOST_FILM_TOKENS = 128
"""Of a sentence: the browser has the maps of all frames."""
MOST_FILM_POINTS = 200


def draw_two_moments(context: PageContext, history: History) -> None:
    """Draw both maps on one scale, and their difference around zero."""
    by_step = {str(moment.step): moment for moment in history.passes}
    steps = [*by_step]
    with st.container(horizontal=True):
        first = one_of(FIRST, steps, steps[0], width=STEP_WIDTH, as_list=True)
        second = one_of(SECOND, steps, steps[-1], width=STEP_WIDTH, as_list=True)
    at, title = context.choice, history.run.title
    before, after = (
        MapSide(f"Step {moment.step:,}", title, moment.forward, *at.place)
        for moment in (by_step[first], by_step[second])
    )
    top = max(float(before.values.max()), float(after.values.max())) or 1.0
    draw_map_pair(before, after, top, keys=("moment_first", "moment_second"))


def is_too_long(forward: ForwardPass) -> bool:
    """Whether the sentence has too many tokens for a film; if so, say it."""
    length = max(len(forward.source), len(forward.target))
    if length <= MOST_FILM_TOKENS:
        return False
    st.text(
        f"A film shows at most {MOST_FILM_TOKENS} tokens, and this sentence has {length:,}: "
        "shorten it, or compare two moments."
    )
    return True


def draw_film(context: PageContext, history: History) -> None:
    """Draw the curves with the slider, and under them the views that follow it."""
    if is_too_long(history.last):  # the last step's answer may be longer than that on screen
        return
    at, name = context.choice, history.run.title
    formation = _formation_of_head(context, history.scores(at.part))
    exact = _bytes(context, history) <= MOST_FILM_BYTES
    name_of_score = f"{formation.score}, layer {formation.layer}, head {formation.head}"
    curves = (*_curves(history), Curve(name_of_score, tuple(formation.scores), share=True))
    steps = [moment.step for moment in history.passes]
    usual = _forms_at(formation, steps[0])
    with suppress(RunError):
        usual = steps[-1] if is_active(history.run) else usual
    usual = at.training_step if at.training_step in steps else usual
    _check_step(steps, usual)
    left, right = st.columns([4, 5])
    with left:
        film(
            _encoded(context, history, formation, curves, exact, steps.index(usual)),
            key=FILM,
            title=f"Training of {name}",
            curves=curves,
            count=len(steps),
            on_compare=partial(_compare, steps),
        )
        _draw_heads(context, history, history.passes[-1], exact)
    with right:
        _draw_map(context, history, history.passes[-1])
    st.space("medium")  # so that this begins below the window, with its heading
    st.markdown("**The whole forward pass at this step**")
    _draw_pass(context, history, history.passes[-1])
    st.caption(_caption(history, formation, exact))
    widgets.notes(history.last.notes)


def _forms_at(formation: Formation, otherwise: int) -> int:
    """The step at which the head forms, if its score is noticeable in the end."""
    step = formation.step
    return otherwise if step is None or formation.final < NOTICEABLE else step


def _check_step(steps: Sequence[int], usual: int) -> None:
    """Say, once, that the step in the address does not exist; the browser reads and writes it."""
    step = address.value_of(STEP)
    if step != widget_state.get(STEP, "") and step not in map(str, steps):
        usual_step = f"step {usual:,}"
        say(address.invalid_option("Step of the film", step, usual_step, "in this training"))
    widget_state.put(STEP, step)


def _compare(steps: Sequence[int], at: int) -> None:
    """Show this moment beside the last one; the last itself beside the first."""
    first = steps[at] if at < len(steps) - 1 else steps[0]
    widget_state.put(VIEW, TITLE)
    with streamlit_patches.one_entry_in_history():
        for name, step in ((FIRST, first), (SECOND, steps[-1])):
            widget_state.forget(name)
            address.write(name, str(step))


def _formation_of_head(
    context: PageContext, scores: Mapping[int, Mapping[str, Tensor]]
) -> Formation:
    """When the chosen head forms, by the expected pattern, else by its highest final score."""
    at, last = context.choice, scores[max(scores)]
    if EXPECTED in last:
        return formation_of(scores, EXPECTED, at.layer, at.head)
    ends = {name: float(score[at.layer, at.head].nan_to_num(-1.0)) for name, score in last.items()}
    return formation_of(scores, max(ends, key=lambda name: ends[name]), at.layer, at.head)


def _encoded(
    context: PageContext,
    history: History,
    formation: Formation,
    curves: tuple[Curve, ...],
    exact: bool,
    first: int,
) -> bytes:
    """The message of the film, which begins with its moment `first`.

    Its frames are cached, and so is the message while nothing changes.
    """
    at, name = context.choice, history.run.title
    steps = [moment.step for moment in history.passes]
    numbers = tuple(_numbers(history, moment, formation) for moment in history.passes)
    step = _forms_at(formation, -1)
    marks = ((step, "the head forms"),) if step >= 0 else ()
    frames = [(FILM, key, name, at.part, at.layer, at.head, exact) for key in history.keys]

    def make() -> bytes:
        messages = [
            cached(history.opened, frame, partial(_messages, context, history, moment, exact))
            for frame, moment in zip(frames, history.passes, strict=True)
        ]
        moments = list(map(Moment, steps, messages, numbers))
        return encode_film(moments, first, FILM, name, STEP, curves, marks)

    return cached(history.opened, (*frames, first, numbers, curves, marks), make)


def _messages(
    context: PageContext, history: History, moment: PassAtStep, exact: bool
) -> dict[str, bytes]:
    """One frame: the message of every view that follows the slider."""
    with filmed() as messages:
        _draw_map(context, history, moment)
        _draw_heads(context, history, moment, exact)
        _draw_pass(context, history, moment)
    return messages


def _numbers(
    history: History, moment: PassAtStep, formation: Formation
) -> tuple[tuple[str, str], ...]:
    """The numbers under the slider: the answer, the score, and the metrics of this step."""
    name = formation.score.capitalize()
    name = f"Weight on the {EXPECTED}" if formation.score == EXPECTED else name
    score = name, three(dict(formation.scores)[moment.step])
    row = next((row for row in history.run.metrics().rows if row.step == moment.step), None)
    metrics = (("Loss", row.loss), ("Held out", row.value)) if row else ()
    return moment.output, score, *((name, three(x)) for name, x in metrics if x is not None)


def _draw_map(context: PageContext, history: History, moment: PassAtStep) -> None:
    at = context.choice
    title = head_title(history.run.title, at.part, at.layer, at.head)
    widgets.draw_map(moment.forward, at.part, at.layer, at.head, "film_map", title, WINDOW)


def _draw_heads(context: PageContext, history: History, moment: PassAtStep, exact: bool) -> None:
    at, name = context.choice, history.run.title
    small = thumbnails_of(moment.forward, at.part)
    every = None
    if exact and small.digest:
        of = f"{name} {at.part} {moment.step} {small.digest}"
        every = EveryHead(of, (map_title(name, at.part, "Layer "), ", head "))
    grid(
        small,
        selected=(at.layer, at.head),
        key="film_heads",
        title=map_title(name, at.part, "All heads"),
        on_pick=choose_head,
        every=every,
    )


def _draw_pass(context: PageContext, history: History, moment: PassAtStep) -> None:
    """Draw the Overview's picture of the pass, for the first answer; nothing where it has none."""
    forward, opened = moment.forward, opened_at(context.opened, moment.folder)
    if not is_computable(forward):
        return
    picture, usual = picture_of(opened, forward), first_answer(opened, forward)
    title = f"{history.run.title}: the forward pass over “{forward.text}”"
    pass_map(
        encode(picture, WHOLE_MAP, title, usual, ()),
        key=WHOLE_MAP,
        title=title,
        choice=choice_of(MapSelection(usual, None, LEAST_USUAL, None), context, picture),
        on_chosen=lambda value: None,
        on_go=lambda value: None,
    )


def _bytes(context: PageContext, history: History) -> int:
    """The size of all heads' weights in all frames, in single precision."""
    part = history.last.part(context.choice.part)
    cells = len(history.last.rows(part.name)) * len(history.last.columns(part.name))
    return 4 * len(history.passes) * part.layers * part.heads * cells


def _curves(history: History) -> list[Curve]:
    metrics, name = history.run.metrics(), ""
    with suppress(RunError):
        name = history.run.status().measure
    name = name or "held-out metric"
    is_share = history.task is not None and history.task.higher_is_better
    losses, values = (
        tuple(thinned(points, MOST_FILM_POINTS)) for points in (metrics.losses(), metrics.values())
    )
    curves = [Curve("training loss", losses), Curve(f"{name}, held out", values, share=is_share)]
    return [curve for curve in curves if curve.points]


def _caption(history: History, formation: Formation, exact: bool) -> str:
    count = len(history.passes)
    words = [
        f"{count} snapshots of the training, each with its own pass over your sentence; the steps "
        "are on a logarithmic scale. Curves of many points are drawn as means."
    ]
    if not exact:
        words.append("Only the thumbnails of all heads are sent: choose a head to see its weights.")
    if history.last.source and history.last.target:
        words.append("At every step the decoder reads the answer of the trained model.")
    if formation.score == EXPECTED and history.task is not None:
        words.append(f"Expected after training: {history.task.expectation}")
    return " ".join(words)


def follow_run(run: Run) -> None:
    """Show the progress of a run that trains; the page is drawn again for a new snapshot."""
    with suppress(RunError):  # the film can be shown even if the rest of the run cannot be read
        if is_active(run):
            draw_followed(_draw_progress, [run], EVERY, more=lambda: len(run.snapshots()))


def _draw_progress(runs: Sequence[Run]) -> None:
    with suppress(RunError):
        status = status_of(runs[0])
        st.progress(status.share, text=progress_words(status))


def draw_formations(context: PageContext, history: History) -> None:
    """Draw the first heads to form at their steps; of every such head, its score and its step."""
    part = context.choice.part
    heads = sorted(
        formations(history.scores(part)),
        key=lambda head: (head.step is None, head.step or 0, head.layer, head.head),
    )
    if not heads:
        st.text(f"No head of this attention has a score of {NOTICEABLE} or more after training.")
        return
    names = [f"layer {head.layer}, head {head.head}" for head in heads]
    moments, expected = {moment.step: moment for moment in history.passes}, history.expected(part)
    ghost = None if expected is None else expected > 0
    for place, name, head in zip(st.columns(MOST_MAPS), names, heads, strict=False):
        step = history.passes[-1].step if head.step is None else head.step
        where = part, head.layer, head.head
        when = "after training" if head.step is None else f"step {step:,}"
        heading = f"{name.capitalize()} · {when}"
        title = f"{head_title(history.run.title, *where)} at step {step:,}"
        how = f"formed_{head.layer}_{head.head}", title, WINDOW
        with place:
            widgets.draw_map(moments[step].forward, *where, *how, ghost=ghost, heading=heading)
    table(
        {
            "head": names,
            "pattern": [head.score.removesuffix(" score") for head in heads],
            "score after training": [three(head.final) for head in heads],
            "forms at step": [head.step for head in heads],
        },
        right=["score after training"],
        numbers={"forms at step": "localized"},
        width="stretch",
    )
    frames = "" if expected is None else "Frames mark the pattern that the task needs. "
    st.caption(
        f"{frames}A score is the mean weight on a pattern. Each head is judged by its highest "
        f"score after training, if that is at least {NOTICEABLE}. It forms at the first snapshot "
        f"from which this score stays at or above {SHARE:.0%} of its final value. No step is given "
        "if it does so from the start, or at the last snapshot only."
    )
