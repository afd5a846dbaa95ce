"""One answer attributed to the tokens of the input by five methods, and their deletion curves."""

from functools import partial

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis import token_attribution
from explorer.analysis.output_change import logits_at
from explorer.analysis.token_attribution import (
    ATTENTION,
    DRAWS,
    INTEGRATED,
    STEPS,
    AttributionError,
    ChosenAnswer,
    DeletionCurves,
    TokenAttribution,
    attribute_tokens,
    chosen_answer,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import deletion_curves_chart
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.inference.answers import score_words
from explorer.inference.forward_pass import ForwardPass
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText
from explorer.text.visible_text import in_quotes, literal_sentence
from explorer.views.forward_pass.lens_and_attribution import option_text
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import input_key
from explorer.views.shared.measurement import measurement

OPTIONS = 12
STEP_NUMBERS = ("16", "32", "64", "128", "256")
LARGE_ERROR, LITTLE = 0.05, 0.1
"""Of the completeness error, and of the change of ln p in nats."""
CHART_HEIGHT = 300
SHORT = {INTEGRATED: "integrated grad."}
TOO_LONG = "So many passes of this model take too long: shorten the text, or choose fewer steps."
ABOUT = (
    "Each row is divided by the sum of its absolute values. Attention is the mean over the heads "
    "of the last layer, in the row that the answer is read from{cross}; importance is that of the "
    "picture of the pass. Gradients are those of ln p; a negative share is against the answer."
)
SPECIALS_STAY = "Special tokens stay."
FIRST_STAYS = (
    "The first token stays: without a start token, many heads attend to it whatever it is (Xiao "
    "et al. 2024)."
)
DELETED = (
    "A deleted token has the mean embedding of the vocabulary. The largest share is deleted first."
    " {stay} The area is the mean probability during deletion; the band is the range of {draws} "
    "random orders. On the question: Jain & Wallace 2019, Attention is not Explanation; Wiegreffe "
    "& Pinter 2019, Attention is not not Explanation."
)


def draw_attribution(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Methods down, tokens across, beside the deletion curves; controls in the `row`."""
    opened, forward = context.opened, context.forward
    with row:
        place = widgets.choose_output_position(context)
        try:
            chosen_answer(opened, forward, place, 0)
        except AttributionError as error:
            say(str(error))
            return None
        logits = logits_at(forward.trace, place, forward.row)
        best = logits.topk(min(OPTIONS, len(logits))).indices.tolist()
        names = [f"{option_text(opened, option)} ({option})" for option in best]
        option = best[names.index(one_of("answer_of", names, as_list=True, width=180))]
        steps = int(one_of("path_steps", STEP_NUMBERS, str(STEPS), as_list=True, width=130))
    answer = chosen_answer(opened, forward, place, option)
    picture, beside = widgets.side_by_side(5, 5)
    with beside:
        measured = measurement(
            opened,
            "token_attribution",
            ("token attribution", input_key(forward), place, option, steps),
            partial(attribute_tokens, opened, answer, steps),
            cost=token_attribution.cost_of(answer, steps),
            doing="Gradients and deletions",
            too_long=TOO_LONG,
        )
    with picture:
        attention = token_attribution.attention_shares
        _draw_shares(context, answer, attention(answer) if measured is None else measured.values)
        st.caption(_about(answer, measured, steps))
    if measured is not None:
        with beside:
            _draw_curves(context, answer, measured.curves)
    return script(attribution_code, opened, forward, place, option, steps)


def _draw_shares(context: PageContext, answer: ChosenAnswer, values: dict[str, Tensor]) -> None:
    shares = torch.stack([of.double() / of.double().abs().sum() for of in values.values()])
    matrix(
        shares,
        [VisibleText(SHORT.get(method, method)) for method in values],
        answer.forward.tokens,
        key="attribution",
        scale="diverging",
        row_name="method",
        column_name="token",
        sentence="{column} by {row}: {value}",
        unit="share",
        title=f"{context.choice.called} · “{option_text(context.opened, answer.option)}” by token",
        scaling="row",
    )


def _about(answer: ChosenAnswer, measured: TokenAttribution | None, steps: int) -> str:
    """What the rows are, and how complete the integrated gradients are."""
    two = answer.forward.config.kind == "encoder-decoder"
    text = ABOUT.format(cross=", of cross-attention" if two else "")
    if measured is None:
        return text
    total, change = float(measured.values[INTEGRATED].sum()), measured.curves.change
    text += (
        f" Integrated gradients with {steps} steps sum to {three(total)} nats; ln p changes by "
        f"{three(change)} from the deleted tokens to the text: completeness error "
        f"{measured.error:.2%}."
    )
    if abs(change) < LITTLE:
        text += " The answer is about as likely without these tokens: it depends little on them."
    elif not measured.error <= LARGE_ERROR:
        text += f" That is more than {LARGE_ERROR:.0%}: choose more steps before you read them."
    return text


def _draw_curves(context: PageContext, answer: ChosenAnswer, curves: DeletionCurves) -> None:
    st.markdown(literal_sentence(verdict(curves)))
    score = score_words(context.opened.config).score
    option = in_quotes(option_text(context.opened, answer.option))
    spec = deletion_curves_chart(curves.counts, curves.curves, curves.random, score)
    title = f"Probability of {option} by the number of deleted tokens"
    chart(spec, height=CHART_HEIGHT, key="deletion_curves", title=title)
    stay = FIRST_STAYS if token_attribution.keeps_first(answer.forward) else SPECIALS_STAY
    st.caption(DELETED.format(stay=stay, draws=DRAWS))


def verdict(curves: DeletionCurves) -> str:
    """Which order finds the tokens that the answer depends on most, in one or two sentences."""
    areas, random = curves.areas, curves.area(curves.random)
    least = min(areas.values())
    best = [name for name, area in areas.items() if area <= least * (1 + 1e-6)]
    names = " and ".join(map(in_quotes, best))
    if least < float(random.min()):
        text = f"The answer falls fastest when tokens are deleted by {names}"
    else:
        text = f"No method beats all {DRAWS} random orders on this sentence; the best is {names}"
    ends = f"{three(float(random.min()))} to {three(float(random.max()))}"
    better = sum(areas[ATTENTION] < area for area in random.tolist())
    return (
        f"{text}: area {three(least)}. {DRAWS} random orders have {ends}, on average "
        f"{three(float(random.mean()))}. Attention has {three(areas[ATTENTION])}, less than "
        f"{better} of them."
    )


def attribution_code(
    opened: OpenModel, forward: ForwardPass, place: int, option: int, steps: int
) -> None:
    answer = chosen_answer(opened, forward, place, option)
    result = attribute_tokens(opened, answer, steps)
    values = torch.stack([*result.values.values()]).double()
    shares = values / values.abs().sum(-1, keepdim=True)
    print(shares)  # a row per method, a column per token
    print(result.error)  # of completeness
    print(result.curves.areas, result.curves.area(result.curves.random))
