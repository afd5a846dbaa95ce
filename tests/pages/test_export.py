"""Every page that draws something exports all of it, in every format, and each map has a title."""

import csv
import io
import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import cycle
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader
from streamlit.testing.v1 import AppTest

from explorer.app.session import SESSION_KEY
from explorer.catalog.available_models import list_models
from explorer.charts.figure_data import Figure, FigureData, is_table
from explorer.components.mounting import PageView, PageViews
from explorer.tasks import TASKS
from explorer.views.shared import export_panel
from tests import apps
from tests.apps import said, views
from tests.browser.page_views import table
from tests.source import ROOT
from tests.views.drawing import every_view

ATTENTION = {
    "Encoder": "encoder.self_attn",
    "Decoder": "decoder.self_attn",
    "Cross": "decoder.cross_attn",
}
POSITIONS = "input/positions"
"""Its pictures are of a formula, not of a model."""
STUDENT = "I am a student"
"""An example of a mask, which is of no model."""
COMPARED = "experiments/compare"
"""The page names its main figure after both sides."""
NUMBERS, PRINTED = ("csv", "json", "npz"), ("png", "svg", "pdf", "html")
"""Of every figure; and of one chart: tests/export prints maps and tables."""
ONE_STACK = {"model": "letters"}
SOMETHING = {
    "Rollout": ONE_STACK,
    "Flow": ONE_STACK,
    "Distribution": {"own_lines": "I am a student of the black cat"},
    "Find the mistake": {"instrument": "Attention map"},
    **dict.fromkeys(table("circuits", "VIEWS"), ONE_STACK),
}
"""With what these views draw something, and soon: fifty built-in lines take seconds."""
WORDS = {"Diagnostics", "All runs", "Races and sweeps"}
"""Views of words and tables alone; those of runs without any run."""

pytestmark = pytest.mark.usefixtures("small_models")


def test_every_view_is_exported(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    """All that stands on the page, also below the export, and in each expander, opened.

    Each view has one of the three kinds of attention, in turn.
    """
    offered: list[Sequence[Figure]] = []
    choose, formats = export_panel._choose_figure, export_panel.file_formats
    in_files: list[Sequence[PageView]] = []

    def keep_figures(figures: Sequence[Figure]) -> Figure:
        offered.append(figures)
        return choose(figures)

    def keep_views(_: Figure, drawn: Sequence[PageView]) -> list[object]:
        in_files.append(drawn)
        return []

    monkeypatch.setattr(export_panel, "_choose_figure", keep_figures)
    monkeypatch.setattr(export_panel, "file_formats", keep_views)
    seen: set[str] = set()
    is_printed = False
    for (path, asked), part in zip(every_view(), cycle(ATTENTION), strict=False):
        view = next(iter(asked.values()), path)
        with subtests.test(path=path, asked=asked):
            offered.clear()
            in_files.clear()
            address = {"model": "translation", "part": part, **asked, **SOMETHING.get(view, {})}
            opened = dict.fromkeys([*expanders(), "export", "code"], True)
            at = apps.page(path, opened, **address)
            assert len(at.title) == 1
            assert address["model"] != "translation" or at.session_state["part"] == ATTENTION[part]
            for key, name in asked.items():
                assert at.session_state[key] == name, "this is the view that was asked for"
            assert "import" in str(at.code[0].value)
            assert "Run this in the folder of the README" in said(at)
            shown: dict[str, PageView] = at.session_state[SESSION_KEY].state(PageViews).drawn
            ours = {key for key, one in shown.items() if one.offline}
            assert on_screen(at) == (ours, len(shown) - len(ours))
            assert bool(shown) == (view not in WORDS)
            if not shown:
                assert not offered
                continue
            seen |= shown.keys()
            (figures,), (exported,) = offered, in_files
            assert [*exported] == [*shown.values()]
            made = [one.figures() for one in shown.values()]
            assert all(made), "drawn, but not exported"
            kinds = {"<canvas" in one.offline.html for one in shown.values() if one.offline}
            assert not (True in kinds and is_table(figures[0])), "the screen shows a picture"
            whole = [figure for each in made for figure in each]
            assert len(whole) == len(figures)
            titles = [sorted(figure.title for figure in each) for each in (whole, figures)]
            assert titles[0] == titles[1] or path == COMPARED
            assert not is_table(figures[0]) or all(map(is_table, figures)), "a picture comes first"
            named = [each.title for each in list_models()] + [task.title for task in TASKS.values()]
            starts = tuple(f"{title} · " for title in (*named, STUDENT))
            maps = [figure.title for figure in whole if isinstance(figure, FigureData)]
            assert path == POSITIONS or all(title.startswith(starts) for title in maps), maps
            for figure in figures:
                every = {ending: make for _, ending, make in formats(figure, exported)}
                is_chart = not (isinstance(figure, FigureData) or is_table(figure))
                endings = [*NUMBERS, *(PRINTED if is_chart and not is_printed else ())]
                is_printed = is_printed or is_chart
                read(figure, {ending: every[ending]() for ending in endings})
    assert seen >= {"flow_edges", "positions_3d", "beside_0"}


def on_screen(at: AppTest) -> tuple[set[str], int]:
    """The keys of all views but players and titles, and how many charts there are beside them."""
    ids = {str(key) for key in views(at)}
    charts = len(at.get("vega_lite_chart")) + len(at.get("plotly_chart"))
    return {key for key in ids if not key.endswith(("-choice", "-ask", "_steps", "_title"))}, charts


@cache
def expanders() -> set[str]:
    """The keys of those that draw when they are opened; the code panel draws nothing."""
    named = re.compile(r"st\.expander\([^)]*?\bkey=\"(\w+)\"|(?<!st\.)\bexpander\(\"(\w+)\"")
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "explorer").rglob("*.py"))
    found = (keys for source in sources for keys in named.findall(source))
    return {key for keys in found for key in keys if key} - {"code"}


