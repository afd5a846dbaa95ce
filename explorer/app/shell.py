"""The frame of every page: the navigation, the bar and the page itself."""

import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the script's own folder is explorer/, imports start above it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

import explorer.app.whole_packages  # noqa: E402, F401
from explorer.app import address, choosing, links, reader_models, streamlit_patches  # noqa: E402
from explorer.app.around_lesson import sentence_comes_back, settle_edits  # noqa: E402
from explorer.app.bar import draw_bar  # noqa: E402
from explorer.app.context import CurrentContext, make_context  # noqa: E402
from explorer.app.messages import say  # noqa: E402
from explorer.app.page_table import ROWS  # noqa: E402
from explorer.app.persistent_choices import follow_address  # noqa: E402
from explorer.app.reader import is_local  # noqa: E402
from explorer.app.received_uploads import RECEIVED  # noqa: E402
from explorer.app.session import Session, redraw, session, state_of  # noqa: E402
from explorer.app.sidebar import draw_sidebar  # noqa: E402
from explorer.app.throttle import count_seconds, turn  # noqa: E402
from explorer.app.typed_text import settle_text  # noqa: E402
from explorer.catalog.uploads import largest_upload  # noqa: E402
from explorer.lessons.lesson import FIRST_PAGE  # noqa: E402
from explorer.system.limits import MB  # noqa: E402

SIDEBAR_WIDTH = 256


def main() -> None:
    reader = session()
    actions = []
    if not reader.navigation:
        actions = streamlit_patches.hold_actions()
        make_pages(reader)
        most = largest_upload(is_local()) // MB
        reader.upload_megabytes = streamlit_patches.allow_uploads(most)
    # Before the navigation: the browser draws the sidebar with the width that it knows then.
    st.set_page_config(
        layout="wide", initial_sidebar_state="collapsed" if links.is_folded() else SIDEBAR_WIDTH
    )
    chosen = st.navigation(reader.navigation, position="hidden")
    st.set_page_config(page_title=f"{chosen.title} · Attention explorer")
    if chosen.url_path == FIRST_PAGE:
        st.switch_page(reader.pages[FIRST_PAGE], query_params=address.everything())
    page, reader.page = reader.page, chosen.url_path or FIRST_PAGE
    reader.has_arrived = reader.page != page
    row = ROWS[reader.page]
    reader.uses, reader.draws_head_alone = row.bar, row.draws_head_alone
    reader.hidden = links.hidden()
    reader.bar = tuple(name for name in row.bar if name not in reader.hidden)
    settle_uploads(reader)
    if streamlit_patches.came_back():
        follow_address()
    with ExitStack() as history:
        history.enter_context(streamlit_patches.one_entry_in_history())
        if draw_frame(reader):
            redraw()
        if reader.head_alone is None:
            history.close()
        else:
            reader.head_alone.end_entry = history.close
        choosing.go_to_next_page()
        try:
            chosen.run()
            reader.redraws = 0
        finally:
            state_of(CurrentContext).context = None  # the next run makes its own
    streamlit_patches.run_again_with(actions)


def settle_uploads(reader: Session) -> None:
    """Set how large this reader's uploads may be, and say why the last was not received."""
    here = streamlit_patches.session_id()
    RECEIVED.allow(here, reader.upload_megabytes * MB)
    if why := RECEIVED.take_note(here):
        st.toast(why, duration="infinite")


def draw_frame(reader: Session) -> bool:
    """The sidebar and the bar, and from them the context of this run.

    Returns whether the next run has another sentence, so that this one need not go on.
    """
    choosing.apply_pending_choices()
    is_over = False
    settle_edits()
    models, initial = reader_models.openable(), choosing.initial_values()
    entry = choosing.settle_model(models) if models else None
    if entry is not None:
        settle_text(entry.example)
        is_over = sentence_comes_back(entry.example)
    reader.sidebar_head, reader.sidebar_foot = draw_sidebar()
    reader.head_alone = None
    if entry is None:
        state_of(CurrentContext).context = make_context(models)
    else:
        draw_bar(models, entry, initial)
    for sentence in links.notes():
        say(sentence)
    return is_over


def make_pages(reader: Session) -> None:
    """Make all pages once for a reader: Streamlit looks up each file and marks it as runnable.

    The address of a page is the name of its file; the first page has an empty one.
    """
    files = {path.stem: path for path in (ROOT / "pages").glob("*/*.py")}
    for name, row in ROWS.items():
        is_first = name == FIRST_PAGE
        # Streamlit keeps a name even for what it shows at the root, where /overview leads as well.
        url = "root" if is_first else name
        reader.pages[name] = st.Page(files[name], title=row.title, url_path=url, default=is_first)
    by_name = st.Page(lambda: None, title="Overview", url_path=FIRST_PAGE, visibility="hidden")
    reader.navigation = [*reader.pages.values(), by_name]


with count_seconds(), turn():
    main()
