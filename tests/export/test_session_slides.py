"""Slides of a kept session: a page for each view, with its words as text and its fonts inside."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from pypdf import PageObject, PdfReader

from explorer.charts.figure_data import Figure, FigureData, TableData
from explorer.export import print_figure
from explorer.export.kept_view import LONGEST_VIEW_NOTE, KeptView
from explorer.export.session_slides import (
    MARGIN,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_TYPE,
    _lines,
    main_figures,
    session_pdf,
)

LABELS = ("the", "猫", "एक", "$x$")
SPEC: dict[str, Any] = {
    "data": {"values": [{"word": "猫", "p": 0.25}, {"word": "cat", "p": 0.75}]},
    "mark": "bar",
    "encoding": {
        "x": {"field": "word", "type": "nominal"},
        "y": {"field": "p", "type": "quantitative"},
    },
}
CHART = TableData({"word": ["猫", "cat"], "p": [0.25, 0.75]}, "m · Probabilities", spec=SPEC)
TABLE = TableData({"token": ["a", "b"]}, "Tokens")
HEAD = FigureData(torch.eye(4), LABELS, LABELS, "m · Layer 0, head 1")
OTHER = FigureData(torch.eye(4), LABELS, LABELS, "m · Layer 1, head 2")
VIEWS = [
    KeptView(
        "<b>$First$</b>", "/attention?layer=0", "Look at 猫.", {"model": "m"}, [], [HEAD, CHART]
    ),
    KeptView("Tokens", "/tokens", "", {"sentence": "a b " * 300}, [], [TABLE]),
    KeptView("Long " * 16, "/heads", "n" * LONGEST_VIEW_NOTE, {}, [], [HEAD, OTHER, CHART]),
    KeptView("Gone", "/masks"),
]


@pytest.fixture(scope="module")
def turns() -> list[bool]:
    """How often somebody else has printed while the slides were made."""
    return []


@pytest.fixture(scope="module")
def slides(turns: list[bool]) -> PdfReader:
    @contextmanager
    def turn() -> Iterator[None]:
        with print_figure.printing([]):
            turns.append(True)
        yield

    return PdfReader(io.BytesIO(session_pdf("My talk एक", VIEWS, "http://app.example", turn=turn)))


def fonts(page: PageObject) -> Iterator[Any]:
    """Every font of a page, those of its figures too."""
    for each in page["/Resources"].get("/Font", {}).values():  # type: ignore[attr-defined]
        yield each.get_object()


def is_embedded(font: Any) -> bool:
    """Whether the letters of a font are in the file."""
    below = font.get("/DescendantFonts")
    holder = below[0].get_object() if below else font
    described = holder.get("/FontDescriptor")
    files = {"/FontFile", "/FontFile2", "/FontFile3"}
    return described is not None and bool(files & described.get_object().keys())


def test_each_view_has_a_page_of_16_to_9_that_links_to_it(slides: PdfReader) -> None:
    sizes = [(page.mediabox.width, page.mediabox.height) for page in slides.pages]
    assert sizes == [(SLIDE_WIDTH, SLIDE_HEIGHT)] * len(VIEWS)
    assert SLIDE_WIDTH / SLIDE_HEIGHT == 16 / 9
    notes = [note for page in slides.pages for note in page["/Annots"]]  # type: ignore[attr-defined]
    links = [note.get_object()["/A"]["/URI"] for note in notes]
    assert links == [f"http://app.example{view.address}" for view in VIEWS]


def test_its_words_are_text_in_every_script(slides: PdfReader) -> None:
    first = slides.pages[0].extract_text()
    for said in ("<b>$First$</b>", "model m", "Look at 猫.", "एक", "$x$", "1 / 4", "Probabilities"):
        assert said in first
    assert "token" in slides.pages[1].extract_text()
    assert "This view has no picture." in slides.pages[3].extract_text()


def test_every_font_is_in_the_file(slides: PdfReader) -> None:
    found = [(at, font) for at, page in enumerate(slides.pages) for font in fonts(page)]
    assert {at for at, _ in found} == set(range(len(VIEWS)))
    assert [font["/BaseFont"] for _, font in found if not is_embedded(font)] == []
    named = " ".join(str(font["/BaseFont"]) for _, font in found)
    assert "CJK" in named
    assert "Devanagari" in named


def test_nothing_stands_over_the_edge(slides: PdfReader) -> None:
    """Also a long title and a long note."""
    for page in slides.pages:
        places: list[tuple[float, float]] = []

        def note(text: str, _: Any, at: Any, *__: Any, places: Any = places) -> None:
            if text.strip():
                places.append((at[4], at[5]))

        page.extract_text(visitor_text=note)
        assert all(0 <= y <= SLIDE_HEIGHT - MARGIN / 2 for _, y in places)


def test_a_slide_has_at_most_three_figures() -> None:
    def shown(*figures: Figure) -> list[str]:
        return [each.title for each in main_figures(figures)]

    heads = ["Layer 0, head 1", "Layer 1, head 2"]
    assert shown(HEAD, OTHER, CHART, HEAD) == [*heads, "Probabilities"]
    assert shown(TABLE, HEAD) == ["Tokens", "Layer 0, head 1"], "a table with its map"


@pytest.mark.usefixtures("slides")
def test_who_waits_for_a_turn_prints_between_two_slides(turns: list[bool]) -> None:
    assert len(turns) > len(VIEWS)


def test_a_line_is_as_long_as_the_slide_is_wide() -> None:
    """By the letters themselves: narrow ones are more."""
    assert len(_lines("i" * 400, TITLE_TYPE, 9)[0]) > 3 * len(_lines("W" * 400, TITLE_TYPE, 9)[0])
    assert len(_lines("Attention maps: how a decoder sees itself, layer 0", TITLE_TYPE, 2)) == 1
