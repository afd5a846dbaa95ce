"""What interventions do: the output and a head's maps, before and after."""

from typing import Any

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.output_change import (
    ChangeOverText,
    divergence,
    has_words,
    last_stream,
    likeliest,
    logits_at,
    over_text,
)
from explorer.analysis.query_key import strongest_cell
from explorer.analysis.token_alignment import largest_change
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.opened_model import OpenModel
from explorer.charts.bars import before_after_bars
from explorer.components.chart import chart
from explorer.components.events import Place
from explorer.inference.answers import option_name, score_sentence, score_words
from explorer.inference.edited_pass import EditedPass, edited_answer, run_edited
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    AblateNeuron,
    CutEdge,
    EditHistory,
    HideKey,
    Intervention,
    MaskCell,
)
from explorer.text.number_format import signed, three
from explorer.text.token_labels import label_at, named_at
from explorer.text.visible_text import in_quotes, literal
from explorer.views.shared import pinned, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import draw_answers, edit_button
from explorer.views.shared.map_pair import MapSide, draw_map_pair
from explorer.views.shared.pinned import PinnedCell
from explorer.views.shared.tables import facts
from explorer.views.shared.widgets import choose_output_position

NO_HEAD = "This model has no output head, so there is no output to compare."
NOTHING_YET = (
    "Nothing is changed yet: press the example, or choose a change above. Ablating a head "
    "sets its output to zero, or to its mean over positions."
)

BARS_HEIGHT = 310
ORIGINAL = "Original pass"
ABLATIONS = AblateHead, AblateAttention, AblateMlp, AblateNeuron
ABLATED = " An ablated output changes what later layers read, not the weights of its own layer."


def choose_baseline(context: PageContext, history: EditHistory) -> EditedPass:
    """The pass to compare with: the original pass, or the pass after earlier interventions."""
    steps = [ORIGINAL, *(f"After intervention {n}" for n in range(1, history.done))]
    if len(steps) == 1:
        return EditedPass(context.forward)
    picked = steps.index(one_of("against", steps, as_list=len(steps) > 2, width=300))
    return run_edited(context.opened, context.forward, history.active[:picked])


def draw_output_change(
    context: PageContext,
    before: EditedPass,
    after: EditedPass,
    sentence: DeltaGenerator,
    height: int | str = BARS_HEIGHT,
) -> tuple[int, int | None]:
    """Probabilities as pairs of bars, every number of the change beside them, and a `sentence`.

    Returns the output position, and the token or class whose logit is tracked, None without a head.
    """
    opened = context.opened
    if opened.config.head == "none":
        old, new = (last_stream(edited.forward.trace)[0] for edited in (before, after))
        size, moved = float(old.norm()), float((new - old).norm())
        st.text("This model has no output head, so its last residual stream is compared instead.")
        relative = three(moved / size) if size else "no value"
        facts([("norm of the change", three(moved)), ("relative to the residual stream", relative)])
        return 0, None
    picture, numbers = widgets.side_by_side(6, 5)
    with numbers:
        if opened.config.kind == "encoder-decoder":
            draw_answers(opened, before, after)
        position = choose_output_position(context)
    old, new = (logits_at(edited.forward.trace, position) for edited in (before, after))
    options = likeliest(old, new)
    labels = [option_name(opened, option) for option in options]
    config, words = opened.config, score_words(opened.config)
    first, second = (config.scores(logits.double())[options].tolist() for logits in (old, new))
    bars = before_after_bars(labels, first, second, words.score)
    with picture, st.container(key="probabilities"):
        title = "Values" if words.score == "value" else "Probabilities"
        chart(bars, height=height, key="before_after", title=f"{title} before and after")
        if not has_words(config):
            st.caption(score_sentence(config))
    names = [f"{label} ({option})" for label, option in zip(labels, options, strict=True)]
    label = "Tracked token" if has_words(config) else "Tracked class"
    with numbers:
        tracked = options[names.index(one_of("watched", names, label=label, as_list=True))]
        was, now = float(old[tracked]), float(new[tracked])
        change = f"{three(float(divergence(config, old, new)))} {words.unit}".strip()
        facts(
            [
                (words.divergence, change),
                *_facts_over_text(opened, before, after),
                (f"tracked {words.logit} before", three(was)),
                (f"tracked {words.logit} after", three(now)),
                (f"change in the tracked {words.logit}", signed(now - was)),
            ]
        )
    if after.applied:
        at, where = options.index(tracked), f" at position {position}" * has_words(config)
        of = f"{words.score.capitalize()} of {in_quotes(labels[at])}{where}: {three(first[at])}"
        sentence.text(f"{of} → {three(second[at])}; {words.divergence}: {change}.")
    return position, tracked


