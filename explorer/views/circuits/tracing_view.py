"""Causal tracing on screen: one value patched at a time, token by layer."""

from collections.abc import Sequence

import streamlit as st
import torch

from explorer.analysis.causal_tracing import (
    ATTENTION,
    FEED_FORWARD,
    RESIDUAL,
    TracedGrid,
    Tracing,
    mean_grid,
)
from explorer.analysis.circuits.measure import contrast_of
from explorer.analysis.circuits.outcome import UNITS
from explorer.analysis.circuits.text_pairs import Question, TextPair, TokenPair, token_pair
from explorer.analysis.wiring import plain_wiring
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import choose_token, one_of, token
from explorer.catalog.open_model import OpenModel
from explorer.components.picker import cells
from explorer.inference.model_inputs import ids_of
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText, texts
from explorer.views.circuits.pair_tokens import shown_pair
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.heads_grid import height_across
from explorer.views.shared.measurement import Report, measurement
from explorer.views.shared.tables import strongest_table
from models.interventions import ReplaceAt
from models.trace import trace

PATCHED = {
    "Residual stream": RESIDUAL,
    "Attention output": ATTENTION,
    "Feed-forward output": FEED_FORWARD,
}
DENOISING, NOISING = "Denoising", "Noising"
SHARE, CHANGE = "Share", "Metric"
TOO_LONG_FOR_TRACING = "One pass for every token and layer takes too long here: shorten both texts."


def draw_tracing(context: PageContext, question: Question) -> None:
    """A cell for each token and layer, the largest beside it, and the chosen one in a sentence."""
    opened, at = context.opened, context.choice
    has_mlp = opened.config.d_ff > 0
    offered = [name for name, site in PATCHED.items() if has_mlp or site != FEED_FORWARD]
    with st.container(horizontal=True):
        what = one_of("patched_value", offered)
        way = one_of("patch_way", (DENOISING, NOISING))
        number = one_of("patch_number", (SHARE, CHANGE))
    shown = shown_pair(question)
    pairs = alike(question, shown)
    tracings = [
        Tracing(contrast_of(opened, pair), PATCHED[what], way == DENOISING) for pair in pairs
    ]
    found = measurement(
        opened,
        "tracing",
        ("tracing", *Question(pairs, question.metric).key, what, way),
        lambda report: _measure(tracings, report),
        lambda made: made.values.nbytes,
        cost=sum(each.cost for each in tracings),
        doing="Every layer, by token",
        too_long=TOO_LONG_FOR_TRACING,
    )
    if found is None:
        return
    drawn, numbers = widgets.side_by_side(7, 3)
    unit = "" if number == SHARE else UNITS[question.metric]
    values = (found.share if number == SHARE else found.change).T
    error = _share_error(found, question) if number == SHARE else question.error
    first = min(each.first_changed for each in tracings)
    names = token_labels(shown)
    done = "comes back" if found.denoising else "is lost"
    with drawn:
        place = token("patched_at", names, shown.place, width=320)
        st.text(_in_words(found, question, names, (at.layer, place), what))

        def pick(row: int, layer: int) -> None:
            choose_head(layer, at.head)
            choose_token("patched_at", first + row)

        layers = [str(layer) for layer in range(len(values.T))]
        cells(
            values[first:],
            [f"{name} ({first + row})" for row, name in enumerate(names[first:])],
            layers,
            key="traced_values",
            title=f"{at.called} · {what}, {way.lower()}: what {done} of the difference",
            selected=(place - first, at.layer) if place >= first else None,
            on_pick=pick,
            row_name="token",
            column_name="layer",
            sentence="{row}, layer {column}: {value}",
            unit=unit,
            scale="diverging",
            top=max(1.0, float(values.abs().nan_to_num().max())) if number == SHARE else None,
            height=height_across(len(values) - first, len(layers)),
            written=(names[first:], layers),
            error=error,
        )
        st.caption(_explained(question, pairs, what, way, first))
    with numbers:
        st.markdown("**Largest effects**")
        tokens = [f"{name} ({place})" for place, name in enumerate(names)]
        axes = {"token": tokens, "layer": range(len(layers))}
        strongest_table(values, axes, unit or number.lower(), error=error)
    texts, site, metric = shown.texts, PATCHED[what], question.metric
    lines = script(tracing_code, opened, texts, metric, site, found.denoising)
    code_panel(Tracing.columns, ReplaceAt, script=lines)


