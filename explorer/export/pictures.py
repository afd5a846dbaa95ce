"""Any figure as PNG, SVG or PDF: Vega draws a chart, matplotlib a matrix or a table."""

from collections.abc import Mapping
from typing import Any

from explorer.charts.figure_data import Figure, TableData
from explorer.charts.theme import LIGHT
from explorer.export import print_figure
from explorer.export.fonts import font_folders

CHART_SIZE = 600, 260
"""Pixels of the plot of a chart without a size of its own."""
SCALE = 3
"""Dots per pixel of a PNG."""


def as_picture(figure: Figure, kind: str) -> bytes:
    """The figure as a file of this kind: "png", "svg" or "pdf"."""
    if isinstance(figure, TableData) and figure.spec is not None:
        return chart_as_picture(figure.title, figure.spec, kind)
    return print_figure.as_picture(figure, kind)


def chart_as_picture(
    title: str, chart: Mapping[str, Any], kind: str, size: tuple[int, int] = CHART_SIZE
) -> bytes:
    """The chart as a file; its plot has this `size` in pixels unless it has its own."""
    import vl_convert  # 40 MB and 0.4 s for its first chart, only when somebody exports one

    for folder in font_folders():
        vl_convert.register_font_directory(str(folder))
    spec = _with_page_style(title, chart, size)
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()
    if kind == "pdf":
        spec["background"] = "transparent"
        return bytes(vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[]))
    return bytes(vl_convert.vegalite_to_png(spec, scale=SCALE, allowed_base_urls=[]))


def _with_page_style(title: str, chart: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """The chart with the size, title and colours that it has on the page."""
    width, height = size
    spec = {"width": width, "height": height, **chart, "background": LIGHT.background}
    config = {
        "font": "sans-serif",
        "title": {"anchor": "start", "fontSize": 13, "fontWeight": "normal"},
        "axisBand": {"labelOverlap": True},
        "range": {"category": list(LIGHT.series)},
        "mark": {"color": LIGHT.series[0]},
    }
    return {**spec, "title": title, "config": {**config, **spec.get("config", {})}}
