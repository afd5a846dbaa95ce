"""A guess among three patterns of what the heads will attend to, then the answer."""

import random

import streamlit as st
import torch
from torch import Tensor

from explorer.app.context import PageContext
from explorer.app.session import state_of
from explorer.catalog.attention_parts import head_title
from explorer.tasks import pattern_score
from explorer.text.number_format import fixed
from explorer.views.shared import widgets
from explorer.views.training_history.moments import History

HEIGHT, LARGE = 260, 400
Pattern = tuple[str, Tensor]


class Guesses(dict[tuple[str, str, str], int]):
    """The guessed pattern for a run, an attention and a sentence."""


def draw_guess(context: PageContext, history: History) -> None:
    """Draw three patterns to choose from; after the guess, the heads and the expected pattern."""
    part = context.choice.part
    expected = history.expected(part)
    if expected is None:
        st.text(
            "The task of this run has no expected pattern for this attention. Choose a run of a "
            "task such as translation, reverse or induction, and its last kind of attention."
        )
        return
    options = _options(expected)
    question = history.run.name, part, history.last.text
    guesses = state_of(Guesses)
    if question not in guesses:
        st.markdown("**Which pattern will the heads show after training?**")
        columns = st.columns(len(options))
        for at, (_, pattern) in enumerate(options):
            with columns[at]:
                # Zeros and ones, since the expected pattern's own weights would give it away.
                weights, title = (pattern > 0).float(), f"Pattern {at + 1}"
                widgets.draw_weights(history.last, part, weights, f"pattern_{at}", title, HEIGHT)
                args, key = (question, at), f"guess_{at}"
                st.button("This one", key=key, on_click=_answer, args=args, width="stretch")
        return
    _draw_answer(context, history, expected, options, guesses[question])
    st.button("Guess again", key="guess_again", on_click=_answer, args=(question, None))


def _answer(question: tuple[str, str, str], guess: int | None) -> None:
    """In a callback: store the guess, or forget it."""
    if guess is None:
        state_of(Guesses).pop(question, None)
    else:
        state_of(Guesses)[question] = guess


def _draw_answer(
    context: PageContext, history: History, expected: Tensor, options: list[Pattern], guess: int
) -> None:
    right = next(at for at, (name, _) in enumerate(options) if name == "expected")
    verdict = "Right." if guess == right else f"Not quite: you chose {options[guess][0]}."
    st.markdown(
        f"**{verdict}** Frames mark the expected pattern; each map shows the best head at its step."
    )
    for column, at in zip(st.columns(2), (0, -1), strict=True):
        with column:
            moment, part = history.passes[at], context.choice.part
            scores = pattern_score(moment.forward.all_weights(part), expected)
            layer, head = divmod(int(scores.argmax()), scores.shape[1])
            name = head_title(history.run.title, part, layer, head)
            step, score = f"{moment.step:,}", fixed(float(scores[layer, head]), 2)
            st.markdown(f"**Step {step}** · {widgets.bold_title(name)} · {score} on the pattern")
            where = moment.forward, part, layer, head, f"ghost_{moment.step}"
            widgets.draw_map(*where, f"{name} at step {step}", LARGE, ghost=expected > 0)
    if history.task is not None:
        st.caption(f"Expected after training: {history.task.expectation}")


def _options(expected: Tensor) -> list[Pattern]:
    """The expected pattern and two others, shuffled with a seed from its size."""
    rows, columns = expected.shape
    row, last = torch.arange(rows), columns - 1
    keys = {
        "the diagonal": row.clamp(max=last),
        "the anti-diagonal": (last - row).clamp(min=0),
        "the previous token": (row - 1).clamp(0, last),
        "the first token": torch.zeros_like(row),
    }
    others = []
    for name, key in keys.items():
        pattern = torch.nn.functional.one_hot(key, columns)
        agree = ((pattern > 0) & (expected > 0)).sum() / max(1, int((expected > 0).sum()))
        if agree < 0.5:
            others.append((name, pattern.float()))
    options = [("expected", expected), *others[:2]]
    random.Random(rows * 31 + columns).shuffle(options)
    return options
