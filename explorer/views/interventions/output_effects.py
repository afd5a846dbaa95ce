"""What the interventions do to the output: probabilities before and after, and the numbers."""

import streamlit as st
from torch import Tensor

from explorer.analysis import output_change
from explorer.analysis.output_change import ChangeOverText, last_stream, logits_at
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.open_model import OpenModel
from explorer.charts.bars import before_after_bars
from explorer.components.chart import chart
from explorer.inference.answers import option_name
from explorer.inference.edited_pass import EditedPass, run_edited
from explorer.inference.results_cache import kept
from explorer.interventions.edits import EditHistory
from explorer.text.number_format import three
from explorer.views.shared.edit_history import draw_answers
from explorer.views.shared.tables import facts

NO_HEAD = "This model has no output head, so there is no output to compare."

BARS_HEIGHT = 330
ORIGINAL = "Original pass"


def choose_baseline(context: PageContext, history: EditHistory) -> EditedPass:
    """What the result is compared with: the original pass, or the pass after earlier steps."""
    steps = [ORIGINAL, *(f"After intervention {n}" for n in range(1, history.done))]
    if len(steps) == 1:
        return EditedPass(context.forward)
    picked = steps.index(one_of("against", steps, as_list=len(steps) > 2))
    return run_edited(context.opened, context.forward, history.active[:picked])


def draw_output_change(
    context: PageContext, before: EditedPass, after: EditedPass, position: int
) -> int | None:
    """Probabilities as pairs of bars, then every number of the change.

    Gives the token or class whose logit is tracked; None without an output head.
    """
    opened = context.opened
    if opened.config.head == "none":
        _draw_stream_change(before, after)
        return None
    if opened.config.kind == "encoder-decoder":
        draw_answers(opened, before, after)
    old, new = (logits_at(each.forward.trace, position) for each in (before, after))
    found = output_change.likeliest(old, new)
    labels = [option_name(opened, option) for option in found]
    probabilities = (each.double().softmax(-1)[found].tolist() for each in (old, new))
    bars = before_after_bars(labels, *probabilities)
    with st.container(key="probabilities"):
        title = "Probabilities before and after"
        chart(bars, height=BARS_HEIGHT, key="before_after", title=title)
    names = [f"{label} ({option})" for label, option in zip(labels, found, strict=True)]
    label = "Tracked token" if output_change.has_words(opened.config) else "Tracked class"
    tracked = found[names.index(one_of("watched", names, label=label, as_list=True))]
    was, now = float(old[tracked]), float(new[tracked])
    facts(
        [
            ("KL divergence", _nats(output_change.kl(old, new))),
            *_facts_over_text(opened, before, after),
            ("tracked logit before", three(was)),
            ("tracked logit after", three(now)),
            ("change in the tracked logit", signed(now - was)),
        ]
    )
    return tracked


def _facts_over_text(
    opened: OpenModel, before: EditedPass, after: EditedPass
) -> list[tuple[str, str]]:
    """KL over all positions, and the loss where the model predicts next tokens; made once."""
    if not output_change.has_words(opened.config):
        return []

    def measure() -> ChangeOverText:
        both = before.forward, after.forward
        ids = both[0].predicted_ids, both[1].predicted_ids
        return output_change.over_text(both[0].trace, both[1].trace, ids)

    forward = before.forward
    key = ("over text", forward.text, forward.pair, before.applied, after.applied)
    found = kept(opened, key, measure, lambda made: made.kl.nbytes)
    most = int(found.kl.argmax())
    rows = [
        ("mean KL over positions", _nats(found.kl.mean())),
        (f"largest KL, at position {most}", _nats(found.kl[most])),
    ]
    if found.loss is not None:
        old, new = found.loss
        rows += [
            ("loss per token before", f"{three(old)} nats"),
            ("loss per token after", f"{three(new)} nats"),
            ("change in loss per token", f"{signed(new - old)} nats"),
        ]
    return rows


def _nats(value: Tensor) -> str:
    return f"{three(float(value))} nats"


def signed(value: float) -> str:
    """Three digits, an increase with its plus."""
    return f"+{three(value)}" if value > 0 else three(value)


def _draw_stream_change(before: EditedPass, after: EditedPass) -> None:
    """A model without a head gives vectors: how far they moved."""
    old, new = (last_stream(each.forward.trace)[0] for each in (before, after))
    size, moved = float(old.norm()), float((new - old).norm())
    st.text("This model has no output head, so its last residual stream is compared instead.")
    facts(
        [
            ("norm of the change", three(moved)),
            ("relative to the residual stream", three(moved / size) if size else "no value"),
        ]
    )


def base_words(edited: EditedPass) -> str:
    """Which pass the many passes differ from."""
    return "in the pass with your interventions" if edited.applied else "in the original pass"
