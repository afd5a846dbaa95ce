"""Patching: causal tracing by token and layer, and path patching by edge."""

import math
from collections.abc import Sequence

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.ablation_and_patching import exact_edges
from explorer.analysis.batch_edits import AddByRow
from explorer.analysis.causal_tracing import (
    ATTENTION,
    FEED_FORWARD,
    RESIDUAL,
    TracedGrid,
    Tracing,
    mean_grid,
)
from explorer.analysis.circuit_metrics import UNITS
from explorer.analysis.circuits.circuit_scores import contrast_of, mean_over_pairs, node_of
from explorer.analysis.circuits.text_pairs import Question, TextPair, TokenPair, token_pair
from explorer.analysis.wiring import (
    Place,
    Reads,
    Wiring,
    WiringError,
    edge_grid,
    edges_from,
    edges_into,
    plain_wiring,
    wiring_of,
)
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import choose, one_of, token
from explorer.catalog.opened_model import OpenModel
from explorer.components.picker import cells
from explorer.inference.model_inputs import ids_of
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText, texts
from explorer.views.circuits.question_form import shown_pair
from explorer.views.circuits.question_scores import STRONGEST, cost_of_branches
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.heads_grid import heads_grid
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
FROM, INTO = "From this head", "Into this head"
INPUT_NAMES: dict[str, Reads] = {"Queries": "q", "Keys": "k", "Values": "v"}
TOO_LONG_FOR_TRACING = "One pass for every token and layer takes too long here: shorten both texts."
TOO_LONG_FOR_PATHS = (
    "A pass for every edge takes too long here: shorten both texts or choose a later layer."
)


