"""One answer attributed to the tokens of the input by five methods, and their deletion curves."""

from contextlib import suppress

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.output_change import logits_at
from explorer.analysis.token_attribution import (
    ATTENTION,
    DRAWS,
    INTEGRATED,
    STEPS,
    AttributionError,
    TokenAttribution,
    attribute_tokens,
    chosen_answer,
    cost_of,
    first_attributions,
    keeps_first,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import deletion_curves_chart
from explorer.components.chart import chart
from explorer.components.matrix import matrix
from explorer.components.mounting import drawn_again
from explorer.inference.answers import score_words
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached, is_cached
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText
from explorer.text.visible_text import in_quotes, literal_sentence
from explorer.views.forward_pass.lens_and_attribution import option_text
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import input_key
from explorer.views.shared.measurement import measurement
from models.gradients import GradientError

SO_FAR = "attribution_so_far"
Values = dict[str, torch.Tensor]
OPTIONS = 12
LARGE_ERROR = 0.05
SHORT = {INTEGRATED: "integrated grad."}
ABOUT = (
    "Each row is divided by the sum of its absolute values. Attention is the mean over the heads "
    "of the last layer, in the row that the answer is read from{cross}; importance is that of the "
    "picture of the pass. Gradient × input: how fast ln p changes with a token's vector, times the "
    "vector; integrated gradients average this from the deleted token to the token. A negative "
    f"share is against the answer. Integrated gradients with {STEPS} steps sum to {{total}} nats; "
    "ln p changes by {change} from the deleted tokens to the text: completeness error {error:.2%}."
)
WARNING = f" That is more than {LARGE_ERROR:.0%}, so do not rely on them."
FIRST_STAYS = (
    "The first token stays, since many heads attend to it whatever it is (Xiao et al. 2024)."
)
DELETED = (
    "A deleted token has the mean embedding of the vocabulary. The largest share is deleted first."
    f" {{stay}} The area is the mean probability during deletion; the band is the range of {DRAWS} "
    "random orders. On the question: Jain & Wallace 2019; Wiegreffe & Pinter 2019."
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
    answer = chosen_answer(opened, forward, place, option)
    key = ("token attribution", input_key(forward), place, option)
    work, so_far = st.container(), st.empty()
    if not is_cached(opened, key):  # the rest takes seconds
        with suppress(GradientError), so_far, widgets.side_by_side(5, 5)[0]:
            first = cached(opened, (key, "first"), lambda: first_attributions(answer))
            _draw_shares(context, option, first, SO_FAR)
    with work:
        measured = measurement(
            opened,
            "token_attribution",
            key,
            lambda report: attribute_tokens(answer, report=report),
            cost=cost_of(answer),
            doing="Gradients and deletions",
            too_long="So many passes of this model take too long: shorten the text.",
            at_once=True,
        )
    if measured is not None:
        so_far.empty()
        with drawn_again([SO_FAR]):
            _draw(context, option, measured)
    return script(attribution_code, opened, forward, place, option)


def _draw_shares(context: PageContext, option: int, values: Values, key: str) -> None:
    name = in_quotes(option_text(context.opened, option))
    matrix(
        torch.stack([of.double() / of.double().abs().sum() for of in values.values()]),
        [VisibleText(SHORT.get(method, method)) for method in values],
        context.forward.tokens,
        key=key,
        scale="diverging",
        row_name="method",
        column_name="token",
        sentence="{column} by {row}: {value}",
        unit="share",
        title=f"{context.called} · {name} by token",
        scaling="row",
    )


def _draw(context: PageContext, option: int, measured: TokenAttribution) -> None:
    """The shares, beside the curves."""
    forward, values = context.forward, measured.values
    name = in_quotes(option_text(context.opened, option))
    shares, curves = widgets.side_by_side(5, 5)
    with shares:
        _draw_shares(context, option, values, "attribution")
        cross = ", of cross-attention" if forward.config.kind == "encoder-decoder" else ""
        total, change = three(float(values[INTEGRATED].sum())), three(measured.change)
        about = ABOUT.format(cross=cross, total=total, change=change, error=measured.error)
        st.caption(about + ("" if measured.error <= LARGE_ERROR else WARNING))
    with curves:
        st.markdown(literal_sentence(verdict(measured)))
        score = score_words(context.opened.config).score
        spec = deletion_curves_chart(measured.counts, measured.curves, measured.random, score)
        title = f"Probability of {name} by the number of deleted tokens"
        chart(spec, height=300, key="deletion_curves", title=title)
        stay = FIRST_STAYS if keeps_first(forward) else "Special tokens stay."
        st.caption(DELETED.format(stay=stay))


def verdict(measured: TokenAttribution) -> str:
    """Which order finds the tokens that the answer depends on most, in one or two sentences."""
    areas, random = measured.areas, measured.area(measured.random)
    least = min(areas.values())
    best = [name for name, area in areas.items() if area <= least * (1 + 1e-6)]
    names = " and ".join(map(in_quotes, best))
    text = f"No method beats all {DRAWS} random orders on this sentence; the best is {names}"
    if least < float(random.min()):
        text = f"The answer falls fastest when tokens are deleted by {names}"
    better = sum(areas[ATTENTION] < area for area in random.tolist())
    return (
        f"{text}: area {three(least)}. {DRAWS} random orders have {three(float(random.min()))} to "
        f"{three(float(random.max()))}, on average {three(float(random.mean()))}. Attention has "
        f"{three(areas[ATTENTION])}, less than {better} of them."
    )


def attribution_code(opened: OpenModel, forward: ForwardPass, place: int, option: int) -> None:
    result = attribute_tokens(chosen_answer(opened, forward, place, option))
    values = torch.stack([*result.values.values()]).double()
    shares = values / values.abs().sum(-1, keepdim=True)
    print(shares)  # a row per method, a column per token
    print(result.error)  # of completeness
    print(result.areas, result.area(result.random))
