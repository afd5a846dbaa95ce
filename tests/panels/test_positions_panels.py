"""The code panels of the position lab and of a head's stages run as pasted and give the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.bench.positions_scheme import ODD_WIDTH
from explorer.components import wire
from explorer.numbers import spread, three
from tests import zoo
from tests.panels.pasting import Panel, as_array, panel

OURS = ("translation", "letters", "reviews", "reverse")
LAB = "look/positions"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def opened(small_models: Path, published: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Opens a page of a model of ours or of a published one, and runs its lines."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))

    def open_page(path: str, model: str, **address: str) -> Panel:
        return panel(path, small_models if model in OURS else published, model=model, **address)

    return open_page


@pytest.mark.parametrize("model", [*OURS, "bert", "gpt2", "t5"])
def test_the_lines_of_the_stages_make_every_matrix(opened, model: str) -> None:  # type: ignore[no-untyped-def]
    few = {"part": "Encoder", "text": "the cat"} if model == "t5" else {}
    page = opened("look/stages", model, **few)
    view = next(view for view in page.at.get("bidi_component") if view.key == "stages")
    header, planes = wire.unpack(view.proto.bytes)
    names = {"scaled": "scores", "logits": "masked"}
    for each in header["panels"]:
        if each["of"] == "added":
            continue
        made = as_array(page.made[names.get(each["of"], each["of"])])
        shown = np.frombuffer(planes[each["of"]], "<f4").reshape(each["size"])
        np.testing.assert_allclose(shown, made, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scheme", ["Sinusoidal", "Rotary", "Relative", "ALiBi"])
def test_the_lines_of_a_scheme_make_its_matrix(opened, scheme: str) -> None:  # type: ignore[no-untyped-def]
    page = opened(LAB, "letters", scheme=scheme)
    page.shows("products", "products")
    if scheme in ("Sinusoidal", "Rotary"):
        page.shows("positions_table", "table")


def test_the_lines_of_an_odd_width_make_its_table(opened) -> None:  # type: ignore[no-untyped-def]
    page = opened(LAB, "letters", table_width=ODD_WIDTH)
    assert page.made["table"].shape[1] == 7
    page.shows("positions_table", "table")
    page.shows("products", "products")


@pytest.mark.parametrize("model", ["bert", "t5"])
def test_the_lines_of_trained_positions_make_the_models_own(opened, model: str) -> None:  # type: ignore[no-untyped-def]
    opened(LAB, model).shows("products", "products")


def test_the_lines_of_the_doubled_exponent_make_its_numbers(opened) -> None:  # type: ignore[no-untyped-def]
    page = opened(LAB, "letters", lab="A doubled exponent")
    page.says(page.made["wrong"].spread)
    assert spread(page.made["right"].spread) in page.words()


@pytest.mark.parametrize(("model", "scheme"), [("letters", "Sinusoidal"), ("reviews", "None")])
def test_the_lines_of_another_order_make_its_weights(opened, model: str, scheme: str) -> None:  # type: ignore[no-untyped-def]
    page = opened(LAB, model, lab="Another order", order_of="My own order", scheme=scheme)
    page.shows("order_map_1", "weights")


@pytest.mark.parametrize("model", ["letters", "translation", "reviews"])
def test_the_lines_of_a_longer_text_make_its_numbers(opened, model: str) -> None:  # type: ignore[no-untyped-def]
    page = opened(LAB, model, lab="Longer than trained")
    values = page.made["looks_at"]
    assert len(values) == 48
    page.says(values[:24].mean(), values[24:].mean())
    assert three(float(values[24:].mean())) in page.words()


def test_the_lines_of_a_longer_pair_of_texts_tell_its_sentences_apart(opened) -> None:  # type: ignore[no-untyped-def]
    pair = {"text": "the cat was good", "pair": "the dog was bad"}
    page = opened(LAB, "bert", lab="Longer than trained", scheme="Rotary", **pair)
    assert page.made["segments"].sum() > 1
    values = page.made["looks_at"]
    assert len(values) == 128
    page.says(values[:64].mean(), values[64:].mean())