def draw_tracing(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """A cell for each token and layer, a sentence on the chosen one, and the largest effects."""
    opened, at = context.opened, context.choice
    has_mlp = opened.config.d_ff > 0
    offered = [name for name, site in PATCHED.items() if has_mlp or site != FEED_FORWARD]
    with adjust, st.container(horizontal=True):
        what = one_of("patched_value", offered)
        way = one_of("patch_way", (DENOISING, NOISING))
        number = one_of("patch_number", (SHARE, CHANGE))
    on_screen = shown_pair(question)
    pairs = pairs_to_average(question, on_screen)
    site, denoises = PATCHED[what], way == DENOISING
    tracings = [Tracing(contrast_of(opened, pair), site, denoises) for pair in pairs]

    def measure(report: Report) -> TracedGrid:
        grids, tokens = [], tracings[0].tokens
        for n, tracing in enumerate(tracings):
            columns = []
            for column in tracing.columns():
                columns.append(column)
                report((n * tokens + len(columns)) / (tokens * len(tracings)))
            grids.append(tracing.grid(columns))
        return mean_grid(grids)

    grid = measurement(
        opened,
        "tracing",
        ("tracing", *Question(pairs, question.metric).key, what, way),
        measure,
        cost=sum(tracing.cost for tracing in tracings),
        doing="Every layer, by token",
        too_long=TOO_LONG_FOR_TRACING,
    )
    if grid is None:
        return
    picture, numbers = widgets.side_by_side(7, 3)
    unit = "" if number == SHARE else UNITS[question.metric]
    values = (grid.share if number == SHARE else grid.change).T
    error = _share_error(grid, question) if number == SHARE else question.error
    first = min(tracing.first_changed for tracing in tracings)
    names = token_labels(on_screen, grid.denoising)
    effect = "comes back" if grid.denoising else "is lost"
    usual = on_screen.corrupted_place if grid.denoising else on_screen.place
    with adjust:
        place = token("patched_at", names, usual, width=320)
    with picture:

        def pick(row: int, layer: int) -> None:
            choose_head(layer, at.head)
            choose("patched_at", first + row)

        layers = [str(layer) for layer in range(len(values.T))]
        cells(
            values[first:],
            [f"{name} ({first + row})" for row, name in enumerate(names[first:])],
            layers,
            key="traced_values",
            title=f"{context.called} · {what}, {way.lower()}: what {effect} of the difference",
            selected=(place - first, at.layer) if place >= first else None,
            on_pick=pick,
            row_name="token",
            column_name="layer",
            sentence="{row}, layer {column}: {value}",
            unit=unit,
            scale="diverging",
            top=max(1.0, float(values.abs().nan_to_num().max())) if number == SHARE else None,
            short_names=(names[first:], layers),
            error=error,
        )
        st.text(tracing_in_words(grid, question, names, (at.layer, place), what))
        st.caption(_tracing_explained(question, pairs, what, way, first))
    with numbers:
        st.markdown("**Largest effects**")
        tokens = [f"{name} ({place})" for place, name in enumerate(names)]
        axes = {"token": tokens, "layer": range(len(layers))}
        strongest_table(values, axes, unit or number.lower(), error=error)
    lines = script(tracing_code, opened, on_screen.texts, question.metric, site, denoises)
    code_panel(Tracing.columns, ReplaceAt, script=lines)


def pairs_to_average(question: Question, on_screen: TokenPair) -> tuple[TokenPair, ...]:
    """All pairs where they are equally long, else the pair on screen alone."""
    lengths = {(len(pair.clean), len(pair.corrupted)) for pair in question.pairs}
    return question.pairs if len(lengths) == 1 else (on_screen,)


def token_labels(pair: TokenPair, of_corrupted: bool = False) -> list[VisibleText]:
    """At each position of one text its token and its partner, clean first, or the one they share.

    A token without a partner is alone.
    """
    clean, corrupted = texts(pair.clean), texts(pair.corrupted)
    names = list(corrupted if of_corrupted else clean)
    for place, other in pair.partners:
        a, b = clean[place], corrupted[other]
        names[other if of_corrupted else place] = a if a == b else f"{a} / {b}"
    return [*map(VisibleText, names)]


def _share_error(grid: TracedGrid, question: Question) -> float:
    """The numerical error of a share of the difference; 0 where there is no difference."""
    difference = abs(grid.clean - grid.corrupted)
    return question.error / difference if difference else 0.0


def tracing_in_words(
    grid: TracedGrid, question: Question, names: Sequence[str], chosen: tuple[int, int], what: str
) -> str:
    """The largest share, and the share and the metric of the chosen cell."""
    effect = "comes back" if grid.denoising else "is lost"
    unit, error = UNITS[question.metric], _share_error(grid, question)
    metric, clean, corrupted = (
        f"{three(value)} {unit}".strip()
        for value in (float(grid.values[chosen]), grid.clean, grid.corrupted)
    )
    shares = grid.share.where(grid.share.isfinite(), -torch.inf)
    layer, place = divmod(int(shares.argmax()), shares.shape[1])
    most = three(float(shares[layer, place]), error)
    near = shares[shares >= 0.9 * shares[layer, place]].tolist()
    others = sum(three(value, error) == most for value in near) - 1
    share, has_share = float(grid.share[chosen]), bool(shares[layer, place].isfinite())
    if not has_share:
        largest = f"{what}: there is no difference between finite metrics to take a share of."
    elif shares[layer, place] <= 0 or most == "0":
        largest = f"{what}: at no layer and token is the share of the difference above 0."
    else:
        also = f", and as much at {others:,} more" if others else ""
        largest = (
            f"{what}: the largest share of the difference {effect} at layer {layer}, "
            f"“{names[place]}” ({place}){also}: {most} of it."
        )
    taken = f"{three(share, error)} of it {effect}, so " if has_share else ""
    return (
        f"{largest} Chosen: layer {chosen[0]}, “{names[chosen[1]]}” ({chosen[1]}): {taken}"
        f"the metric is {metric}, where it is {corrupted} (corrupted) and {clean} (clean)."
    )


def _tracing_explained(
    question: Question, pairs: tuple[TokenPair, ...], what: str, way: str, first: int
) -> str:
    base, source, effect = ("corrupted", "clean", "comes back")
    if way == NOISING:
        base, source, effect = ("clean", "corrupted", "is lost")
    text = (
        f"The model reads the {base} text, and the {what.lower()} of one layer at one token is "
        f"replaced by that of the {source} text. At 1 the whole difference of the metric {effect}, "
        "at 0 none of it."
    )
    if what == "Residual stream":
        text += " The residual stream is what a layer reads: that of layer 0 is the embedding."
    if first:
        text += (
            f" The first {first} tokens are the same in both texts, so patching there changes "
            "nothing: they are left out."
        )
    if len(pairs) > 1:
        text += f" Mean over {len(pairs)} pairs; the tokens are those of the pair on screen."
    elif len(question.pairs) > 1:
        text += " The pairs have different lengths, so only the pair on screen counts."
    return text


def tracing_code(
    opened: OpenModel, texts: TextPair, metric: str, site: str, denoising: bool
) -> None:
    pair, wiring = token_pair(opened, texts, metric), plain_wiring(opened.config)
    clean, corrupted = ids_of([pair.clean]), ids_of([pair.corrupted])
    base, source = (corrupted, clean) if denoising else (clean, corrupted)
    place = pair.corrupted_place if denoising else pair.place
    partners = dict((b, a) if denoising else (a, b) for a, b in pair.partners)
    sites = [f"{wiring.stack}.{layer}.{site}" for layer in range(wiring.layers)]
    values = trace(opened.model, source, sites=sites)

    def patched(site: str, token: int) -> float:
        is_partner = token in partners  # others keep their own value
        edits = [ReplaceAt(site, token, values[site][0, partners[token]])] if is_partner else []
        output = trace(opened.model, base, sites=(), edits=edits).output
        return float(pair.outcome(output[:, place] if output.dim() == 3 else output))

    tokens = range(base.shape[1])
    metrics = torch.tensor([[patched(site, token) for site in sites] for token in tokens])
    change = metrics - pair.corrupted_value if denoising else pair.clean_value - metrics
    share = change / (pair.clean_value - pair.corrupted_value)
    print(change, share)  # of this pair: a row for each token, a column for each layer


def draw_paths(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """A cell for every head at the other end of an edge, and the strongest edges beside it."""
    opened, at = context.opened, context.choice
    try:
        wiring = wiring_of(opened.config)
    except WiringError as error:
        st.text(str(error))
        return
    with adjust, st.container(horizontal=True):
        is_last = at.layer == wiring.layers - 1 > 0  # nothing but the output reads a last head
        is_sender = one_of("path_end", (FROM, INTO), INTO if is_last else FROM) == FROM
        input_name = one_of("path_reads", tuple(INPUT_NAMES), "Queries" if is_sender else "Keys")
    reads = INPUT_NAMES[input_name]
    edges = (edges_from if is_sender else edges_into)(wiring, at.layer, at.head, reads)

    def measure(report: Report) -> list[float]:
        lost, total = [0.0] * len(edges), len(edges) * len(question.pairs)
        for done, (place, part) in enumerate(mean_over_pairs(opened, question, edges)):
            lost[place] += part
            report((done + 1) / total)
        return lost

    values = measurement(
        opened,
        "path_patching",
        ("paths", *question.key, at.layer, at.head, is_sender, reads),
        measure,
        cost=cost_of_branches(opened, question) * len(edges),
        doing="Edge by edge",
        too_long=TOO_LONG_FOR_PATHS,
    )
    if values is None:
        return
    ends = [wiring.rows[row] if is_sender else wiring.columns[column] for row, column in edges]
    titles, unit = [edge_title(wiring, edge) for edge in edges], UNITS[question.metric]
    way = f"from head {at.layer}.{at.head} into the {input_name.lower()} of every later head"
    if not is_sender:
        way = f"from every earlier head into the {input_name.lower()} of head {at.layer}.{at.head}"
    picture, numbers = widgets.side_by_side(6, 4)
    with picture:
        heads_grid(
            context,
            edge_grid(wiring, ends, values).mT,
            key="path_ends",
            title=f"{context.called} · Edges {way}",
            unit=unit,
            absent="no edge",
            scale="diverging",
            error=question.error,
        )
        st.text(paths_in_words(question, ends, titles, values))
        st.caption(_paths_explained(context, question, is_sender, reads))
    with numbers:
        st.markdown("**Strongest edges**")
        axes = {"edge": titles}
        strongest_table(values, axes, unit or "metric", most=STRONGEST, error=question.error)
    lines = script(paths_code, opened, question, at.layer, at.head, reads, is_sender)
    code_panel(exact_edges, AddByRow, script=lines)


def edge_title(wiring: Wiring, edge: tuple[int, int]) -> str:
    """An edge in short, such as “20.0 → 23.2 q”."""
    reader = wiring.rows[edge[0]]
    to = f"{node_of(reader).title} {reader.reads}".strip()
    return f"{node_of(wiring.columns[edge[1]]).title} → {to}"


def paths_in_words(
    question: Question, ends: Sequence[Place], titles: Sequence[str], values: Sequence[float]
) -> str:
    """The strongest edge, and the one to the logits or from the embedding."""
    unit, error = UNITS[question.metric], question.error
    known = {at: abs(value) for at, value in enumerate(values) if math.isfinite(value)}
    best = max(known, key=known.__getitem__, default=None)
    if best is None or three(known[best], error) == "0":
        first = f"None of {len(values):,} edges changes the metric by a finite number above 0."
        best = None
    else:
        equal = [at for at in known if three(known[at], error) == three(known[best], error)]
        also = f", and {len(equal) - 1:,} more are as strong" if len(equal) > 1 else ""
        among = f"Strongest of {len(known):,} edges" if len(known) > 1 else "The only edge"
        of_known = "" if len(known) == len(values) else " with a finite value"
        number = f"{three(values[best], error)} {unit}".rstrip()
        first = f"{among}{of_known}: {titles[best]}, with {number}{also}."
    others = [
        f"{titles[at]}: {f'{three(values[at], error)} {unit}'.rstrip()}."
        for at, end in enumerate(ends)
        if at != best and end.kind in ("logits", "embedding")
    ]
    return " ".join([first, *others])


def _paths_explained(
    context: PageContext, question: Question, is_sender: bool, reads: Reads
) -> str:
    config = context.opened.config
    text = (
        "How much of the metric is lost when the receiver alone reads what the sender wrote for "
        "the corrupted text: nothing between them changes, everything after the receiver does. "
        "MLP is the feed-forward layer; a hatched cell has no edge. A cell opens the head at the "
        "other end of its edge."
    )
    if is_sender and config.d_ff:
        text += " MLP layers and logits have only one input."
    if reads != "q" and config.kv_heads < config.n_heads:
        text += (
            " Heads of a group share keys and values here; only this head's copy of them changes."
        )
    if len(question.pairs) > 1:
        text += f" Mean over {len(question.pairs)} pairs."
    return text


def paths_code(
    opened: OpenModel, question: Question, layer: int, head: int, reads: Reads, is_sender: bool
) -> None:
    wiring = wiring_of(opened.config)
    edges = (edges_from if is_sender else edges_into)(wiring, layer, head, reads)
    lost = torch.zeros(len(edges))
    for at, part in mean_over_pairs(opened, question, edges):
        lost[at] += part
    for (reader, writer), value in zip(edges, lost.tolist(), strict=True):
        print(wiring.columns[writer], wiring.rows[reader], value)
