"""The head metrics of the reader's text, computed once for all pages, and a table of one metric."""

from torch import Tensor

from explorer.analysis.head_metrics import HeadMetric, HeadMetrics, join_layers, metrics_by_layer
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept

NO_VISIBLE_KEYS = "Every row of this attention is fully masked: enter another text."
NO_WEIGHTS = "The weights of every head are NaN, so no metric has a value: choose another model."


def measured_heads(context: PageContext, part: str = "") -> HeadMetrics:
    """The metrics of the chosen kind of attention, or of this one; a bar while it takes long."""
    forward, part = context.forward, part or context.choice.part
    total = forward.part(part).layers
    return kept(
        context.opened,
        ("heads", part, input_key(forward)),
        lambda: join_layers(
            with_bar(metrics_by_layer(forward, part), total, "Measuring the heads, by layer")
        ),
        lambda made: sum(values.nbytes for values in made.values.values()),
    )


def input_key(forward: ForwardPass) -> tuple[tuple[int, int], ...]:
    """The input of the model, as a key for what was computed from it."""
    return tuple((token.id, token.segment) for token in (*forward.source, *forward.target))


def why_unmeasured(found: HeadMetrics) -> str:
    """Why no metric has a value for any head."""
    return NO_VISIBLE_KEYS if found.fully_masked == found.rows else NO_WEIGHTS


def rows_counted(found: HeadMetrics, metric: HeadMetric) -> str:
    """Over how many rows this metric is the mean, and how many of the others are fully masked."""
    counted = found.counted[metric.name]
    least, most = int(counted.min()), int(counted.max())
    if least == most == found.rows:
        return f"Mean over {found.rows:,} rows, one for each query."
    several = f"{least:,} to {most:,}, by layer," if least < most else f"{most:,}"
    masked = f" {found.fully_masked:,} are fully masked and left out." if found.fully_masked else ""
    return f"Mean over {several} of {found.rows:,} rows.{masked}"


def head_table(context: PageContext, values: Tensor, metric: HeadMetric, key: str) -> None:
    """`values` (layers, heads) of one metric, the chosen head framed; a click chooses a head."""
    at, (layers, heads) = context.choice, values.shape
    cells(
        values,
        [str(layer) for layer in range(layers)],
        [str(head) for head in range(heads)],
        key=key,
        title=map_title(at.called, at.part, f"{metric.title} of every head"),
        selected=(at.layer, at.head),
        on_pick=choose_head,
        unit=metric.unit,
        top=metric.top,
    )


def metrics_code(forward: ForwardPass, part: str, layer: int) -> None:
    measured = join_layers([*metrics_by_layer(forward, part)])
    found = {name: values[layer] for name, values in measured.values.items()}
    print(found)  # a number for each head of the layer
