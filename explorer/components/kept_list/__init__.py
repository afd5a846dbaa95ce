"""The kept views as a list of small pictures: one is chosen, and moved by dragging or by keys."""

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
_JS, _CSS = script("kept_list/kept_list.js"), style("kept_list/kept_list.css")
_LIST = component("explorer_kept_list", _JS, _CSS, HTML)


def kept_list(
    views: Sequence[KeptView], chosen: int, on_choose: Callable[[int, int], None], *, is_dark: bool
) -> None:
    """Draw it; `on_choose` is told a place and by how many places its view moves."""

    def hand_over() -> None:
        if ends := events.cell(events.event(KEY, "moved"), len(views), len(views)):
            on_choose(ends[0], ends[1] - ends[0])

    rows = [[view.id, view.title, b64encode(view.thumbnail).decode()] for view in views]
    _LIST(key=KEY, data=[rows, chosen, is_dark], on_moved_change=hand_over)
