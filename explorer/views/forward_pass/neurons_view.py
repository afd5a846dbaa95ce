"""The strongest neurons of a feed-forward layer at the chosen token, under their stage."""

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.top_lines import (
    built_in_lines,
    built_in_texts,
    largest_lines,
    neuron_activations,
    tokenize_lines,
)
from explorer.analysis.forward_pass.pass_values import PassValues
from explorer.analysis.logit_attribution import neuron_strengths, promoted_logits
from explorer.analysis.output_change import has_words
from explorer.app import widget_state
from explorer.app.choosing import draw_page_link
from explorer.app.controls import expander, one_of
from explorer.catalog.opened_model import OpenModel
from explorer.interventions.address_text import has_room_for, to_address
from explorer.interventions.edits import AblateNeuron
from explorer.text import TextError
from explorer.text.number_format import signed, three
from explorer.views.circuits.evidence import draw_list
from explorer.views.circuits.question_scores import cost_per_token
from explorer.views.forward_pass.lens_and_attribution import option_text
from explorer.views.shared.edit_history import FULL, current_history
from explorer.views.shared.measurement import measurement
from explorer.views.shared.pass_position import STAGE_CHOICES, PassPosition
from explorer.views.shared.tables import table

SHOWN, TOKENS_SHOWN, LINES_SHOWN = 8, 3, 5
KEY = "stage_neuron"


def draw_neurons(opened: OpenModel, values: PassValues, at: PassPosition) -> None:
    """The strongest neurons and what they promote; of the chosen one its lines, and a link."""
    stage, layer = at.stage, at.stage.layer or 0
    activations = values[stage.name][at.row].detach()
    strengths = neuron_strengths(values.model, stage.stack, layer, activations)
    best = strengths.topk(min(SHOWN, len(strengths))).indices
    columns = {
        "neuron": [str(neuron) for neuron in best.tolist()],
        "activation": [three(value) for value in activations[best].tolist()],
        "norm of its write": [three(value) for value in strengths[best].tolist()],
    }
    right = tuple(columns)
    is_read = stage.stack == values.config.stacks[-1] and has_words(values.config)
    if is_read:
        logits = promoted_logits(values.forward, layer, at.row, best, activations)
        columns["promotes"] = [_options(opened, row, largest=True) for row in logits]
        columns["suppresses"] = [_options(opened, row, largest=False) for row in logits]
    st.markdown("**Strongest neurons at this token**")
    table(columns, right=right)
    promoted = " Promoted and suppressed are those of what it writes here, by direct logits."
    st.caption(
        f"{len(best)} of {len(strengths):,}, by |activation| × the norm of its row of W₂."
        f"{promoted * is_read} Geva et al. 2022."
    )
    options = best.tolist()
    neuron = at.columns.get("number", len(strengths))
    neuron = neuron if neuron < len(strengths) else options[0]
    widget_state.put(KEY, neuron)
    options = options if neuron in options else [*options, neuron]
    st.segmented_control("Neuron", options, key=KEY, on_change=_pin, required=True)
    edit = AblateNeuron(f"{stage.stack}.self_attn", layer, neuron)
    if has_room_for(history := current_history(), edit):
        edits = to_address(history.add(edit))
        draw_page_link("interventions", f"Ablate neuron {neuron} of layer {layer}", edits=edits)
    else:
        st.caption(FULL)
    if len(values.config.stacks) == 1:
        with expander("neuron_lines") as panel:
            if panel.open:
                _draw_lines(opened, layer, neuron, float(activations[neuron]))


def _options(opened: OpenModel, logits: Tensor, *, largest: bool) -> str:
    """The most promoted tokens, or the most suppressed, with the logit of the first."""
    best = logits.topk(min(TOKENS_SHOWN, len(logits)), largest=largest)
    first, *others = (option_text(opened, option) for option in best.indices.tolist())
    return "  ".join([f"{first} {signed(float(best.values[0]))}", *others])


def _pin() -> None:
    """For a callback: pin the chosen neuron in the matrix."""
    STAGE_CHOICES.put("number", str(widget_state.get(KEY)))


def _draw_lines(opened: OpenModel, layer: int, neuron: int, activation: float) -> None:
    """The lines of a built-in text that fire this neuron most, with the sign that it has here."""
    source = one_of("lines_from", built_in_texts(opened))
    try:
        text = tokenize_lines(opened, built_in_lines(opened, source))
    except TextError as error:
        st.text(str(error))
        return
    activations = measurement(
        opened,
        "neuron_lines",
        ("neuron lines", source, layer),
        lambda report: neuron_activations(opened, text.rows, layer, report),
        cost=sum(map(len, text.rows)) * cost_per_token(opened),
        doing=f"Reading {len(text.rows):,} lines",
    )
    if activations is None:
        return
    sizes, places = (of[int(activation < 0), :, neuron] for of in activations)
    draw_list(text, largest_lines(sizes, places, LINES_SHOWN), "|activation|")
    st.caption(
        f"Of {len(text.rows):,} lines, those with the largest activation of neuron {neuron} of the "
        "sign that it has here. The first token and special tokens do not count."
    )
