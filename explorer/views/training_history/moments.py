"""The forward pass of the sentence through every snapshot of a run, cached."""

from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from torch import Tensor

from explorer.analysis.head_metrics import METRICS, join_layers, metrics_by_layer
from explorer.app.choice import snapshots_of
from explorer.app.choosing import choose_model, draw_page_link, show_on_arrival
from explorer.app.context import PageContext
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.run_index import run_of
from explorer.inference.answers import Answer
from explorer.inference.forward_pass import ForwardPass, rerun, run_batch_uncached, run_text
from explorer.inference.generation_limits import longest_answer
from explorer.inference.results_cache import cached
from explorer.runs.run import Run, open_folder
from explorer.runs.spec import RunError
from explorer.tasks import Task, pattern_of, pattern_score
from explorer.text import TextError
from explorer.text.number_format import three
from explorer.text.visible_text import literal
from explorer.views.shared.measurement import measurements
from explorer.views.shared.training_snapshots import identity_of, open_snapshot

EXPECTED = "expected pattern"
FILM_SCORES = ("previous", "first", "itself", "induction", "duplicate", "diagonal", "anti_diagonal")
"""The head metrics that describe what a head attends to."""
FILM_GUESSES = 4
MOST_OFFERED = 6
TOO_LONG_FOR_SCORES = "So many passes of this model take too long: shorten the sentence."


@dataclass(frozen=True, eq=False)
class PassAtStep:
    """The pass with the weights of one step; `answer` is the model's own output for the text.

    At every step, the decoder of an encoder-decoder reads the answer of the last step, so a row
    of a map is the same word at all steps.
    """

    step: int
    folder: Path
    forward: ForwardPass
    answer: Answer

    @property
    def bytes(self) -> int:
        return self.forward.bytes

    @property
    def output(self) -> tuple[str, str]:
        """Its generated text or its predictions, in a line."""
        if not self.answer.guesses:
            return "Writes", self.answer.text or "–"
        guesses = self.answer.guesses[:FILM_GUESSES]
        return "Predicts", " · ".join(f"{g.label} {three(g.score)}" for g in guesses)


@dataclass(frozen=True, eq=False)
class History:
    """A run, and the pass of the sentence at every snapshot of it.

    What is computed from the passes is cached with the model `opened`, under their `keys`, which
    name the contents of the snapshots and the sentence.
    """

    run: Run
    task: Task | None
    passes: tuple[PassAtStep, ...]
    opened: OpenModel
    keys: tuple[Hashable, ...]

    @property
    def last(self) -> ForwardPass:
        return self.passes[-1].forward

    @property
    def origin(self) -> dict[str, str]:
        """The steps, as an export names them; the export of a film has the last one's numbers."""
        first, last = self.passes[0].step, self.passes[-1].step
        words = f"steps {first:,} to {last:,}; the numbers of the film are those of step {last:,}"
        return {"snapshots": words}

    def expected(self, part: str) -> Tensor | None:
        """The task's expected pattern for this attention, (rows, columns), if it has one."""
        if self.task is None or not self.task.pattern_site.endswith(part.partition(".")[2]):
            return None
        last = self.last
        written = last.target if last.source else ()
        shape = len(last.rows(part)), len(last.columns(part))
        return pattern_of(self.task, last.tokens, written, shape)

    def scores(self, part: str) -> Mapping[int, Mapping[str, Tensor]]:
        """For each step, every score of every head of this attention, (layers, heads)."""

        def make() -> Mapping[int, Mapping[str, Tensor]]:
            expected = self.expected(part)
            return {moment.step: _scores(moment.forward, part, expected) for moment in self.passes}

        return cached(self.opened, ("scores at every step", part, self.keys), make)


def history_of(context: PageContext) -> History | None:
    """The history of the chosen model, or None where it takes too long or has not been run yet."""
    entry = context.entry
    snapshots = snapshots_of(entry)
    run = Run(run_of(entry.folder))
    steps, folders = [*snapshots], [*snapshots.values()]
    text, pair = context.choice.text, context.choice.pair
    last, forward = identity_of(folders[-1]), context.forward
    tokens = len(forward.source) + len(forward.target)
    if forward.config.kind == "encoder-decoder":  # it generates its answer, reads it and the last
        tokens = 3 * (len(forward.source) + longest_answer(context.opened))
    keys = [("pass at a step", text, pair, identity_of(folder), last) for folder in folders]
    passes = measurements(
        context.opened,
        "training_history",
        keys,
        lambda at, _: _pass_at(context.opened, steps[at], folders[at], folders[-1], text, pair),
        cost=len(steps) * tokens * context.opened.model.n_parameters,
        doing="The sentence at every step",
        too_long=TOO_LONG_FOR_SCORES,
    )
    if passes is None:
        return None
    task = None
    with suppress(RunError, TextError):
        task = run.task()
    return History(run, task, tuple(passes), context.opened, tuple(keys))


def opened_at(opened: OpenModel, folder: Path) -> OpenModel:
    """The model of a snapshot, cached for this page, where its decoder reads the last's answer."""
    return open_snapshot(opened, folder, "film")


def _pass_at(
    opened: OpenModel, step: int, folder: Path, newest: Path, text: str, pair: str
) -> PassAtStep:
    """The pass of one step; the decoder of an encoder-decoder reads the last step's answer."""
    model = opened_at(opened, folder)
    if model.config.kind != "encoder-decoder" or folder == newest:
        forward = run_text(model, text, pair)
        return PassAtStep(step, folder, forward, forward.answer)
    own = run_batch_uncached(model, (text,), pair)[0]
    last = run_text(opened_at(opened, newest), text, pair)
    forward = rerun(model, last, last.source, last.target, ())
    return PassAtStep(step, folder, replace(forward, notes=own.notes), own.answer)


def _scores(forward: ForwardPass, part: str, expected: Tensor | None) -> dict[str, Tensor]:
    metrics = join_layers([*metrics_by_layer(forward, part)])
    scores = {METRICS[name].title.lower(): metrics.values[name] for name in FILM_SCORES}
    if expected is None:
        return scores
    return {EXPECTED: pattern_score(forward.all_weights(part), expected), **scores}


def draw_no_history(context: PageContext) -> None:
    """Say that the chosen model has no snapshots, and offer runs that have some, or training.

    A reader who comes to the page sees the first of these runs instead.
    """
    runs = [name for name, entry in context.models.items() if snapshots_of(entry)][:MOST_OFFERED]
    if runs:
        show_on_arrival(context.models[runs[0]], context.title)
    more = "These have some:" if runs else "Train one here:"
    st.text(f"This model has no snapshots of its training. {more}")
    with st.container(horizontal=True):
        for name in runs:
            label = literal(context.models[name].title)
            st.button(label, key=f"history_of_{name}", on_click=choose_model, args=(name,))
        draw_page_link("training", "Train the toy translator", task="translation")


def history_code(run: Run, text: str, pair: str, part: str, layer: int, head: int) -> None:
    models = {step: open_folder(folder) for step, folder in run.snapshots()}
    last = run_text(models[max(models)], text, pair)
    for step, opened in models.items():  # the decoder reads the same words at every step
        forward = rerun(opened, last, last.source, last.target, ())
        print(step, forward.weights(part, layer, head))
