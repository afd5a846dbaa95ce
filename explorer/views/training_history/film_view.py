"""The film: one head, all heads and the answer at every step that was kept of a training."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

import streamlit as st
from torch import Tensor

from explorer.analysis.head_formation import NOTICEABLE, SHARE, Formation, formation_of, formations
from explorer.analysis.information_flow import is_computable
from explorer.analysis.thumbnails import thumbnails_of
from explorer.app import address, streamlit_patches, widget_state
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title, map_title
from explorer.charts.training_curves import thinned
from explorer.components.film import Curve, Moment, film
from explorer.components.film import encode as encode_film
from explorer.components.fragment import fragment
from explorer.components.mounting import filmed
from explorer.components.pass_map import encode, pass_map
from explorer.components.picker import EveryHead, grid
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.runs.run import Run
from explorer.runs.spec import RunError
from explorer.text.number_format import three
from explorer.views.overview.pass_picture import first_answer, picture_of
from explorer.views.overview.pinned_parts import LEAST_USUAL, MapSelection, choice_of
from explorer.views.shared import widgets
from explorer.views.shared.map_pair import MapSide, draw_map_pair
from explorer.views.shared.tables import table
from explorer.views.training.run_words import first_words, progress_words
from explorer.views.training_history.moments import EXPECTED, History, PassAtStep, opened_at

MOST_HEADS_NAMED = 3
VIEW, TITLE = "history_view", "Two moments"
FIRST, SECOND = "first_step", "second_step"
STEP_WIDTH = 120
MAP_HEIGHT = 250
FILM, STEP = "film", "film_step"
PASS, LAYER, AROUND = "film_pass", 64, 260
MOST_FILM_BYTES = 16_000_000
"""Of all frames together; beyond, no weights of all heads are sent, only their thumbnails."""
MOST_FILM_TOKENS = 128
"""Of a sentence: the browser has the maps of all frames."""
MOST_FILM_POINTS = 200
TOO_LONG_FOR_FILM = (
    "A film shows at most {most} tokens, and this sentence has {found:,}: shorten it, or compare "
    "two moments."
)
EVERY = 1.0
"""Seconds between two looks into the folder of a run that trains."""


def draw_two_moments(context: PageContext, history: History) -> None:
    """Both maps on one scale, and the difference around zero."""
    named = {str(each.step): each for each in history.passes}
    names = [*named]
    with st.container(horizontal=True):
        first = one_of(FIRST, names, names[0], width=STEP_WIDTH, as_list=True)
        second = one_of(SECOND, names, names[-1], width=STEP_WIDTH, as_list=True)
    at, title = context.choice, history.run.title
    before, after = (
        MapSide(f"Step {one.step:,}", one.forward, at.part, at.layer, at.head)
        for one in (named[first], named[second])
    )
    top = max(float(before.values.max()), float(after.values.max())) or 1.0
    keys = "moment_first", "moment_second"
    draw_map_pair(before, after, top, models=(title, title), keys=keys)


def is_too_long(forward: ForwardPass) -> bool:
    """Whether no film is made of this, which the page then says."""
    longest = max(len(forward.source), len(forward.target))
    if longest > MOST_FILM_TOKENS:
        st.text(TOO_LONG_FOR_FILM.format(most=MOST_FILM_TOKENS, found=longest))
    return longest > MOST_FILM_TOKENS


def draw_film(context: PageContext, history: History) -> None:
    """The curves with the slider, and under them what changes with it."""
    if is_too_long(history.last):  # the last step may write more than the one on screen
        return
    at, name = context.choice, history.run.title
    scores = history.scores(at.part)
    shown = _formation_of_head(context, scores)
    exact = _bytes(context, history) <= MOST_FILM_BYTES
    name_of_score = f"{shown.score}, layer {shown.layer}, head {shown.head}"
    curves = (*_curves(history), Curve(name_of_score, tuple(shown.scores), share=True))
    steps = [each.step for each in history.passes]
    usual = at.training_step if at.training_step in steps else steps[-1]
    _check_step(steps, usual)
    message = _encoded(context, history, shown, curves, exact, steps.index(usual))
    film(
        message,
        key=FILM,
        title=f"Training of {name}",
        curves=curves,
        count=len(steps),
        on_compare=partial(_compare, steps),
    )
    one, every = st.columns(2, gap="large")
    with one:
        title = head_title(name, at.part, at.layer, at.head)
        st.markdown(widgets.bold_title(title))
        _draw_map(context, history, history.passes[-1])
    with every:
        st.markdown(widgets.bold_title(map_title(name, at.part, "All heads")))
        _draw_heads(context, history, history.passes[-1], exact)
    st.markdown(widgets.bold_title(f"{name} · The forward pass"))
    _draw_pass(context, history, history.passes[-1])
    st.caption(_what_is_drawn(history, shown, exact))
    widgets.notes(history.last.notes)


def _check_step(steps: Sequence[int], usual: int) -> None:
    """The browser reads the step from the address and writes it; a wrong one is said here, once."""
    asked = address.value_of(STEP)
    if asked != widget_state.get(STEP, "") and asked not in map(str, steps):
        usual_step = f"step {usual:,}"
        say(address.invalid_option("Step of the film", asked, usual_step, "in this training"))
    widget_state.put(STEP, asked)


def _compare(steps: Sequence[int], at: int) -> None:
    """Show this moment and the last one side by side, or the first beside the last."""
    first = steps[at] if at < len(steps) - 1 else steps[0]
    widget_state.put(VIEW, TITLE)
    with streamlit_patches.one_entry_in_history():
        for name, step in ((FIRST, first), (SECOND, steps[-1])):
            widget_state.forget(name)
            address.write(name, str(step))


def _formation_of_head(
    context: PageContext, scores: Mapping[int, Mapping[str, Tensor]]
) -> Formation:
    """Of the chosen head: by the expected pattern, else by the score that ends highest."""
    at, last = context.choice, scores[max(scores)]
    if EXPECTED in last:
        return formation_of(scores, EXPECTED, at.layer, at.head)
    ends = {name: float(each[at.layer, at.head].nan_to_num(-1.0)) for name, each in last.items()}
    return formation_of(scores, max(ends, key=lambda name: ends[name]), at.layer, at.head)


def _encoded(
    context: PageContext,
    history: History,
    shown: Formation,
    curves: tuple[Curve, ...],
    exact: bool,
    first: int,
) -> bytes:
    """The film as it is sent, which begins with its moment `first`.

    Its frames are kept, and so is the whole while nothing changes.
    """
    at, name = context.choice, history.run.title
    steps = [each.step for each in history.passes]
    numbers = tuple(_numbers(history, each, shown) for each in history.passes)
    is_noticeable, formed = shown.final >= NOTICEABLE, shown.step
    marks = ((formed, "the head forms"),) if is_noticeable and formed is not None else ()
    frames = [(FILM, key, name, at.part, at.layer, at.head, exact) for key in history.keys]

    def make() -> bytes:
        messages = [
            kept(history.opened, frame, partial(_messages, context, history, one, exact))
            for frame, one in zip(frames, history.passes, strict=True)
        ]
        moments = [Moment(*each) for each in zip(steps, messages, numbers, strict=True)]
        return encode_film(moments, first, FILM, name, STEP, curves, marks)

    whole = (*frames, first, numbers, curves, marks)
    return kept(history.opened, whole, make)


def _messages(
    context: PageContext, history: History, one: PassAtStep, exact: bool
) -> dict[str, bytes]:
    """One frame: what every view that changes shows."""
    with filmed() as messages:
        _draw_map(context, history, one)
        _draw_heads(context, history, one, exact)
        _draw_pass(context, history, one)
    return messages


def _numbers(history: History, one: PassAtStep, shown: Formation) -> tuple[tuple[str, str], ...]:
    """What stands under the slider: the answer, the score, and what was measured at this step."""
    score = f"Score, {shown.score}", three(dict(shown.scores)[one.step])
    row = next((row for row in history.run.metrics().rows if row.step == one.step), None)
    measured = (("Loss", row.loss), ("Held out", row.value)) if row else ()
    return one.says, score, *((name, three(x)) for name, x in measured if x is not None)


def _draw_map(context: PageContext, history: History, one: PassAtStep) -> None:
    at = context.choice
    title = head_title(history.run.title, at.part, at.layer, at.head)
    widgets.draw_map(one.forward, at.part, at.layer, at.head, "film_map", title, MAP_HEIGHT)


def _draw_heads(context: PageContext, history: History, one: PassAtStep, exact: bool) -> None:
    at, name = context.choice, history.run.title
    small = thumbnails_of(one.forward, at.part)
    every = None
    if exact and small.digest:
        of = f"{name} {at.part} {one.step} {small.digest}"
        every = EveryHead(of, (map_title(name, at.part, "Layer "), ", head "))
    grid(
        small,
        selected=(at.layer, at.head),
        key="film_heads",
        title=map_title(name, at.part, "All heads"),
        on_pick=choose_head,
        height=MAP_HEIGHT,
        every=every,
    )


def _draw_pass(context: PageContext, history: History, one: PassAtStep) -> None:
    """The Overview's picture of the pass, of the first answer; nothing where there is none."""
    forward, opened = one.forward, opened_at(context.opened, one.folder)
    if not is_computable(forward):
        return
    picture, usual = picture_of(opened, forward), first_answer(opened, forward)
    title = f"{history.run.title}: the forward pass over “{forward.text}”"
    layers = max(len(blocks) for blocks in picture.flow.stacks.values())
    pass_map(
        encode(picture, PASS, title, usual, ()),
        key=PASS,
        title=title,
        choice=choice_of(MapSelection(usual, None, LEAST_USUAL, None), context, picture),
        height=AROUND + LAYER * layers,
        on_chosen=lambda value: None,
        on_go=lambda value: None,
        appends=(),
        on_append=lambda option: None,
        figures=lambda: (),
    )