def test_the_lines_export_every_head_of_the_layer() -> None:
    """The chosen head first; each under the title of its own map."""
    at = apps.page("attention/attention", model="translation", part="Cross", view="Lines", head="1")
    drawn = at.session_state[SESSION_KEY].state(PageViews).drawn
    titles = [figure.title for figure in drawn["attention_lines"].figures()]
    whose = "Translation · Cross-attention · Layer 0"
    assert sorted(titles) == [f"{whose}, head {head}" for head in range(len(titles))]
    at.session_state["export"] = True
    offered = at.run().selectbox(key="export_figure").options
    first = [one.partition(" · ")[2] for one in offered[:2]]
    assert first == ["Layer 0, head 1", "Layer 0, head 0"]


def test_the_list_of_figures_leaves_out_what_all_begin_with() -> None:
    for titles, short in (
        (["m · Cross · Layer 0, head 1", "m · Cross · All", "Tokens"],
         ["Layer 0, head 1", "All", "Tokens"]),
        (["a · Cross · Layer 0", "b · Cross · Layer 0"], ["a · Layer 0", "b · Layer 0"]),
        (["m · Norm", "m · Cross · Norm"], ["Norm", "Cross · Norm"]),
        (["Curve", "Table"], ["Curve", "Table"]),
    ):  # fmt: skip
        assert export_panel.short_titles(titles) == short


def read(figure: Figure, files: dict[str, bytes]) -> None:
    """The library of each kind of file opens it."""
    png, svg, pdf, html = map(files.get, PRINTED)
    if png is not None:
        Image.open(io.BytesIO(png)).verify()
    assert svg is None or ElementTree.fromstring(svg).tag.endswith("}svg")
    assert pdf is None or len(PdfReader(io.BytesIO(pdf)).pages) == 1
    assert html is None or b"Content-Security-Policy" in html
    assert len([*csv.reader(io.StringIO(files["csv"].decode("utf-8-sig")))]) > 1
    assert json.loads(files["json"])["title"] == figure.title
    with np.load(io.BytesIO(files["npz"]), allow_pickle=False) as found:
        assert {"about", *figure.arrays()} == set(found.files)
