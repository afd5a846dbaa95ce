"""The kept views as small pictures in their order, which dragging or Alt and an arrow key changes.

A list to a screen reader: each picture is a button, which keeps the focus when it moves.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence

from explorer.components import events
from explorer.components.mounting import component, script, style
from explorer.export.kept_view import KeptView

KEY = "kept_order"
HTML = """
<ol class="kept-list" role="list" aria-label="Views in their order"></ol>
<p class="hint">Drag a picture to its place, or press Alt and an arrow key.</p>
<div class="spoken" role="status" aria-live="polite"></div>
"""
_LIST = component(
    "explorer_kept_list", script("kept_list/kept_list.js"), style("kept_list/kept_list.css"), HTML
)


def kept_list(
    views: Sequence[KeptView],
    chosen: int,
    *,
    is_dark: bool,
    on_choose: Callable[[int], None],
    on_move: Callable[[int, int], None],
) -> None:
    """Draw it; `on_move` is told a place and by how many places its view moves."""

    def moved() -> None:
        if ends := events.cell(events.event(KEY, "moved"), len(views), len(views)):
            on_move(ends[0], ends[1] - ends[0])

    rows = [[view.id, view.title, b64encode(view.thumbnail).decode()] for view in views]
    _LIST(
        key=KEY,
        data=[rows, chosen, is_dark],
        on_chosen_change=events.on_place(KEY, "chosen", len(views), on_choose),
        on_moved_change=moved,
    )
