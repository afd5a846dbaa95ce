"""A grid with a number for every head, and the head metrics of the reader's text."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from explorer.analysis.head_metrics import HeadMetric, HeadMetrics, join_layers, metrics_by_layer
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached

CROSS = "decoder.cross_attn"
NO_VISIBLE_KEYS = "Every row of this attention is fully masked: enter another text."
NO_WEIGHTS = "The weights of every head are NaN, so no metric has a value: choose another model."


def measured_heads(context: PageContext, part: str = "") -> HeadMetrics:
    """The head metrics of this `part`, by default the chosen one, with a progress bar."""
    forward, part = context.forward, part or context.choice.part
    key, total = ("heads", part, input_key(forward)), forward.part(part).layers
    layers = metrics_by_layer(forward, part)
    doing = "Measuring the heads, by layer"
    return cached(context.opened, key, lambda: join_layers(with_bar(layers, total, doing)))


def input_key(forward: ForwardPass) -> tuple[tuple[int, int], ...]:
    """The input of the model, as a key for results that depend on it."""
    return tuple((token.id, token.segment) for token in (*forward.source, *forward.target))


def why_unmeasured(metrics: HeadMetrics) -> str:
    """Why no metric has a value for any head."""
    return NO_VISIBLE_KEYS if metrics.fully_masked == metrics.rows else NO_WEIGHTS


def rows_counted(metrics: HeadMetrics, metric: HeadMetric) -> str:
    """The number of rows that this metric is the mean of, and how many rows are fully masked."""
    counted = metrics.counted[metric.name]
    least, most = int(counted.min()), int(counted.max())
    if least == most == metrics.rows:
        return f"Mean over {metrics.rows:,} rows, one for each query."
    several = f"{least:,} to {most:,}, by layer," if least < most else f"{most:,}"
    count = metrics.fully_masked
    masked = f" {count:,} are fully masked and left out." if count else ""
    return f"Mean over {several} of {metrics.rows:,} rows.{masked}"


def heads_grid(
    context: PageContext,
    values: Tensor,
    *,
    key: str,
    title: str,
    parts: Sequence[str] = (),
    on_pick: Callable[[int, int, str], None] = choose_head,
    **drawing: Any,
) -> None:
    """`values` (layers, heads), the chosen head framed; a click chooses a head.

    A last column may have the feed-forward layers. `parts` are the kinds of attention whose heads
    are drawn side by side, by default the chosen one. `drawing` are more arguments of `cells`.
    """
    at, layers = context.choice, [str(layer) for layer in range(len(values))]
    heads = [(part, head) for part in parts or (at.part,) for head in range(context.part.heads)]
    short = [f"{'cross ' * (part == CROSS and len(parts) > 1)}{head}" for part, head in heads]
    names, kind, called = short, "head", "head {column}"
    if values.shape[1] > len(heads):
        names = [
            f"{'cross-attention ' * name.startswith('c')}head {name.split()[-1]}" for name in short
        ]
        names, short, kind, called = [*names, "feed-forward"], [*short, "MLP"], "part", "{column}"
    chosen = (at.part, at.head)
    selected = (at.layer, heads.index(chosen)) if chosen in heads else None

    def pick(layer: int, column: int) -> None:
        if column < len(heads):
            part, head = heads[column]
            on_pick(layer, head, part)

    cells(
        values,
        layers,
        names,
        key=key,
        title=title,
        selected=selected,
        on_pick=pick,
        column_name=kind,
        sentence=f"Layer {{row}}, {called}: {{value}}",
        short_names=(layers, short),
        **drawing,
    )


def metric_grid(context: PageContext, values: Tensor, metric: HeadMetric, key: str) -> None:
    """The `values` (layers, heads) of one metric."""
    at = context.choice
    title = map_title(context.called, at.part, f"{metric.title} of every head")
    heads_grid(context, values, key=key, title=title, unit=metric.unit, top=metric.top)


def metrics_code(forward: ForwardPass, part: str, layer: int) -> None:
    metrics = join_layers([*metrics_by_layer(forward, part)])
    scores = {name: values[layer] for name, values in metrics.values.items()}
    print(scores)  # a number for each head of the layer
