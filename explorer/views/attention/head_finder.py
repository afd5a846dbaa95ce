"""Heads by a metric, by two on a map, and by their similarity; a click chooses a head."""

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.head_metrics import HeadMetric, HeadMetrics, HeadRank, ranking
from explorer.analysis.head_similarity import (
    divergence_matrix,
    js_divergence,
    layers_compared,
    pairwise_divergence,
    rows_compared,
    rows_of_heads,
    similarity_order,
)
from explorer.analysis.thumbnails import thumbnails_of
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.head_charts import head_points
from explorer.components import events
from explorer.components.chart import chart
from explorer.components.picker import RankedHead, cells, ranked
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.inference.token_programs import PROGRAMS
from explorer.text.number_format import three
from explorer.views.attention.programs_view import YOURS, overlaps_with
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import (
    NO_VISIBLE_KEYS,
    input_key,
    measured_heads,
    metric_grid,
    metrics_code,
    rows_counted,
    why_unmeasured,
)
from explorer.views.shared.tables import column, facts, table

HEADS_SHOWN = ("6", "12", "24")
HIGHEST, LOWEST = "Highest first", "Lowest first"
FIRST_CHOICES = ("previous", "diagonal")
AXES = {"across": ("distance", "spread"), "up": ("previous", "diagonal", "largest")}
"""The metrics of each axis at first: the first of them that has a value."""
OF_PROGRAMS = {f"Overlap with {of or 'its programs'}": of for of in ("", YOURS, *PROGRAMS)}
OVERLAP = "Overlaps with programs are those on the lines that the view Programs scores."