def _facts_over_text(
    opened: OpenModel, before: EditedPass, after: EditedPass
) -> list[tuple[str, str]]:
    """KL over all positions, and the loss if the model predicts next tokens; computed once."""
    if not has_words(opened.config):
        return []

    def measure() -> ChangeOverText:
        both = before.forward, after.forward
        ids = both[0].predicted_ids, both[1].predicted_ids
        return over_text(both[0].trace, both[1].trace, ids)

    forward = before.forward
    key = ("over text", *forward.key, before.applied, after.applied)
    change = cached(opened, key, measure, lambda change: change.kl.nbytes)
    most = int(change.kl.argmax())
    rows = [
        ("mean KL over positions", _nats(change.kl.mean())),
        (f"largest KL, at position {most}", _nats(change.kl[most])),
    ]
    if change.loss is not None:
        old, new = change.loss
        rows += [
            ("loss per token before", f"{three(old)} nats"),
            ("loss per token after", f"{three(new)} nats"),
            ("change in loss per token", f"{signed(new - old)} nats"),
        ]
    return rows


def _nats(value: Tensor) -> str:
    return f"{three(float(value))} nats"


def base_words(edited: EditedPass) -> str:
    """The pass that many passes are compared with, in words."""
    return "in the pass with your interventions" if edited.applied else "in the original pass"


def changes_only_output(
    context: PageContext, history: EditHistory, before: EditedPass, after: EditedPass
) -> bool:
    """Whether interventions leave the chosen head's map as it is, so that the output shows them."""
    maps = [edited.forward.weights(*context.choice.place) for edited in (before, after)]
    return bool(history.active) and torch.equal(*maps) and context.opened.config.head != "none"


def draw_example(context: PageContext, history: EditHistory) -> None:
    """Before the first intervention, a button that makes one which changes the map on screen."""
    if history.edits:
        return
    at, forward = context.choice, context.forward
    _, key = strongest_cell(forward, *at.place)
    name = literal(in_quotes(label_at(forward.columns(at.part), key)))
    edit_button(context, HideKey(at.part, at.layer, key), f"Example: mask {name}", "example_edit")


def draw_maps(
    context: PageContext, before: EditedPass, after: EditedPass, position: int, tracked: int | None
) -> Script:
    """Both maps on one scale, and the difference around zero; one map while they are the same pass.

    Returns the code of the maps, of the output at this position, and of its change.
    """
    at, cell = context.choice, pinned.current_pin(context, after.forward)
    place = None if cell.query is None or cell.key is None else (cell.query, cell.key)
    pinning: dict[str, Any] = {"pinned": place, "on_pin": _pin}
    aligned = None
    if before.applied == after.applied:
        figure, actions = widgets.side_by_side(7, 4)
        with figure:
            title, allowed = widgets.head_title(context), after.forward.mask(at.part, at.layer)
            of = after.forward, at.part, after.forward.weights(*at.place)
            widgets.draw_weights(*of, "map_before", title, allowed=allowed, **pinning)
        actions.text(NOTHING_YET)
    else:
        aligned = draw_map_pair(
            MapSide("Before", context.called, before.forward, *at.place),
            MapSide("After", context.called, after.forward, *at.place),
            1.0,
            keys=("map_before", "map_after"),
            title="After − before",
            **pinning,
        )
        actions = st.container()
    with actions:
        _draw_cell_actions(context, after.forward, cell)
    if aligned is not None and not largest_change(aligned.difference):
        changed = set(after.applied) ^ set(before.applied)
        why = ABLATED if any(isinstance(edit, ABLATIONS) for edit in changed) else ""
        st.caption(f"The attention weights of this head are unchanged.{why}")
    lines = script(maps_code, before, after, at.part, at.layer, at.head)
    if tracked is None:
        return lines + script(last_stream_code, before, after)
    lines += script(output_code, before, after, position, tracked)
    if has_words(after.forward.config):
        lines += script(over_text_code, before, after)
    if after.forward.output_tokens:
        lines += script(answers_code, context.opened, before, after)
    return lines


