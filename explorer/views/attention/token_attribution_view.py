"""One answer attributed to the tokens of the input by five methods, and their deletion curves."""

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.token_attribution import (
    DRAWS,
    GRADIENT,
    INTEGRATED,
    METHODS,
    AttributionError,
    ChosenAnswer,
    DeletionCurves,
    IntegratedGradients,
    attention_shares,
    begins_plainly,
    chosen_answer,
    cost_of_deletion,
    cost_of_gradients,
    deletion_curves,
    gradient_times_input,
    integrated_gradients,
    map_share,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of, switch
from explorer.app.messages import say
from explorer.catalog.opened_model import OpenModel
from explorer.charts.deletion_curves import deletion_curves_chart
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.inference.answers import option_name, score_words
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.text.visible_text import in_quotes, literal
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import input_key
from explorer.views.shared.measurement import Report, measurement
from models.output_heads import LanguageModelHead

OPTIONS = 12
STEPS = ("32", "16", "64", "128", "256")
LARGE_ERROR = 0.05
CHART_HEIGHT = 300
TOO_LONG = "So many passes of this model take too long: shorten the text."
ABOUT = (
    "A row is a method, a column a token; the absolute values of each row sum to 1. Attention is "
    "the last layer's row that the answer is read from, the mean over its heads{cross}; rollout "
    "follows it through all layers, and the map of the pass splits each sum by how much every part "
    "brings (Overview). Gradients are those of ln p of the answer; a negative share argues against "
    "it. "
)
DELETED = (
    "To delete a token, its embedding is replaced by the mean of the vocabulary's{stay}. Each "
    "method deletes its largest share first, and a negative one last. The area under a curve is "
    "the mean probability while tokens are deleted. Jain & Wallace 2019, Attention is not "
    "Explanation; Wiegreffe & Pinter 2019, Attention is not not Explanation."
)


def draw_attribution(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Methods down, tokens across, then the deletion curves; controls in the `row`."""
    opened, forward = context.opened, context.forward
    try:
        with row:
            answer, steps = _choose(context)
    except AttributionError as error:
        say(str(error))
        return None
    where = answer.base.position, answer.option
    lines = script(attribution_code, opened, forward, *where, steps)
    key = "token attribution", *input_key(forward), *where, answer.deletable, steps
    picture, beside = widgets.side_by_side(5, 5)
    with picture:
        integrated = measurement(
            opened,
            "integrated",
            key,
            lambda report: integrated_gradients(answer, steps, report),
            cost=cost_of_gradients(answer, steps),
            doing="Integrated gradients",
            too_long=TOO_LONG,
        )
        values = _values(opened, answer, integrated)
        _draw_shares(context, answer, values)
        st.caption(_about(answer, integrated, steps))
    with beside:
        curves = measurement(
            opened,
            "deletion",
            ("deletion", *key, tuple(values)),
            lambda report: deletion_curves(answer, values, report=report),
            cost=cost_of_deletion(answer),
            doing="Deletion curves",
            too_long=TOO_LONG,
        )
        if curves is not None:
            _draw_curves(context, answer, curves)
    return lines


def _choose(context: PageContext) -> tuple[ChosenAnswer, int]:
    """The answer and the number of steps, as the controls of the row say."""
    opened, forward = context.opened, context.forward
    place = widgets.choose_output_position(context)
    chosen_answer(opened, forward, place, 0)
    logits = _logits(forward, place)
    best = logits.topk(min(OPTIONS, len(logits))).indices.tolist()
    names = [f"{_name(opened, option)} ({option})" for option in best]
    option = best[names.index(one_of("answer_of", names, as_list=True, width=200))]
    steps = int(one_of("path_steps", STEPS, as_list=True, width=100))
    first = begins_plainly(forward) and switch("delete_first")
    return chosen_answer(opened, forward, place, option, deletes_first=first), steps


def _logits(forward: ForwardPass, place: int) -> Tensor:
    from explorer.analysis.output_change import logits_at

    return logits_at(forward.trace, place, forward.row)


def _name(opened: OpenModel, option: int) -> str:
    name = option_name(opened, option)
    return name if opened.config.head == "classifier" else text_of(name)


def _values(
    opened: OpenModel, answer: ChosenAnswer, integrated: IntegratedGradients | None
) -> dict[str, Tensor]:
    """The numbers of every method that is computed, in the order of METHODS."""
    values = attention_shares(answer) | map_share(opened, answer)
    values[GRADIENT] = gradient_times_input(answer)
    if integrated is not None:
        values[INTEGRATED] = integrated.tokens
    return {method: values[method] for method in METHODS if method in values}


def _draw_shares(context: PageContext, answer: ChosenAnswer, values: dict[str, Tensor]) -> None:
    shares = torch.stack([of.double() / of.double().abs().sum() for of in values.values()])
    option = literal(_name(context.opened, answer.option))
    matrix(
        shares,
        [*values],
        answer.forward.tokens,
        key="attribution",
        scale="diverging",
        row_name="method",
        column_name="token",
        sentence="{row} of {column}: {value}",
        unit="share",
        title=f"{context.choice.called} · Tokens behind “{option}”",
        scaling="row",
    )
