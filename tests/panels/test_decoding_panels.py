"""The code panels of the Decoding page make the numbers that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.numbers import three
from tests import zoo
from tests.panels.pasting import Panel, panel

MODELS = ("letters", "translation", "gpt2", "t5")
PUBLISHED = ("gpt2", "t5")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def folder(
    model: str, small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("EXPLORER_MODELS", str(published))
    return published if model in PUBLISHED else small_models


def sent(at: AppTest, key: str) -> dict[str, object]:
    """What the view under this key was given."""
    view = next(view for view in at.get("bidi_component") if view.key == key)
    return wire.unpack(view.proto.bytes)[0]


def cells(page: Panel, key: str) -> list[list[str]]:
    rows = sent(page.at, key)["rows"]
    assert isinstance(rows, list)
    return [[cell[0] for cell in row["cells"]] for row in rows]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("branches", ["", "0d9.1f7"])
def test_the_lines_make_the_choice_and_its_draw(model: str, branches: str, folder: Path) -> None:
    how = {"temperature": "1.5", "top_k": "7", "top_p": "0.9", "seed": "4"}
    page = panel("look/decoding", folder, None, model=model, branches=branches, **how)
    final = page.made["probabilities"][0]
    shown = [row[5] for row in cells(page, "stages") if row[5] != "0"]
    expected = sorted((three(float(each)) for each in final[final > 0]), key=float)
    assert sorted(shown, key=float) == expected
    drawn = [row for row in sent(page.at, "stages")["rows"] if "drawn" in row["mark"]]  # type: ignore[attr-defined]
    assert [row["cells"][5][0] for row in drawn] == [three(float(final[page.made["token"]]))]


@pytest.mark.parametrize("model", MODELS)
def test_the_lines_search_the_same_beams(model: str, folder: Path) -> None:
    page = panel(
        "look/decoding", folder, None, model=model, way="Beam search", beams="3", length="4"
    )
    found = page.made["found"]
    assert page.column("score") == [three(found.nodes[end].score) for end in found.ends]


@pytest.mark.parametrize("model", MODELS)
def test_the_lines_feed_the_same_target(model: str, folder: Path) -> None:
    text = "5 17 3 8" if model == "gpt2" else "the cat"
    page = panel("look/decoding", folder, None, model=model, way="Teacher forcing", text=text)
    chances = page.made["chances"]
    assert torch.isfinite(chances).all()
    assert cells(page, "forcing")[3] == [three(float(each)) for each in chances]