def draw_finder(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The best heads by the chosen metric, the chosen head, a grid of all; returns the code.

    Its controls stand in the `row`.
    """
    metrics = measured_heads(context)
    if not metrics.by_title:
        say(why_unmeasured(metrics))
        return None
    with row:
        metric, order, count = _choose(metrics.by_title)
        meaning, _, more = metric.meaning.partition(". ")
        st.caption(f"{meaning.removesuffix('.')}.", width=360)
    values = metrics.values[metric.name]
    places = ranking(values, highest=order == HIGHEST)
    named = f"{metric.title}, {order.lower()}"
    best, large = widgets.side_by_side(1, 1)
    with best:
        first = places[: int(count)]
        across = 3 if count == HEADS_SHOWN[0] else 6
        head_strip(context, first, len(places), key="best_heads", order=named, across=across)
    with large:
        widgets.draw_head(context, key="found_head")
    st.caption(f"{more} {rows_counted(metrics, metric)}")
    _draw_rank(context, places, metric, order)
    st.markdown(f"**{metric.title} of every head**")
    metric_grid(context, values, metric, "heads_table")
    widgets.page_links("attention")
    at = context.choice
    return script(metrics_code, context.forward, at.part, at.layer)


def head_strip(
    context: PageContext, places: list[HeadRank], total: int, key: str, order: str, across: int = 6
) -> None:
    """Ranked heads as thumbnails; `order` names the ranking, and a click chooses a head."""
    at = context.choice
    small = thumbnails_of(context.forward, at.part)
    items = [
        RankedHead(
            rank.layer,
            rank.head,
            f"{rank.place} of {total}",
            three(rank.value),
            small.cells[rank.layer, rank.head],
        )
        for rank in places
    ]
    ranked(
        items,
        key=key,
        title=map_title(context.called, at.part, f"Heads by {order[:1].lower()}{order[1:]}"),
        selected=(at.layer, at.head),
        on_pick=choose_head,
        pooled=small.pooled,
        across=min(across, len(items)),
    )


def _choose(metrics: dict[str, HeadMetric]) -> tuple[HeadMetric, str, str]:
    usual = [title for title, metric in metrics.items() if metric.name in FIRST_CHOICES]
    title = one_of("metric", list(metrics), (usual or [*metrics])[0], as_list=True, width=290)
    with st.popover("Adjust", icon=":material/tune:"):
        order = one_of("best_is", (HIGHEST, LOWEST))
        count = one_of("best", HEADS_SHOWN)
    return metrics[title], order, count


def _draw_rank(
    context: PageContext, places: list[HeadRank], metric: HeadMetric, order: str
) -> None:
    """The rank of the chosen head."""
    at = context.choice
    sentence = f"{metric.title} has no value for this head."
    for rank in places:
        if (rank.layer, rank.head) == (at.layer, at.head):
            unit = "" if metric.unit == "weight" else f" {metric.unit}"
            sentence = f"Rank {rank.place} of {len(places)} by {metric.title.lower()}, "
            sentence += f"{order.lower()}: {three(rank.value)}{unit}"
    st.caption(sentence)


def draw_scatter(context: PageContext, row: DeltaGenerator) -> Script | None:
    """All heads on a map of two measures, and the chosen one; its controls stand in the `row`."""
    at, metrics = context.choice, measured_heads(context)
    titles = metrics.by_title
    if not titles:
        say(why_unmeasured(metrics))
        return None
    by_name = {metric.name: title for title, metric in titles.items()}
    of_programs = OF_PROGRAMS if context.part == context.forward.parts[0] else {}
    axes = []
    for key, names in AXES.items():
        usual = next((by_name[name] for name in names if name in by_name), "")
        with row:
            axes.append(one_of(key, [*titles, *of_programs], usual, as_list=True, width=240))
    numbers = {title: metrics.values[metric.name] for title, metric in titles.items()}
    lines = script(metrics_code, context.forward, at.part, at.layer)
    if chosen := [title for title in axes if title in of_programs]:
        if (measured := overlaps_with(context, row, [OF_PROGRAMS[of] for of in chosen])) is None:
            return None
        overlaps, lines = measured
        numbers |= zip(chosen, overlaps, strict=True)
    layers, heads = context.part.layers, context.part.heads
    across, up = (numbers[title].tolist() for title in axes)
    places = product(range(layers), range(heads))
    every = [{"layer": n, "head": h, "x": across[n][h], "y": up[n][h]} for n, h in places]
    drawn = [point for point in every if math.isfinite(point["x"]) and math.isfinite(point["y"])]

    def pick(mark: Mapping[str, Any]) -> None:
        place = events.cell([mark.get("layer"), mark.get("head")], layers, heads)
        if place is not None:
            choose_head(*place)

    large, beside = widgets.side_by_side(3, 2)
    counted = [titles[title] for title in axes if title in titles]
    units = {of.title: f", {of.unit}" for of in counted if of.unit != "weight"}
    with large:
        x, y = (title + units.get(title, "") for title in axes)
        chart(
            head_points(drawn, (x, y), (at.layer, at.head)),
            key="heads_map",
            title=map_title(context.called, at.part, f"{' and '.join(axes)} of every head"),
            height=WINDOW,
            on_pick=pick,
            chosen=at.place,
        )
    with beside:
        widgets.draw_head(context, key="head_of_map")
    missing = len(every) - len(drawn)
    left = f" {missing:,} of {len(every):,} heads lack a value and are left out." * (missing > 0)
    means = [f"{of.title}: {of.meaning} {rows_counted(metrics, of)}" for of in counted]
    means += [OVERLAP] * bool(chosen)
    st.caption(f"A point is a head, and can be chosen.{left} {' '.join(dict.fromkeys(means))}")
    return lines


NEAREST_HEADS = 6
MOST_IN_WORDS = 48
"""With more heads their rows are too narrow for whole words."""

BY_LAYER, BY_SIMILARITY = "By layer", "By similarity"
MEANING = (
    "1: both heads read the same tokens, and as much of each; 0: they read no token in common. "
    "It is 1 − the Jensen–Shannon divergence (how far apart) of their rows in bits, on average."
)


def draw_similarity(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The matrix of all pairs and the heads most similar to the chosen one; returns the code.

    Its control stands in the `row`.
    """
    at, forward, part = context.choice, context.forward, context.part
    if part.layers * part.heads == 1:
        say("This attention has a single head: there is no other to compare it with.")
        return None
    rows, count = rows_compared(forward, at.part), len(forward.rows(at.part))
    if not rows:
        say(NO_VISIBLE_KEYS)
        return None
    with row:
        order = one_of("arranged", (BY_LAYER, BY_SIMILARITY))
    compared = f"{len(rows):,} of {count:,} rows are compared, evenly spaced; fully masked rows "
    compared += "are left out."
    if len(rows) == count:
        compared = f"All {count:,} rows of your text are compared."
    weights = _weights(context, rows)
    layers = layers_compared(part.layers, part.heads)
    heads = list(product(layers, range(part.heads)))
    divergence, by_similarity = _divergence(context, weights, layers)
    places = by_similarity if order == BY_SIMILARITY else list(range(len(heads)))
    pairs, nearest = widgets.side_by_side(3, 2)
    with pairs:
        _draw_matrix(context, divergence[places][:, places], [heads[place] for place in places])
    with nearest:
        _draw_nearest(context, weights)
    last, head = heads[-1]
    short = f"{last}.{head} is layer {last}, head {head}; a row can be chosen."
    if len(layers) < part.layers:
        left = tuple(sorted({*range(part.layers)} - {*layers}))
        some, done = (left, "left out") if len(left) < len(layers) else (layers, "drawn")
        short += (
            f" Of {part.layers * part.heads:,} heads those of layer{'s' * (len(some) > 1)} "
            f"{', '.join(map(str, some))} are {done}: with all of them a cell would be too small "
            "to point at."
        )
    st.caption(f"{MEANING} {compared} {short}")
    return script(similarity_code, forward, *at.place)


def _draw_nearest(context: PageContext, weights: Tensor) -> None:
    own = context.choice.layer * context.part.heads + context.choice.head
    similarity = 1 - js_divergence(weights[own], weights)
    similarity[own] = torch.nan  # it is not compared with itself
    places = ranking(similarity.reshape(context.part.layers, -1))
    if not places:
        say("The weights of this head are NaN, so it has no similarity to others.")
        return
    at = context.choice
    order = f"Similarity to layer {at.layer}, head {at.head}"
    head_strip(
        context, places[:NEAREST_HEADS], len(places), key="nearest_heads", order=order, across=2
    )


def _draw_matrix(context: PageContext, divergence: Tensor, heads: list[tuple[int, int]]) -> None:
    names = [f"layer {layer} · head {head}" for layer, head in heads]
    short = [f"{layer}.{head}" for layer, head in heads]
    at = context.choice
    chosen = (at.layer, at.head)
    own = heads.index(chosen) if chosen in heads else None

    def pick(row: int, column: int) -> None:
        choose_head(*heads[row])

    cells(
        1 - divergence,
        names,
        names,
        key="similarity",
        title=map_title(context.called, at.part, "Similarity of every two heads"),
        short_names=(names if len(heads) <= MOST_IN_WORDS else short, short),
        selected=None if own is None else (own, own),
        on_pick=pick,
        row_name="head",
        sentence="{row} and {column}: {value}",
        unit="similarity",
        top=1.0,
    )


def _weights(context: PageContext, rows: tuple[int, ...]) -> Tensor:
    """These rows of all heads, (layers × heads, r, k)."""
    forward, part = context.forward, context.part

    def make() -> Tensor:
        steps = rows_of_heads(forward, part.name, rows)
        return torch.cat(with_bar(steps, part.layers, "Computing the weights, by layer"))

    key = ("compared rows", part.name, input_key(forward))
    return cached(context.opened, key, make)


def _divergence(
    context: PageContext, weights: Tensor, layers: tuple[int, ...]
) -> tuple[Tensor, list[int]]:
    """The divergence (n, n) of every two heads of these layers, and their order by similarity."""
    part = context.part

    def make() -> tuple[Tensor, list[int]]:
        some = weights.unflatten(0, (part.layers, part.heads))[list(layers)].flatten(0, 1)
        steps = pairwise_divergence(some)
        divergence = divergence_matrix(with_bar(steps, len(some), "Comparing the heads"))
        return divergence, similarity_order(divergence)

    key = ("similarity", part.name, input_key(context.forward))
    return cached(context.opened, key, make)


def similarity_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    rows = rows_compared(forward, part)
    every, heads = torch.cat([*rows_of_heads(forward, part, rows)]), forward.part(part).heads
    similarity = 1 - js_divergence(every[layer * heads + head], every)
    print(similarity.reshape(-1, heads))  # layers down, heads across


def draw_head_metrics(context: PageContext, opened: OpenModel) -> Script:
    """Draw one metric, layers down and heads across; then every metric of every head."""
    at, forward = context.choice, context.forward
    metrics = measured_heads(context)
    if metrics.by_title:
        _draw_metrics(context, metrics)
    else:
        say(why_unmeasured(metrics))
    widgets.notes(forward.notes)
    return script(metrics_code, forward, at.part, at.layer)


def _draw_metrics(context: PageContext, metrics: HeadMetrics) -> None:
    layer, head, values = context.choice.layer, context.choice.head, metrics.values
    by_title = metrics.by_title
    title = one_of("statistic", list(by_title), next(iter(by_title)), label_visibility="collapsed")
    chosen = by_title[title]
    grid_column, numbers = widgets.side_by_side(7, 3)
    with grid_column:
        st.markdown(f"**{title}** · {context.part.words.name}, layers down, heads across")
        st.caption(f"{chosen.meaning} {rows_counted(metrics, chosen)}")
        metric_grid(context, metrics.values[chosen.name], chosen, "head_statistics")
    with numbers:
        st.markdown(f"**Layer {layer}, head {head}**")
        facts([(name, three(float(values[of.name][layer, head]))) for name, of in by_title.items()])
    st.markdown("**Every head**")
    depth, heads = values["entropy"].shape
    places = {"layer": torch.arange(depth).repeat_interleave(heads).tolist()}
    places["head"] = [*range(heads)] * depth
    numbers_of = {of.title: column(values[of.name].flatten()) for of in by_title.values()}
    number = st.column_config.NumberColumn
    config = {
        of.title: number(format="%.3f" if of.top else "%.2f", help=of.meaning)
        for of in by_title.values()
    }
    table({**places, **numbers_of}, config=config)
