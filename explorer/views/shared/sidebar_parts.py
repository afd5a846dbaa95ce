"""What a page draws in the sidebar: the miniature of the pass at its top, the tools at its foot."""

from functools import partial

import streamlit as st

from explorer.analysis import information_flow
from explorer.app import address, links, streamlit_patches
from explorer.app.address_parameters import VERSION
from explorer.app.context import PageContext, current_context
from explorer.app.page_table import ROWS
from explorer.app.reader import is_local
from explorer.app.session import redraw, session, state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components import miniature as drawing
from explorer.components.fragment import fragment
from explorer.components.mounting import PageViews, asks_for
from explorer.components.presenter import present_button
from explorer.components.tools import copy_link, theme_switch
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.views.shared.edit_history import CHOOSES, current_history, draw_active, shows_edits
from explorer.views.shared.pass_position import STAGE_CHOICES, stage_of_part

KEY, HEIGHT, STAGES = "miniature", 170, "forward_pass"
PASS_PARTS = {
    "tokens": ("Tokens", "tokens"),
    "embedding": ("Embedding", "embedding_space"),
    "positions": ("Positions", "positions"),
    "attention": ("Attention", "attention"),
    "mlp": ("Feed-forward", STAGES),
    "stream": ("Residual stream", "logit_lens"),
    "answer": ("Answer", "generation"),
}
"""The parts of a pass from bottom to top, each with its label and page."""


def draw_miniature() -> None:
    """Draw the miniature if there is a pass; if there is none, the page says so.

    For a long text it takes long, so it is drawn after the page's own run. It is of the pass on the
    page; where that is the one without the interventions, say so.
    """
    context, place = current_context(), session().sidebar_head
    if context is None or place is None:  # a page that runs alone
        return
    opened, forward = context.model, context.passed
    if not isinstance(opened, OpenModel) or not isinstance(forward, ForwardPass):
        return
    if shows_edits():
        forward = run_edited(opened, forward, current_history().active).forward
    elif "text" in session().uses and not address.is_declared(CHOOSES):  # says so itself
        draw_active(context)
    if not information_flow.is_computable(forward):
        return
    with place:
        if information_flow.is_quick(forward) or information_flow.has_flow(opened, forward):
            _draw(context, opened, forward)
        else:
            _draw_behind(context, opened, forward)


@fragment()
def _draw_behind(context: PageContext, opened: OpenModel, forward: ForwardPass) -> None:
    what = repr((forward.typed, forward.edits))
    if asks_for(KEY, what) or information_flow.has_flow(opened, forward):
        _draw(context, opened, forward)


def _draw(context: PageContext, opened: OpenModel, forward: ForwardPass) -> None:
    flow = information_flow.cached_flow(opened, forward)
    answer = information_flow.first_answer(opened, forward)
    parts, lit, layer = _marked(context)
    edited = " with the interventions" * bool(forward.edits)
    place = "message of the miniature", *forward.key, *parts
    drawing.miniature(
        flow,
        information_flow.cached_route(opened, forward, answer),
        key=KEY,
        title=f"The forward pass{edited}; each part links to its page",
        parts=[(name, PASS_PARTS[name][0]) for name in parts],
        lit=lit,
        layer=layer,
        height=HEIGHT,
        on_go=partial(_go, context),
        kept=lambda make: cached(opened, place, make, len),
    )
    state_of(PageViews).drawn.pop(KEY, None)  # a reader exports the page's own pictures


def mark_layer(context: PageContext) -> None:
    """Mark the chosen layer in the miniature that is already drawn."""
    drawing.mark(KEY, *_marked(context), by="head-")


def _marked(context: PageContext) -> tuple[list[str], tuple[str, ...], tuple[str, int]]:
    """The parts whose pages exist, that which this page shows, if one, and the stack and layer."""
    parts = [name for name, (_, page) in PASS_PARTS.items() if page in session().pages]
    at, row = context.choice, ROWS.get(session().page)
    lit = (row.part,) if row and row.part else ()
    return parts, lit, (at.part.split(".")[0], at.layer)


def _go(context: PageContext, name: str, layer: int | None) -> None:
    """For the callback: the page of a part, or on the page Forward pass its stage."""
    reader = session()
    if layer is not None:
        reader.choose_next = {**reader.choose_next, "layer": layer}
    page = PASS_PARTS["attention" if layer is not None else name][1]
    if STAGES in (page, reader.page):
        page = STAGES
        if layer is None:
            STAGE_CHOICES.put("stage", stage_of_part(context, name))
    reader.next_page = page


HIDE, FOLD, LOCK = "hide_in_link", "fold_in_link", "lock_in_link"
"""The keys of the choices for a class, which are in the copied link and not in the address."""

OPENS = "It opens what is on screen: every choice that differs from the default."
SESSION = "Several views as one file: “Add to session” under a figure keeps each."
HERE_ALONE = "The link works only on this computer; for a class see `docs/public_server.md`."
SHOWS_MODEL = (
    "Whoever has this link sees the model or run that it names, its tokens included. "
    "Do not train on a secret text and share its link."
)
ONLY_HERE = "Your text is too long for a link: this server keeps it, and the link works only here."


def draw_tools() -> None:
    """Draw the tools, which are the same on every page; a page that runs alone has none."""
    reader = session()
    if (place := reader.sidebar_foot) is None:
        return
    with place:
        draw_share()
        present_button()
        with streamlit_patches.as_part_of_the_frame():
            # Streamlit shows the first page at the root as well.
            theme_switch(["./", *reader.pages], key="theme")


@fragment(key="share_alone")
def draw_share() -> None:
    """The popover with the link for others."""
    icon = ":material/share:"
    with (
        streamlit_patches.as_part_of_the_frame(),
        st.popover("Share", type="tertiary", icon=icon, key="share", on_change="rerun") as opened,
    ):
        if opened.open:
            draw_link()


def draw_link() -> None:
    """The link to what is on screen, and the controls that it hides from a class."""
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
        help="Anyone who knows the address can still change it: this is no protection.",
    )
    hidden = [*chosen, *(["model"] if model else []), *([links.SHOW_ALL] if locked else [])]
    with place:
        st.markdown("**This page as a link**")
        added = {"hidden": hidden, "sidebar": ["folded"] if folded else []}
        if model and reader.shown_model:
            added["model"] = [reader.shown_model]
        copy_link({**added, "version": [str(VERSION)]}, key="copy_link")
        st.caption(ONLY_HERE if reader.has_long_text else OPENS)
        if links.names_somebodys(added):
            st.caption(SHOWS_MODEL)
        if is_local():
            st.caption(HERE_ALONE)
        if "export" not in reader.hidden:
            st.caption(SESSION)
    if not reader.hidden or links.SHOW_ALL in reader.hidden:
        return
    icon = ":material/visibility:"
    if st.button("Show all controls", icon=icon, key="show_all", on_click=links.show_all):
        redraw()  # the whole page, since this is a fragment
