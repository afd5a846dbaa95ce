"""A session kept: views are named and ordered; the page, the slides and the talk they become."""

import io
from pathlib import Path

from playwright.sync_api import Browser, expect
from pypdf import PdfReader

from tests.browser.conftest import Visit
from tests.browser.visiting import Notes, Visitor

TEXT = "the black cat"
MATRIX = f"/attention?model=translation&part=Cross&text={TEXT}&layer=0&head=1"
HARMFUL = "<img src=x onerror=alert(1)> **bold**"


def keep(visitor: Visitor, address: str, count: int) -> None:
    """Add the view at this address; the button beside says how many there are then."""
    visitor.open(address)
    visitor.has_everything()
    visitor.until_run(visitor.widget("keep").get_by_role("button").click)
    expect(visitor.widget("kept_session")).to_contain_text(f"Session · {count}")


def saved(visitor: Visitor, ending: str, folder: Path) -> Path:
    with visitor.page.expect_download() as download:
        visitor.widget(f"kept_{ending}").get_by_role("button").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_session_is_page_slides_and_talk(visit: Visit, browser: Browser, tmp_path: Path) -> None:
    """Of two views, the charts first; the click on a file ends the typing."""
    kept = visit()  # who has kept nothing before
    keep(kept, MATRIX, 1)
    keep(kept, f"/query_key?pair_view=Products&model=translation&text={TEXT}", 2)
    window = kept.page.get_by_role("dialog")
    kept.until_run(kept.widget("kept_session").get_by_role("button").click)
    small = window.get_by_role("listitem").get_by_role("button")
    kept.until_run(small.last.click)
    title = window.get_by_role("textbox", name="View 2")
    title.fill(HARMFUL)
    kept.until_run(lambda: title.press("Enter"))
    kept.until_run(lambda: small.last.press("Alt+ArrowUp"))
    expect(window.get_by_role("textbox", name="View 1")).to_have_value(HARMFUL)
    expect(small.first).to_be_focused()
    kept.until_run(lambda: small.first.drag_to(small.last))
    kept.until_run(lambda: small.last.drag_to(small.first))
    expect(small.first).to_have_text(f"1 · {HARMFUL}")
    area = window.get_by_role("textbox", name="Notes")
    for note in ("Said at first.", "And said then."):
        area.fill(note)
        assert f">{note}</p>" in saved(kept, "html", tmp_path).read_text("utf-8")
        area.fill(f"{note} More.")
        for _ in range(2):  # each click gives a file
            talk = saved(kept, "toml", tmp_path).read_text("utf-8")
            assert f'notes = "{note} More.\\n\\nmodel: ' in talk
    path = saved(kept, "html", tmp_path)
    slides = PdfReader(io.BytesIO(saved(kept, "pdf", tmp_path).read_bytes()))
    assert len(slides.pages) == 2
    assert HARMFUL in slides.pages[0].extract_text()

    window.get_by_role("button", name="Open as a talk").click()
    kept.asks(lesson="the-black-cat", lesson_step="1", present="true")
    expect(kept.widget("lesson_panel")).to_contain_text(HARMFUL)
    kept.page.keyboard.press("Space")
    kept.asks(lesson_step="2")  # what it comes from stands in the notes
    expect(kept.widget("lesson_panel")).not_to_contain_text("sentence")
    kept.page.keyboard.press("Escape")

    kept.open(MATRIX)
    said = kept.point("attention_head", 2, 1).inner_text()
    reader = Visitor(browser, "file://", height=720)
    reader.context.set_offline(True)
    reader.page.goto(path.as_uri())
    shown = reader.page.locator(".step:not([hidden]):not(.drawing)")
    expect(shown.get_by_role("heading")).to_have_text(HARMFUL)
    expect(shown.locator("img").first).to_be_visible()
    reader.page.keyboard.press("Space")
    expect(reader.page.locator("#counter")).to_have_text("2 / 2")
    shown.locator(".matrix canvas").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):  # the first goes in
        reader.page.keyboard.press(key)
    expect(shown.locator(".matrix .sentence")).to_contain_text(said)
    assert reader.notes == Notes()
    reader.close()

    keep(kept, f"/?model=translation&text={TEXT}", 3)  # whose answers come behind the picture
    kept.until_run(kept.widget("kept_session").get_by_role("button").click)
    page = saved(kept, "html", tmp_path).read_text("utf-8")
    assert "-late-answers" in page
    assert "<dt>attention</dt><dd>Cross</dd>" in page
