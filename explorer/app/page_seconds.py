"""How long the scripts of pages take, counted for Prometheus (`explorer/server/prometheus.py`)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Histogram

from explorer.app.session import session

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60)
SECONDS = Histogram(
    "explorer_page_seconds",
    "Seconds that the script of a page took, its wait for a turn included.",
    ["page"],
    buckets=BUCKETS,
)
ERRORS = Counter("explorer_page_errors", "Scripts of pages that ended in an error.", ["page"])


@contextmanager
def count_seconds() -> Iterator[None]:
    """Counts the script of the page that is drawn meanwhile."""
    reader, begun = session(), time.monotonic()
    try:
        yield
    except Exception:
        ERRORS.labels(reader.page).inc()
        raise
    finally:
        SECONDS.labels(reader.page).observe(time.monotonic() - begun)
