"""Attention sinks: the sink weight of every head, what the chosen one does, and experiments."""

from dataclasses import fields
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.attention_sinks import (
    BROADCAST,
    LITTLE,
    NEITHER,
    NO_SINK,
    NOTHING,
    ONE_DIRECTION,
    SINK_WEIGHT,
    Sinks,
    join_sinks,
    sink_rows,
    sinks_by_layer,
)
from explorer.analysis.batched_passes import multiplications, recorded_pass
from explorer.analysis.output_change import has_words
from explorer.analysis.sink_experiments import (
    EXPERIMENTS,
    FEWEST_TOKENS,
    IN_ONE_HEAD,
    REPLACED,
    SinkEffect,
    sink_experiment,
)
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
from explorer.text import TextError
from explorer.text.number_format import error_of, three
from explorer.text.token_labels import named_at
from explorer.text.visible_text import in_quotes
from explorer.views.attention.rollout_and_flow import is_self_attention
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import NO_VISIBLE_KEYS, NO_WEIGHTS, heads_grid, input_key
from explorer.views.shared.measurement import Report, measurements
from explorer.views.shared.tables import table

CROSS = (
    "In cross-attention the keys are another text's, so the queries have no first token among "
    "them that could be their sink. Choose the self-attention of a stack:"
)
NO_ROW = (
    "No row of this attention sees the first token and another one, so there is no sink to "
    "measure: enter a text of at least two tokens."
)
SHORT = f"The experiments need a text of at least {FEWEST_TOKENS} tokens: type a longer one."
TOO_LONG = "These passes take too long for a text of this length: shorten it."
MEANING = (
    "Sink weight is the mean weight on the first token, over the rows that see it and another key. "
    f"From {SINK_WEIGHT} on, and above uniform attention, the head has a sink. It does nothing if "
    f"the sink writes at most {LITTLE} of what other tokens write, by the norm of the value after "
    f"W_O. Otherwise it broadcasts if at least {ONE_DIRECTION} of the squared norm of all it "
    "writes is along one direction. Fesser et al. 2026, A Unifying View of Attention Sinks; the "
    "thresholds of norm and direction are ours."
)
VERDICTS = {
    NOTHING: "A sink that does nothing",
    BROADCAST: "A sink that broadcasts",
    NEITHER: "A sink that neither does nothing nor broadcasts",
}
SINK = (
    "{verdict}: {token} gets a weight of {weight} and writes {write} of what another token writes; "
    "{first} of what the head writes is along one direction."
)
NO_WEIGHT = "No sink: {token} gets a weight of {weight}, where {least} is enough."
NO_VALUE = "This head has no sink weight: its rows are masked, or its numbers are not finite."
SHOWN = fields(Sinks)
UNLABELLED: dict[str, Any] = {"label_visibility": "collapsed", "width": 200}
NAMES = (
    "First token removed",
    "First token replaced by {other}",
    "Weight on it cut, in this head",
    "Weight on it cut, in every head",
    "Its value zeroed, in this head",
    "Its value zeroed, in every head",
)


