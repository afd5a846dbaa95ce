"""Shared by the plotly charts: colours, fixed sizes, and labels that are never markup."""

from html import escape
from typing import Any

import plotly.graph_objects as go

from explorer.charts.theme import Palette
from explorer.text.visible_text import cut

PLOTLY_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["toImage"]}
"""For `st.plotly_chart`: no link to another host, and no download without the page's theme."""
LONGEST_PLOTLY_LABEL = 24


def plain_label(text: str, longest: int = LONGEST_PLOTLY_LABEL) -> str:
    """A label as plain text: plotly would draw `<b>` or `<a href=…>` in it as markup."""
    return escape(cut(text, longest), quote=False)


def colour_scale(colours: tuple[str, ...]) -> list[tuple[float, str]]:
    """A ramp of a palette as plotly reads it."""
    return [(place / (len(colours) - 1), colour) for place, colour in enumerate(colours)]


def figure_of(*traces: Any, **layout: Any) -> go.Figure:
    """A figure that keeps its view when its data change; its stage says how large it is."""
    room = {"l": 8, "r": 8, "t": 24, "b": 8}
    return go.Figure(traces, {"margin": room, "uirevision": "fixed", **layout})


def scene(palette: Palette, **titles: str) -> dict[str, Any]:
    """The axes of a chart in three dimensions, by their titles."""
    quiet = {
        "showbackground": False,
        "gridcolor": palette.border,
        "zerolinecolor": palette.border,
        "color": palette.muted,
        "tickfont": {"size": 12},
        "showspikes": False,
    }
    axes = {f"{name}axis": {**quiet, "title": {"text": title}} for name, title in titles.items()}
    return {**axes, "camera": {"eye": {"x": 1.35, "y": -1.35, "z": 0.8}, "center": {"z": -0.15}}}
