"""Every head switched off or patched at once, one number each; a map tested by cutting edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis import ablation, output_change
from explorer.analysis.faithfulness import (
    DRAWS,
    Faithfulness,
    TooManyEdges,
    faithfulness,
    work,
)
from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.progress import bar, with_bar
from explorer.app.sidebar import choose_head
from explorer.catalog.entries import Opened
from explorer.charts.before_after import Point, by_edges
from explorer.components.cells import cells
from explorer.inference.answers import option_name
from explorer.inference.edited_pass import Edited
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept
from explorer.interventions.core_edits import Misfit, head_out, same_length
from explorer.interventions.edit_links import LONGEST_TEXT
from explorer.interventions.edits import AblateHead
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.views.shared import edit_history, widgets

KL, LOGIT = "KL", "Change of the likeliest logit"
OFF, PATCHED = "Switched off", "Patched"
OPENS, ABLATES = "Opens the head", "Ablates the head"
THIS_HEAD, WHOLE_LAYER = "This head", "The whole layer"
CHART_HEIGHT = 340
TOO_LONG = "One pass for every head of this model takes too long: shorten the text."
NO_HEAD = "This model ends in vectors, so no answer comes out that could be compared."


def every_head(opened: Opened, forward: ForwardPass, passed: Edited, place: int) -> None:
    """One cell a head: what is different at the chosen position without it, or with another's."""
    if opened.config.head == "none":
        st.text(NO_HEAD)
        return
    at = page_context().choice
    with st.container(horizontal=True):
        way = one_of("Every head is", "heads_are", (OFF, PATCHED))
        number = one_of("Number", "number", (KL, LOGIT))
        one_of("A click", "click", (OPENS, ABLATES))
    text, instead = "", None
    if way == PATCHED:
        text = _another_sentence()
        try:
            instead = _outputs(opened, forward, at.part, text)
        except Misfit as error:
            st.text(str(error))
            return
    count = forward.part(at.part).layers
    once = [
        ablation.multiplications(opened.model, given(forward), at.part, layer)
        for layer in range(count)
    ]
    takes = forward.part(at.part).heads * sum(once)
    if takes > ablation.MOST:
        st.text(TOO_LONG)
        return
    if not _started("heads", (opened.name, *_of(passed), at.part, place, text), takes):
        return
    found = _measured(opened, passed, at.part, place, text, instead)
    values = found[0 if number == KL else 1]
    layers, heads = values.shape

    def pick(layer: int, head: int) -> None:
        choose_head(layer, head)
        # Chosen perhaps since this was drawn: the server may hear of both at once.
        if st.session_state["click"] == ABLATES:
            edit_history.add(AblateHead(at.part, layer, head))

    drawn, numbers = widgets.side_by_side(6, 4)
    with drawn:
        cells(
            values,
            [str(layer) for layer in range(layers)],
            [str(head) for head in range(heads)],
            key="heads_off",
            selected=(at.layer, at.head),
            on_pick=pick,
            unit="nats" if number == KL else "logits",
            scale="sequential" if number == KL else "diverging",
        )
        is_kl = number == KL
        what = "KL(before ‖ after)" if is_kl else _likeliest(opened, passed.forward, place)
        made = "as it is over the other sentence" if text else "set to zero"
        st.caption(f"Each head alone {made}, {_in(passed)}: {what} at the chosen position.")
    with numbers:
        st.markdown("**Matters most**")
        order = values.abs().flatten().argsort(descending=True)[:8].tolist()
        st.dataframe(
            {
                "layer": [i // heads for i in order],
                "head": [i % heads for i in order],
                "nats" if number == KL else "logits": [
                    three(float(values.flatten()[i])) for i in order
                ],
            },
            hide_index=True,
        )


def _likeliest(opened: Opened, forward: ForwardPass, place: int) -> str:
    here = output_change.logits(forward, place)
    best = option_name(opened, int(here.argmax()))
    return f"how the logit of “{literal(best)}” changes"


def _in(passed: Edited) -> str:
    """In which pass something more is changed."""
    return "in the pass with your edits" if passed.made else "in the pass as it is"


def _of(passed: Edited) -> tuple[Hashable, ...]:
    """What tells this pass from others of the model."""
    return passed.forward.text, passed.forward.pair, passed.made


def _another_sentence() -> str:
    typed = st.text_input(
        "Another sentence of as many tokens",
        max_chars=LONGEST_TEXT,
        **url.bound("heads_from"),
    )
    return (typed or "").strip()


def _outputs(opened: Opened, forward: ForwardPass, part: str, text: str) -> Callable[[int], Tensor]:
    """What the heads of a layer give over another text, (heads, tokens, d_head)."""
    other = same_length(opened, forward, part, text)
    heads = range(forward.part(part).heads)
    return lambda layer: torch.stack([head_out(other, part, layer, head) for head in heads])


def _measured(
    opened: Opened,
    passed: Edited,
    part: str,
    place: int,
    text: str,
    instead: Callable[[int], Tensor] | None,
) -> Tensor:
    """(2, layers, heads): KL in nats, and the change of the logit of the likeliest option."""
    forward, edits = passed.forward, passed.in_core
    layers = forward.part(part).layers
    before = output_change.logits(forward, place)
    likeliest = int(before.argmax())

    def layer_by_layer() -> Tensor:
        steps = ablation.every_head(
            opened.model, forward.trace, given(forward), part, layers, place, edits, instead
        )
        rows = (
            torch.stack([output_change.kl(before, seen), (seen - before)[:, likeliest].double()])
            for seen in steps
        )
        found = with_bar(rows, layers, "Every head, by layer")
        return torch.stack(found, dim=1)

    key = ("heads off", *_of(passed), part, place, text)
    return kept(opened, key, layer_by_layer, lambda made: made.nbytes)


def _started(name: str, asked: Hashable, takes: int) -> bool:
    """Whether to begin: at once where it is quick, else when the reader has asked for just this."""
    begun = f"_begun_{name}"
    if takes <= ablation.AT_ONCE or st.session_state.get(begun) == asked:
        return True
    seconds = 3 * takes / ablation.AT_ONCE
    st.text(f"This runs a large part of the model many times: about {seconds:.0f} seconds.")
    st.button("Run", key=f"begin_{name}", on_click=_begin, args=(begun, asked), type="primary")
    return False


def _begin(begun: str, asked: Hashable) -> None:
    st.session_state[begun] = asked


def given(forward: ForwardPass) -> tuple[Tensor, ...]:
    """What the pass was given: ids, or source and target."""
    return tuple(ids_of([tokens]) for tokens in (forward.source, forward.target) if tokens)


def tested(opened: Opened, passed: Edited, place: int) -> None:
    """The strongest edges of the map cut, beside as many random ones."""
    if opened.config.head == "none":
        st.text(NO_HEAD)
        return
    at, forward = page_context().choice, passed.forward
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scope = one_of("Edges of", "edges_of", (THIS_HEAD, WHOLE_LAYER))
        seed = int(
            st.number_input(
                "Seed of the draws",
                min_value=0,
                max_value=9_999,
                value=0,
                **url.bound("draw_seed"),
                width=160,
            )
            or 0
        )
    head = at.head if scope == THIS_HEAD else None
    key = ("faithful", *_of(passed), at.part, at.layer, head, place, seed)
    own = opened.model, forward.trace, given(forward), at.part, at.layer, head
    try:
        takes = work(*own)
    except TooManyEdges as error:
        st.text(str(error))
        return
    if not _started("cuts", (opened.name, *key), takes):
        return
    before = output_change.logits(forward, place)

    def make() -> Faithfulness:
        with bar("Cutting edges") as report:
            return faithfulness(*own, place, before, seed, edits=passed.in_core, report=report)

    found = kept(opened, key, make, lambda made: made.random.nbytes)
    if not found.counts:
        st.text("No query looks at anything here, so there is no edge to cut.")
        return
    with st.container(key="faithfulness"):
        st.vega_lite_chart(by_edges(points(found)), height=CHART_HEIGHT)
    of = f"layer {at.layer}, head {at.head}" if head is not None else f"layer {at.layer}"
    st.caption(
        f"Edges of {of} set to zero, the strongest first or drawn at random ({DRAWS} draws: mean "
        f"and range), {_in(passed)}. There are {found.edges:,} edges; the last "
        "point has them all. If the strongest change no more than random ones, the map does not "
        "tell what matters here."
    )


def points(found: Faithfulness) -> list[Point]:
    return [
        Point(count, float(best), float(draws.mean()), float(draws.min()), float(draws.max()))
        for count, best, draws in zip(found.counts, found.strongest, found.random, strict=True)
    ]
