"""Every page that draws something exports all of it, in every format, and each map has a title."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence

import numpy as np
import pytest

from explorer.app.session import KEY
from explorer.catalog.available_models import list_models
from explorer.components.mounting import Drawn
from explorer.export.figure_data import Figure, FigureData
from explorer.tasks import TASKS
from explorer.views.shared import export_panel
from tests import apps
from tests.source import ROOT
from tests.views.drawing import every_view

POSITIONS = "input/positions"
"""Its pictures are of a formula, not of a model."""
STUDENT = "I am a student"
"""An example of a mask, which is of no model."""

pytestmark = pytest.mark.usefixtures("small_models")


def test_every_page_exports_what_it_draws(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    offered: list[tuple[Figure, Sequence[Drawn]]] = []
    formats = export_panel.file_formats

    def keep(figure: Figure, drawn: Sequence[Drawn]) -> list[object]:
        offered.append((figure, drawn))
        return []

    monkeypatch.setattr(export_panel, "file_formats", keep)
    for path, asked in every_view():
        with subtests.test(path=path, asked=asked):
            offered.clear()
            at = apps.page(path, model="translation", **asked)
            at.session_state["export"] = True
            at.run()
            assert not at.exception
            if not at.session_state[KEY].drawn:  # words and tables alone
                assert not offered
                continue
            shown = at.session_state[KEY].drawn
            empty = [key for key, one in shown.items() if not one.figures()]
            assert not empty, "drawn, but not exported"
            names = *(model.name for model in list_models()), *TASKS, STUDENT
            starts = tuple(f"{name} · " for name in names)
            untitled = [
                figure.title
                for one in shown.values()
                for figure in one.figures()
                if isinstance(figure, FigureData) and not figure.title.startswith(starts)
            ]
            assert not untitled or path == POSITIONS
            (figure, drawn), *_ = offered
            files = {ending: make() for _, ending, make in formats(figure, drawn)}
            read(figure, files)


def test_the_lines_export_every_head_of_the_layer() -> None:
    """The chosen head first; each under the title of its own map."""
    at = apps.page("attention/attention", model="translation", part="Cross", view="Lines", head="1")
    context = at.session_state[KEY]
    titles = [figure.title for figure in context.drawn["attention_lines"].figures()]
    whose = "translation · Cross-attention · Layer 0"
    assert titles == [f"{whose}, head {head}" for head in range(len(titles))]
    at.session_state["export"] = True
    offered = at.run().selectbox(key="export_figure").options
    assert [one.partition(" · ")[2] for one in offered[:2]] == [
        f"{whose}, head 1",
        f"{whose}, head 0",
    ]


def test_nothing_is_drawn_past_the_export() -> None:
    """Charts go through the one function that keeps what it has drawn."""
    drawing = re.compile(r"(?<!`)\bst\.\w*(_chart|image|pyplot|map)\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("explorer", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if drawing.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"explorer/components/chart.py"}


def read(figure: Figure, files: dict[str, bytes]) -> None:
    """The files hold what their endings say."""
    assert files["png"].startswith(b"\x89PNG")
    assert b"<svg" in files["svg"]
    assert b"Content-Security-Policy" in files["html"]
    lines = list(csv.reader(io.StringIO(files["csv"].decode("utf-8-sig"))))
    assert len(lines) > 1
    assert json.loads(files["json"])["title"] == figure.title
    with np.load(io.BytesIO(files["npz"]), allow_pickle=False) as found:
        assert {"about", *figure.arrays()} == set(found.files)
