"""The code panels of the Decoding page make the numbers that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer import library
from explorer.components import wire
from explorer.numbers import three
from explorer.text import word_tokenizer
from explorer.text.special import SOURCE
from tests import zoo
from tests.grids import grid
from tests.panels.pasting import Panel, panel
from tests.shelf import WORDS, put

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


@grid("model, branches", MODELS, ["", "0d9.1f7"])
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


def test_the_lines_begin_with_the_token_that_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = word_tokenizer(WORDS, SOURCE)
    how = {"kind": "encoder-decoder", "first_id": 5, "banned_ids": (6, 7)}
    put(tmp_path / "shelf", "begins", words, "the cat", None, **how)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "shelf"))
    page = panel("look/decoding", tmp_path / "shelf", None, model="begins", way="Teacher forcing")
    chances = page.made["chances"]
    assert chances[0] == 1
    assert cells(page, "forcing")[3] == [three(float(each)) for each in chances]
    assert cells(page, "forcing")[2] == [
        library.open_model("begins").tokenizer.label(int(each)) for each in page.made["said"]
    ]