def _bytes(context: PageContext, history: History) -> int:
    """What the weights of all heads take in single precision, of all frames."""
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


def _what_is_drawn(history: History, shown: Formation, exact: bool) -> str:
    kept = len(history.passes)
    words = [
        f"{kept} snapshots of the training, each with its own pass over your sentence; the steps "
        "are on a logarithmic scale. Curves of many points are drawn as means."
    ]
    if not exact:
        words.append("Of all heads only the thumbnails are sent: choose a head to see its weights.")
    if history.last.source and history.last.target:
        words.append("At every step the decoder reads the answer of the trained model.")
    if shown.score == EXPECTED and history.task is not None:
        words.append(f"Expected after training: {history.task.expectation}")
    return " ".join(words)


def follow_run(run: Run, shown: int) -> None:
    """Say how far the run is while it trains; the page is drawn again once it has more to show.

    `shown` is how many of its snapshots are on screen.
    """
    with suppress(RunError):  # the film is there, whatever has become of the rest of the run
        if run.status().is_active:
            fragment(every=EVERY)(_draw_progress)(run, shown)


def _draw_progress(run: Run, shown: int) -> None:
    with suppress(RunError):
        status = run.status()
        if not status.is_active or len(run.snapshots()) != shown:
            st.rerun()
        st.progress(status.share, text=progress_words(status))


def draw_formations(context: PageContext, history: History) -> None:
    """Every head that does something in the end, what that is, and when it formed."""
    heads = sorted(
        formations(history.scores(context.choice.part)),
        key=lambda head: (head.step is None, head.step or 0, head.layer, head.head),
    )
    if not heads:
        st.text(f"No head of this attention has a score of {NOTICEABLE} or more in the end.")
        return
    names = [f"layer {head.layer}, head {head.head}" for head in heads]
    if (step := heads[0].step) is not None:
        first = [name for name, head in zip(names, heads, strict=True) if head.step == step]
        named = first_words(first, MOST_HEADS_NAMED, " and ")
        st.text(f"First to form, by step {step:,}: {named}.")
    table(
        {
            "head": names,
            "highest score": [head.score for head in heads],
            "in the end": [three(head.final) for head in heads],
            "forms at step": [head.step for head in heads],
        },
        right=["in the end"],
        numbers={"forms at step": "localized"},
        width="stretch",
    )
    st.caption(
        "Each head is judged by its highest score after training, if that is at least "
        f"{NOTICEABLE}. It forms at the first snapshot from which this score stays at or above "
        f"{SHARE:.0%} of its final value. No step is given if it does so from the start, or at the "
        "last snapshot only."
    )