def alike(question: Question, shown: TokenPair) -> tuple[TokenPair, ...]:
    """All pairs where they are equally long, else the one on screen alone."""
    lengths = {len(pair.clean) for pair in question.pairs}
    return question.pairs if len(lengths) == 1 else (shown,)


def _measure(tracings: list[Tracing], report: Report) -> TracedGrid:
    grids, tokens = [], tracings[0].tokens
    for n, tracing in enumerate(tracings):
        columns = []
        for column in tracing.columns():
            columns.append(column)
            report((n * tokens + len(columns)) / (tokens * len(tracings)))
        grids.append(tracing.grid(columns))
    return mean_grid(grids)


def token_labels(pair: TokenPair) -> list[VisibleText]:
    """The tokens of both texts where they differ, else the one they share."""
    both = zip(texts(pair.clean), texts(pair.corrupted), strict=True)
    return [VisibleText(one if one == other else f"{one} / {other}") for one, other in both]


def _share_error(found: TracedGrid, question: Question) -> float:
    """How far a share of the difference may be off; 0 where there is no difference to share."""
    difference = abs(found.clean - found.corrupted)
    return question.error / difference if difference else 0.0


def _in_words(
    found: TracedGrid, question: Question, names: Sequence[str], chosen: tuple[int, int], what: str
) -> str:
    """The largest share, and the chosen cell in every number."""
    tokens = found.values.shape[1]
    best = divmod(int(found.share.abs().nan_to_num().argmax()), tokens)
    done = "comes back" if found.denoising else "is lost"
    unit, error = UNITS[question.metric], _share_error(found, question)
    most = "most of the difference" if float(found.share[best]) > 0 else "the largest share"
    largest = (
        f"{what}: {most} {done} at layer {best[0]}, {_named(names, best[1])}: "
        f"{three(float(found.share[best]), error)} of it."
    )
    metric, clean, corrupted = (
        f"{three(value)} {unit}".strip()
        for value in (float(found.values[chosen]), found.clean, found.corrupted)
    )
    share = three(float(found.share[chosen]), error)
    return (
        f"{largest} Chosen: layer {chosen[0]}, {_named(names, chosen[1])}: {share} of it {done}, "
        f"so the metric is {metric}, between {corrupted} (corrupted) and {clean} (clean)."
    )


def _named(names: Sequence[str], place: int) -> str:
    return f"“{names[place]}” ({place})"


def _explained(
    question: Question, pairs: tuple[TokenPair, ...], what: str, way: str, first: int
) -> str:
    passed, other, done = ("corrupted", "clean", "comes back")
    if way == NOISING:
        passed, other, done = ("clean", "corrupted", "is lost")
    said = [
        f"The {passed} text is passed, and the {what.lower()} of one layer at one token is that "
        f"of the {other} text. At 1 the whole difference of the metric {done}, at 0 none of it."
    ]
    if what == "Residual stream":
        said.append("The residual stream is what a layer reads: that of layer 0 is the embedding.")
    if first:
        said.append(
            f"The first {first} tokens are the same in both texts, so patching there changes "
            "nothing: they are left out."
        )
    if len(pairs) > 1:
        said.append(f"Mean over {len(pairs)} pairs; the tokens are those of the pair on screen.")
    elif len(question.pairs) > 1:
        said.append("The pairs have different lengths, so this is the pair on screen alone.")
    return " ".join(said)


def tracing_code(
    opened: OpenModel, texts: TextPair, metric: str, site: str, denoising: bool
) -> None:
    pair, wiring = token_pair(opened, texts, metric), plain_wiring(opened.config)
    clean, corrupted = ids_of([pair.clean]), ids_of([pair.corrupted])
    passed, other = (corrupted, clean) if denoising else (clean, corrupted)
    sites = [f"{wiring.stack}.{layer}.{site}" for layer in range(wiring.layers)]
    values = trace(opened.model, other, sites=sites)

    def patched(site: str, token: int) -> float:
        edit = ReplaceAt(site, token, values[site][0, token])
        output = trace(opened.model, passed, sites=(), edits=[edit]).output
        return float(pair.outcome(output[:, pair.place] if output.dim() == 3 else output))

    tokens = range(len(pair.clean))
    metrics = torch.tensor([[patched(site, token) for site in sites] for token in tokens])
    change = metrics - pair.corrupted_value if denoising else pair.clean_value - metrics
    share = change / (pair.clean_value - pair.corrupted_value)
    print(change, share)  # of this pair: a row for each token, a column for each layer