def _pin(place: Place | None) -> None:
    """For the callback of a map, in which every row and column is one token."""
    pinned.pin(PinnedCell() if place is None else PinnedCell(*place))


def _draw_cell_actions(context: PageContext, after: ForwardPass, cell: PinnedCell) -> None:
    """The pinned cell in words, and a button for each intervention on it in the chosen layer."""
    at, query, key = context.choice, cell.query, cell.key
    if query is None or key is None:
        st.caption("Pin a cell: its edge can then be cut, or the cell masked.")
        return
    where = f"layer {at.layer}"
    edits: dict[str, Intervention] = {
        f"Cut this edge in head {at.head}": CutEdge(at.part, at.layer, at.head, query, key),
        f"Cut it in every head of {where}": CutEdge(at.part, at.layer, None, query, key),
        f"Mask this cell in {where}": MaskCell(at.part, at.layer, query, key, False),
        f"Mask the key in {where}": HideKey(at.part, at.layer, key),
    }
    if not after.mask(at.part, at.layer)[query, key]:
        edits = {f"Unmask this cell in {where}": MaskCell(at.part, at.layer, query, key, True)}
    row, column = named_at(after.rows(at.part), query), named_at(after.columns(at.part), key)
    st.text(f"Pinned: {row} attends to {column}")
    with st.container(horizontal=True, key="held_edits"):
        for number, (label, edit) in enumerate(edits.items()):
            edit_button(context, edit, label, f"held_edit_{number}")


def maps_code(before: EditedPass, after: EditedPass, part: str, layer: int, head: int) -> None:
    first, second = (edited.forward.weights(part, layer, head) for edited in (before, after))
    weights = second - first
    print(weights)  # a row per query, a column per key


def last_stream_code(before: EditedPass, after: EditedPass) -> None:
    old, new = (last_stream(edited.forward.trace)[0] for edited in (before, after))
    moved, size = (new - old).norm(), old.norm()
    print(moved, moved / size)


def output_code(before: EditedPass, after: EditedPass, position: int, tracked: int) -> None:
    config = before.forward.config
    old, new = (logits_at(edited.forward.trace, position) for edited in (before, after))
    likely = likeliest(old, new)
    scores = config.scores(torch.stack([old, new]).double())[:, likely]
    print(likely, scores)  # a row before, a row after
    change = divergence(config, old, new)
    print(change)  # nats, unless the model is a regression
    was, now = old[tracked], new[tracked]
    print(was, now, now - was)  # the tracked logit


def over_text_code(before: EditedPass, after: EditedPass) -> None:
    ids = before.forward.predicted_ids, after.forward.predicted_ids
    text = over_text(before.forward.trace, after.forward.trace, ids)
    print(text.kl.mean(), text.kl.max(), int(text.kl.argmax()))  # nats; which position
    print(text.loss)  # nats per token, before and after; None if none is predicted


def answers_code(opened: OpenModel, before: EditedPass, after: EditedPass) -> None:
    answers = [edited_answer(opened, edited).text for edited in (before, after)]
    print(answers)
