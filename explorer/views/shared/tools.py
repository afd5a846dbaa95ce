"""The row of tools at the foot of the sidebar: share, present, and the theme."""

import streamlit as st

from explorer.app import links, streamlit_patches
from explorer.app.address_table import VERSION
from explorer.app.reader import is_local
from explorer.app.session import session
from explorer.components.fragment import fragment
from explorer.components.presenter import present_button
from explorer.components.tools import copy_link, theme_switch

HIDE, FOLD, LOCK = "hide_in_link", "fold_in_link", "lock_in_link"
"""The keys of what a class builder chooses; no address holds it, the copied link does."""

OPENS = "It opens what is on screen: every choice that differs from the default."
SESSION = "Several views as one file: “Add to session” under a figure keeps each."
HERE_ALONE = "Only this machine opens it; for a class see `docs/public_server.md`."
ONLY_HERE = "Your text is too long for a link: this server keeps it, and the link works only here."


def draw_tools() -> None:
    """Draw them in their place; they are the same on every page. A page run alone has none."""
    reader = session()
    place = reader.sidebar_foot
    if place is None:
        return
    with place:
        draw_share()
        draw_present()
        with streamlit_patches.as_part_of_the_frame():
            # Streamlit shows the first page at the root as well.
            theme_switch(["./", *reader.pages], key="theme")


@fragment(key="share_alone")
def draw_share() -> None:
    """What others are given: a link, and the pages that were visited."""
    icon = ":material/share:"
    with (
        streamlit_patches.as_part_of_the_frame(),
        st.popover("Share", type="tertiary", icon=icon, key="share", on_change="rerun") as opened,
    ):
        if opened.open:
            draw_link()


def draw_link() -> None:
    """The link to what is on screen, and what a class that follows it does not see."""
    reader = session()
    place = st.container()
    names = links.can_be_hidden(reader.page)
    st.markdown("**For a class**")
    chosen = st.multiselect(
        "Hide controls",
        list(names),
        [name for name in names if name in links.chosen()],
        format_func=names.__getitem__,
        key=HIDE,
        placeholder="Nothing is hidden",
        help="What is hidden keeps the value that the link gives it.",
    )
    with st.container(horizontal=True):
        model = st.toggle("Fix the model", "model" in reader.hidden, key="fix_model")
        folded = st.toggle("Fold the sidebar", links.is_folded(), key=FOLD)
    locked = st.toggle(
        "Without the button “Show all controls”",
        links.SHOW_ALL in reader.hidden,
        key=LOCK,
        help="Who knows the address can still change it: this is no protection.",
    )
    hidden = [*chosen, *(["model"] if model else []), *([links.SHOW_ALL] if locked else [])]
    with place:
        st.markdown("**This page as a link**")
        added = {"hidden": hidden, "sidebar": ["folded"] if folded else []}
        if model and reader.shown_model:
            added["model"] = [reader.shown_model]
        copy_link({**added, "version": [str(VERSION)]}, key="copy_link")
        st.caption(ONLY_HERE if reader.has_long_text else OPENS)
        if is_local():
            st.caption(HERE_ALONE)
        if "export" not in reader.hidden:
            st.caption(SESSION)
    if not reader.hidden or links.SHOW_ALL in reader.hidden:
        return
    icon = ":material/visibility:"
    if st.button("Show all controls", icon=icon, key="show_all", on_click=links.show_all):
        st.rerun()  # the whole page, of which this is drawn alone


def draw_present() -> None:
    """The button of the presenter mode."""
    present_button()
