"""The pass in small at the head of the sidebar: the part that a page shows, and the way to it."""

from explorer.analysis import information_flow
from explorer.app.context import PageContext, current_context
from explorer.app.page_table import ROWS
from explorer.app.session import session, state_of
from explorer.catalog.open_model import OpenModel
from explorer.components import miniature as drawing
from explorer.components.fragment import fragment
from explorer.components.mounting import Mounted, asks_for
from explorer.inference.answers import first_place
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.output_tokens import last_stack_tokens

KEY, HEIGHT = "miniature", 170
PASS_PARTS = {
    "tokens": ("Tokens", "tokens"),
    "embedding": ("Embedding", "embedding_space"),
    "positions": ("Positions", "positions"),
    "attention": ("Attention", "attention"),
    "mlp": ("Feed-forward", "forward_pass"),
    "stream": ("Residual stream", "logit_lens"),
    "answer": ("Answer", "generation"),
}
"""The parts of a pass from below to above: what each is called, and its page."""


def draw_miniature() -> None:
    """Draw it in its place, where there is a pass; that there is none the page says itself.

    What takes long for a long text comes behind the page's own run.
    """
    context, place = current_context(), session().sidebar_head
    if context is None or place is None:  # a page that is run alone
        return
    opened, found = context.model, context.passed
    if not isinstance(opened, OpenModel) or not isinstance(found, ForwardPass):
        return
    if not information_flow.is_computable(found):
        return
    with place:
        if information_flow.is_quick(found) or information_flow.has_flow(opened, found):
            _draw(context, opened, found)
        else:
            _draw_behind(context, opened, found)


@fragment()
def _draw_behind(context: PageContext, opened: OpenModel, found: ForwardPass) -> None:
    text = found.typed
    if asks_for(KEY, text) or information_flow.has_flow(opened, found):
        _draw(context, opened, found)


def _draw(context: PageContext, opened: OpenModel, found: ForwardPass) -> None:
    flow = information_flow.kept_flow(opened, found)
    answer = 0
    if len(flow.starts) > 1:
        answer = first_place(opened, last_stack_tokens(found))
    traced = information_flow.kept_route(opened, found, answer)
    drawing.miniature(
        flow,
        traced,
        key=KEY,
        title="The forward pass; each part links to its page",
        parts=[(name, PASS_PARTS[name][0]) for name in _parts()],
        lit=_lit(),
        layer=_layer(context),
        height=HEIGHT,
        on_go=_go,
    )
    state_of(Mounted).drawn.pop(KEY, None)  # the page's own pictures are what one exports


def mark_layer(context: PageContext) -> None:
    """It is drawn already, and the layer may be another."""
    lit = _lit()
    drawing.mark(KEY, _parts(), lit, _layer(context), by="head-")


def _lit() -> tuple[str, ...]:
    """The part that the page shows; none where it shows all of them, or no pass."""
    row = ROWS.get(session().page)
    return (row.part,) if row and row.part else ()


def _parts() -> list[str]:
    """The names of those whose pages are there."""
    return [name for name, (_, page) in PASS_PARTS.items() if page in session().pages]


def _layer(context: PageContext) -> tuple[str, int]:
    at = context.choice
    return at.part.split(".")[0], at.layer


def _go(name: str, layer: int | None) -> None:
    """For the callback: the page of a part, in the next run."""
    reader = session()
    if layer is not None:
        reader.choose_next = {**reader.choose_next, "layer": layer}
    reader.next_page = PASS_PARTS["attention" if layer is not None else name][1]
