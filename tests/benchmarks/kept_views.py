"""The file of a kept session, of ten views, each of another page or head."""

from collections.abc import Iterator

from explorer.app.kept_session import KEPT
from explorer.app.limits import MB, SESSION_FILE_BYTES
from explorer.export.session_page import session_html
from tests import apps
from tests.benchmarks.measuring import Row, at_most

TEXT = "To be, or not to be, that is the question"
PAGES = (
    "attention/attention",
    "attention/heads",
    "attention/head_steps",
    "attention/query_key",
    "forward_pass/forward_pass",
)
HEADS = ("0", "1")


def session_file() -> Iterator[Row]:
    """As the app exports it, beside the most that it writes."""
    for page in PAGES:
        for head in HEADS:
            at = apps.page(page, model="shakespeare", layer="1", head=head, text=TEXT)
            at.button(key="keep").click().run()
    views = [view for kept in KEPT._by_owner.values() for view in kept.views]
    assert len(views) == len(PAGES) * len(HEADS)
    assert all(view.is_drawn for view in views)
    size, most = len(session_html("Kept session", views)), SESSION_FILE_BYTES.most
    what = f"a kept session of {len(views)} views as one offline HTML file, shakespeare"
    yield at_most(what, f"{size / MB:.2f} MB", f"{most / MB:.0f} MB of a goal", size / most, 1)
