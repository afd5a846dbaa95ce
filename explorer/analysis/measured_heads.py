"""What every head does with the reader's text, in numbers, counted once for all pages."""

from __future__ import annotations

from explorer.analysis.head_metrics import HeadStatistics, joined, layers
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept


def measured(opened: Opened, forward: ForwardPass, part: str) -> HeadStatistics:
    """Counted once for what the model has read, a layer at a time."""
    total = forward.part(part).layers
    return kept(
        opened,
        ("heads", part, tokens_read(forward)),
        lambda: joined(with_bar(layers(forward, part), total, "Reading the heads, by layer")),
        lambda made: sum(v.nbytes for v in made.values.values()),
    )


def tokens_read(forward: ForwardPass) -> tuple[tuple[int, int], ...]:
    """What the model has read, as a key to keep under what was found."""
    return tuple((token.id, token.segment) for token in (*forward.source, *forward.target))


def rows_counted(found: HeadStatistics) -> str:
    """Of how many rows a statistic is the mean, apart from those that its meaning leaves out."""
    said = (
        f"A mean over rows, one for each token that looks: here {found.rows:,}, less those that "
        "the metric leaves out."
    )
    if found.blind:
        said += f" {found.blind:,} see nothing and are left out."
    return said