def draw_sinks(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The sink weight of every head, the chosen head's verdict, and the experiments.

    The other first token is typed in the `row`; returns the code.
    """
    if not is_self_attention(context, CROSS):
        return None
    at, forward = context.choice, context.forward
    sinks = _measured(context)
    if not bool((sinks.uniform == sinks.uniform).any()):
        masked = not bool(forward.mask(at.part).any())
        say(NO_VISIBLE_KEYS if masked else NO_ROW)
        return None
    if not bool((sinks.weight == sinks.weight).any()):
        say(NO_WEIGHTS)
        return None
    with row:
        other = _other_token(context.opened, forward, at.part)
    picture, numbers = widgets.side_by_side(2, 3)
    with picture:
        title = map_title(at.called, at.part, "Sink weight of every head")
        heads_grid(context, sinks.weight, key="sinks", title=title, unit="weight", top=1.0)
        st.caption(_count(sinks))
    with numbers:
        _draw_numbers(context, sinks)
        _draw_experiments(context, other)
    st.caption(MEANING)
    widgets.page_links("interventions")
    return script(sinks_code, context.opened, forward, at.part, at.layer, at.head, other)


def _measured(context: PageContext) -> Sinks:
    forward, part = context.forward, context.part
    return cached(
        context.opened,
        ("sinks", part.name, input_key(forward)),
        lambda: join_sinks(
            with_bar(sinks_by_layer(forward, part.name), part.layers, "Measuring sinks, by layer")
        ),
    )


def _count(sinks: Sinks) -> str:
    """How many heads have a sink, and what their sinks do."""
    layers, heads = sinks.weight.shape
    verdicts = [sinks.verdict(layer, head) for layer in range(layers) for head in range(heads)]
    counts = {does: verdicts.count(does) for does in (NOTHING, BROADCAST, NEITHER)}
    words = ", ".join(f"{does}: {count:,}" for does, count in counts.items())
    return f"Heads with a sink: {sum(counts.values()):,} of {len(verdicts):,} ({words})."


def _draw_numbers(context: PageContext, sinks: Sinks) -> None:
    """The chosen head's verdict and the numbers behind it."""
    at, forward = context.choice, context.forward
    place, verdict = (at.layer, at.head), sinks.verdict(at.layer, at.head)
    sink, rows = sink_rows(forward.mask(at.part, at.layer))
    numbers = {field.name: three(float(getattr(sinks, field.name)[place])) for field in SHOWN}
    sentence = NO_WEIGHT if verdict == NO_SINK else SINK if verdict else NO_VALUE
    words = {
        "verdict": VERDICTS.get(verdict),
        "token": named_at(forward.columns(at.part), sink),
        "least": three(max(SINK_WEIGHT, float(sinks.uniform[place]))),
    }
    st.markdown(f"**Layer {at.layer}, head {at.head}**")
    st.text(sentence.format(**words, **numbers))
    most = min(int(rows.sum()), forward.config.head_width)
    titles = "sink weight", "if uniform", "value", "write", "first direction", f"rank, of {most}"
    table([dict(zip(titles, numbers.values(), strict=True))], right=titles)
    st.caption("The norms of its value and its write are relative to the mean of other tokens.")


def _other_token(opened: OpenModel, forward: ForwardPass, part: str) -> int:
    """The typed token, by default a newline, or the last token where that is none."""
    typed = text_field("first_token", placeholder="Another first token", **UNLABELLED)
    token_id, why = one_token(opened, typed)
    if why:
        say(why)
    if token_id is not None:
        return token_id
    try:
        newline = [t.id for t in opened.tokenizer.encode("\n") if t.end > t.start]
    except TextError:
        newline = []
    if len(newline) == 1 and newline[0] != opened.tokenizer.unk_id:
        return newline[0]
    return forward.rows(part)[-1].id


def _draw_experiments(context: PageContext, other: int) -> None:
    """A row for each experiment, with the loss before and after."""
    opened, forward, at = context.opened, context.forward, context.choice
    if len(forward.rows(at.part)) < FEWEST_TOKENS:
        st.text(SHORT)
        return

    def make(number: int, report: Report) -> SinkEffect:
        return sink_experiment(opened, forward, EXPERIMENTS[number], at.place, other)

    config, base = opened.config, recorded_pass(EditedPass(forward), 0)
    read = base.longest * config.d_model * config.vocab_size * has_words(config)
    cost = sum(multiplications(base, part.name, 0) for part in forward.parts[:2]) + read
    depends = dict.fromkeys(IN_ONE_HEAD, at.place[1:]) | {REPLACED: (other,)}
    effects = measurements(
        opened,
        "sinks",
        [("sink", name, at.part, depends.get(name), input_key(forward)) for name in EXPERIMENTS],
        make,
        cost=len(EXPERIMENTS) * cost,
        doing="Six passes with another sink",
        too_long=TOO_LONG,
    )
    if effects is None:
        return
    label = in_quotes(token_label(opened, other))
    rows = [
        {"experiment": name.format(other=label)} | _cells(context, effect)
        for name, effect in zip(NAMES, effects, strict=True)
    ]
    table(rows, right=[name for name in rows[0] if name != "experiment"])
    if effects[0].before is not None:
        whose = "its own answer" if forward.source else "the same tokens"
        st.caption(
            f"{_compared(effects, label)} The loss is in nats per token, over {whose} in every "
            "row, without the first prediction. A cut weight goes to the other keys. Sink weight "
            "is that of this head, on the token that is first then."
        )


def _compared(effects: list[SinkEffect], other: str) -> str:
    """What the first token, another one and its values do for the model, in a sentence."""
    removed, replaced, *_, zeroed = map(_change, effects)
    return (
        f"Without the first token the loss changes by {removed}, with {other} in its place by "
        f"{replaced}, with its value zeroed in every head by {zeroed}."
    )


def _change(effect: SinkEffect) -> str:
    before = effect.before or 0.0
    change = three(effect.after - before, error_of(before, effect.after))
    return f"+{change}" if change != "0" and effect.after > before else change


def _cells(context: PageContext, effect: SinkEffect) -> dict[str, str]:
    at, config = context.choice, context.opened.config
    weight = "" if effect.weights is None else three(float(effect.weights[at.layer, at.head]))
    words, name = score_words(config), "change of the last residual stream"
    if config.head != "none":
        name = f"{words.divergence}{words.unit and f' in {words.unit}'}"
    cells = {name: three(effect.after)}
    if effect.before is not None:
        losses = {"loss before": three(effect.before), "loss after": three(effect.after)}
        cells = losses | {"change": _change(effect)}
    return cells | {"sink weight": weight}


def sinks_code(
    opened: OpenModel, forward: ForwardPass, part: str, layer: int, head: int, other: int
) -> None:
    sinks = join_sinks([*sinks_by_layer(forward, part)])
    print(sinks.weight)  # layers down, heads across
    print(sinks.verdict(layer, head), sinks.write[layer, head], sinks.first[layer, head])
    for name in EXPERIMENTS:
        print(name, sink_experiment(opened, forward, name, (part, layer, head), other))
