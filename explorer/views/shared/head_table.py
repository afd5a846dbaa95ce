"""One number of every head as a table: layers down, heads across; a click chooses a head."""

from __future__ import annotations

from torch import Tensor

from explorer.analysis.head_metrics import Statistic
from explorer.app.context import page_context
from explorer.app.sidebar import choose_head
from explorer.components.cells import cells

NOTHING_SEEN = "No row of this attention sees anything: type another text."


def head_table(values: Tensor, statistic: Statistic, key: str) -> None:
    """`values` (layers, heads) of one statistic, the chosen head framed."""
    at = page_context().choice
    layers, heads = values.shape
    cells(
        values,
        [str(layer) for layer in range(layers)],
        [str(head) for head in range(heads)],
        key=key,
        selected=(at.layer, at.head),
        on_pick=choose_head,
        unit=statistic.unit,
        top=statistic.top,
    )
