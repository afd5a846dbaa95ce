"""Attention sinks: the sink weight of every head, what the chosen one does, and experiments."""

from collections import Counter

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import attention_sinks
from explorer.analysis.attention_sinks import EXPERIMENTS, FEWEST_TOKENS, Sinks, sink_experiment
from explorer.analysis.batched_passes import multiplications, recorded_pass
from explorer.analysis.output_change import has_words
from explorer.app.context import PageContext
from explorer.app.controls import text_field
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import one_token, score_words
from explorer.inference.core_edits import token_label
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import error_of, signed, three
from explorer.text.visible_text import in_quotes
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import NO_VISIBLE_KEYS, NO_WEIGHTS, heads_grid, input_key
from explorer.views.shared.measurement import measurements
from explorer.views.shared.tables import table

NO_ROW = "No row sees the first token and another one: enter a text of at least two tokens."
OTHER = "Another first token"
WITH_SINKS = ("shakespeare",)
TOO_LONG = "These passes take too long for a text of this length: shorten it."
MEANING = (
    "Sink weight is the mean weight on the first token, over the rows that see it and another key. "
    f"From {attention_sinks.SINK_WEIGHT} on, and above uniform attention, the head has a sink. It "
    "does nothing if its write, the norm of its value after W_O, is at most "
    f"{attention_sinks.LITTLE} of the mean of other tokens; otherwise it broadcasts if at least "
    f"{attention_sinks.ONE_DIRECTION} of the squared norm of all that the head writes is along one "
    "direction. Fesser et al. 2026; the thresholds of norm and direction are ours."
)
NAMES = (
    "First token removed",
    "First token replaced by {other}",
    "Weight on it cut",
    "Its value zeroed",
)


def draw_sinks(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The sink weight of every head, the chosen head's verdict, and the experiments.

    The other first token is typed in the `row`; returns the code.
    """
    at, opened, forward, part = context.choice, context.opened, context.forward, context.part
    layers = cached(
        opened,
        ("sinks", at.part, input_key(forward)),
        lambda: with_bar(
            attention_sinks.sinks_by_layer(forward, at.part), part.layers, "Measuring, by layer"
        ),
    )
    sinks = Sinks(*torch.stack(layers, 1))
    if bool(sinks.weight.isnan().all()):
        is_masked = not bool(forward.mask(at.part).any())
        is_alone = bool(sinks.uniform.isnan().all())
        say(NO_VISIBLE_KEYS if is_masked else NO_ROW if is_alone else NO_WEIGHTS)
        return None
    with row:
        other = _other_token(opened, forward, at.part)
    picture, numbers = widgets.side_by_side(2, 3)
    with picture:
        title = map_title(context.called, at.part, "Sink weight of every head")
        heads_grid(context, sinks.weight, key="sinks", title=title, unit="weight", top=1.0)
        cells = [(n, head) for n in range(part.layers) for head in range(part.heads)]
        counts = Counter(sinks.verdict(*cell) for cell in cells).most_common()
        if counts[0] == ("no sink", len(cells)):
            st.text("No head of this model has a sink in this text. Some language models have one.")
            others = [name for name in WITH_SINKS if name != context.choice.model]
            widgets.offer_models([name for name in others if name in context.models])
        words = ", ".join(f"{count:,} ha{'s' if count == 1 else 've'} {of}" for of, count in counts)
        st.caption(f"Of {len(cells):,} head{'s' * (len(cells) > 1)}, {words}.")
    with numbers:
        st.markdown(f"**Layer {at.layer}, head {at.head}**")
        st.text(f"{sinks.verdict(at.layer, at.head).capitalize()}.")
        with st.container(key="sink_experiments"):
            _draw_experiments(context, other)
        _draw_numbers(context, sinks)
    st.caption(MEANING)
    widgets.page_links("interventions")
    return script(sinks_code, opened, forward, at.part, at.layer, at.head, other)


def _draw_numbers(context: PageContext, sinks: Sinks) -> None:
    """The numbers behind the chosen head's verdict."""
    at = context.choice
    titles = "sink weight", "if uniform", "value", "write", "first direction", "effective rank"
    numbers = [three(float(number[at.layer, at.head])) for number in sinks]
    table([dict(zip(titles, numbers, strict=True))], right=titles)
    st.caption(
        "The norms of its value and its write are relative to the mean of other tokens. First "
        "direction: the share of its write along one direction; effective rank: along how many."
    )


def _other_token(opened: OpenModel, forward: ForwardPass, part: str) -> int:
    """The typed token, by default a newline, or the last token where that is none."""
    text = text_field("first_token", label_visibility="collapsed", placeholder=OTHER, width=200)
    typed, why = one_token(opened, text)
    if why:
        say(why)
    tokens = typed, one_token(opened, "\n")[0], forward.rows(part)[-1].id
    return next(token for token in tokens if token is not None)


def _draw_experiments(context: PageContext, other: int) -> None:
    """A row for each experiment, with the loss before and after."""
    opened, forward, at = context.opened, context.forward, context.choice
    if min(len(forward.rows(at.part)), len(forward.last_stack_tokens)) < FEWEST_TOKENS:
        st.text(f"Experiments need a text, and an answer, of at least {FEWEST_TOKENS} tokens.")
        return
    config, base = opened.config, recorded_pass(EditedPass(forward), 0)
    read = base.longest * config.d_model * config.vocab_size * has_words(config)
    cost = sum(multiplications(base, part.name, 0) for part in forward.parts[:2]) + read
    effects = measurements(
        opened,
        "sinks",
        [("sink", name, at.part, other, input_key(forward)) for name in EXPERIMENTS],
        lambda n, report: sink_experiment(opened, forward, EXPERIMENTS[n], at.part, other),
        cost=len(EXPERIMENTS) * cost,
        doing="Passes with another sink",
        too_long=TOO_LONG,
        at_once=True,
    )
    if effects is None:
        return
    label, words = in_quotes(token_label(opened, other)), score_words(config)
    rows = {"experiment": [name.format(other=label) for name in NAMES]}
    after = f"{words.divergence}{words.unit and f' in {words.unit}'}"
    if effects[0].before is not None:
        after, rows["loss before"] = "loss after", [three(effects[0].before)] * len(NAMES)
    elif config.head == "none":
        after = "change of the last residual stream"
    rows[after] = [three(effect.after) for effect in effects]
    rows["sink weight"] = [three(float(effect.weights[at.layer, at.head])) for effect in effects]
    table(rows, right=[name for name in rows if name != "experiment"])
    if (before := effects[0].before) is not None:
        whose = "its own answer" if forward.source else "the same tokens"
        removed, replaced, _, zeroed = (
            signed(effect.after - before, error_of(before, effect.after)) for effect in effects
        )
        st.caption(
            f"Without the first token the loss changes by {removed}, with {label} in its place by "
            f"{replaced}, with its value zeroed in every head by {zeroed}. The loss is in nats per "
            f"token, over {whose} in every row, without the first prediction. A cut weight goes to "
            "the other keys. Sink weight is that of this head, on the token that is first then."
        )


def sinks_code(
    opened: OpenModel, forward: ForwardPass, part: str, layer: int, head: int, other: int
) -> None:
    sinks = Sinks(*torch.stack([*attention_sinks.sinks_by_layer(forward, part)], 1))
    print(sinks.weight)  # layers down, heads across
    print(sinks.verdict(layer, head), sinks.write[layer, head], sinks.first[layer, head])
    for name in EXPERIMENTS:
        print(name, sink_experiment(opened, forward, name, part, other))
