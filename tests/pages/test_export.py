"""Every page that draws something exports all of it, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import numpy as np
import pytest

from explorer.app.session import KEY
from explorer.components.mounting import Drawn
from explorer.export.figure_data import Figure
from explorer.views.shared import export_panel
from tests import apps
from tests.views.drawing import every_view

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
            (figure, drawn), *_ = offered
            files = {ending: make() for _, ending, make in formats(figure, drawn)}
            read(figure, files)


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
