"""The chosen head's maps before and after, and interventions on their pinned cell."""

import streamlit as st
import torch

from explorer.analysis.comparison import largest_change
from explorer.analysis.output_change import (
    has_words,
    kl,
    last_stream,
    likeliest,
    logits_at,
    over_text,
)
from explorer.app.context import PageContext
from explorer.catalog.open_model import OpenModel
from explorer.components.events import Place
from explorer.inference.edited_pass import EditedPass, edited_answer
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    HideKey,
    Intervention,
    MaskCell,
)
from explorer.text.token_labels import named_at
from explorer.views.shared import pinned, widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.edit_history import edit_button
from explorer.views.shared.map_pair import Head, MapSide, draw_map_pair
from explorer.views.shared.pinned import Pinned

ABLATIONS = AblateHead, AblateAttention, AblateMlp
ABLATED = " An ablated output changes what later layers read, not the weights of its own layer."


def draw_maps(
    context: PageContext,
    before: EditedPass,
    after: EditedPass,
    position: int,
    tracked: int | None,
) -> Script:
    """Both maps on one scale, and the difference around zero.

    Gives the lines that make them, the output at this position, and the change of the output.
    """
    at, held = context.choice, pinned.current_pin(context, after.forward)
    st.markdown(f"{widgets.head_heading(context)} · before, after and after − before")
    heads = [Head(each.forward, at.part, at.layer, at.head) for each in (before, after)]
    aligned = draw_map_pair(
        MapSide("Before", heads[0]),
        MapSide("After", heads[1]),
        1.0,
        models=(at.model, at.model),
        keys=("map_before", "map_after"),
        title="After − before",
        pinned=None if held.query is None or held.key is None else (held.query, held.key),
        on_pin=_pin,
    )
    _draw_cell_actions(context, after.forward, held)
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
    if after.forward.written:
        lines += script(answers_code, context.opened, before, after)
    return lines


def _pin(place: Place | None) -> None:
    """For the callback of a map: every row and column is one token there."""
    pinned.pin(Pinned() if place is None else Pinned(*place))


def _draw_cell_actions(context: PageContext, after: ForwardPass, held: Pinned) -> None:
    """The pinned cell in words, and a button for each intervention on it in the chosen layer."""
    at, query, key = context.choice, held.query, held.key
    if query is None or key is None:
        st.caption("Click a cell to pin it: its edge can then be cut, or the cell masked.")
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
    st.text(f"Pinned: {row} → {column}")
    with st.container(horizontal=True, key="held_edits"):
        for number, (label, edit) in enumerate(edits.items()):
            edit_button(context, edit, label, f"held_edit_{number}")


def maps_code(before: EditedPass, after: EditedPass, part: str, layer: int, head: int) -> None:
    first, second = (each.forward.weights(part, layer, head) for each in (before, after))
    weights = second - first
    print(weights)  # a row per query, a column per key


def last_stream_code(before: EditedPass, after: EditedPass) -> None:
    old, new = (last_stream(each.forward.trace)[0] for each in (before, after))
    moved, size = (new - old).norm(), old.norm()
    print(moved, moved / size)


def output_code(before: EditedPass, after: EditedPass, position: int, tracked: int) -> None:
    old, new = (logits_at(each.forward.trace, position) for each in (before, after))
    likely = likeliest(old, new)
    probabilities = torch.stack([old, new]).double().softmax(-1)[:, likely]
    print(likely, probabilities)  # a row before, a row after
    divergence = kl(old, new)
    print(divergence)  # nats
    was, now = old[tracked], new[tracked]
    print(was, now, now - was)  # the tracked logit


def over_text_code(before: EditedPass, after: EditedPass) -> None:
    ids = before.forward.predicted_ids, after.forward.predicted_ids
    text = over_text(before.forward.trace, after.forward.trace, ids)
    print(text.kl.mean(), text.kl.max(), int(text.kl.argmax()))  # nats; which position
    print(text.loss)  # nats per token, before and after; None if none is predicted


def answers_code(opened: OpenModel, before: EditedPass, after: EditedPass) -> None:
    answers = [edited_answer(opened, each).text for each in (before, after)]
    print(answers)
