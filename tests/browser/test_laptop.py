"""A student alone with a laptop and no network, from the start of the program to what they keep.

One test, since it is one evening. `PICTURES=folder` keeps a picture of each scene.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from explorer.app.page_table import PLACES
from explorer.runs.run import Run
from explorer.runs.spec import DONE
from tests.browser import chromium
from tests.browser.offline import Laptop
from tests.browser.test_typed_texts import HARMFUL
from tests.browser.visiting import Visitor
from tests.served import wait_until

SENTENCE, LESSON = "To sleep, perchance to dream", "Attention by hand"


def spends_an_evening(laptop: Laptop, visitor: Visitor, pictures: Path) -> None:
    page = visitor.page

    def look(scene: str) -> None:
        """Nothing went wrong; a picture of what is on the screen."""
        visitor.has_everything()
        visitor.no_mishap()
        page.screenshot(path=pictures / f"laptop-{scene}.png")

    visitor.open("/")
    visitor.drawn()
    alone = [process.pid for process in laptop.leftovers()]
    assert alone == [laptop.pid], "who does not train has no processes for it"
    look("1-first-page")

    visitor.follow("Attention maps")
    visitor.choose("Model", "Shakespeare, subword by subword")
    visitor.until_run(lambda: visitor.type(SENTENCE))
    visitor.asks(text=SENTENCE)
    before = visitor.picture("attention_head")
    visitor.pick("overview", layer=0, head=2)
    visitor.at_head(0, 2)
    visitor.changed("attention_head", before)
    look("2-head")

    visitor.follow("Lessons")
    page.get_by_role("link", name=LESSON).click()
    strip = page.locator(".lesson-strip")
    expect(strip.locator(".where")).to_have_text(LESSON)
    visitor.rest()
    visitor.choose("Query", "0 · <cls>")
    expect(strip.locator(".mark")).to_be_visible()
    look("3-lesson")
    strip.get_by_role("button", name="Next").click()
    visitor.asks(lesson_step="2")
    visitor.rest()

    visitor.until_run(lambda: visitor.type(HARMFUL))
    for title in (next(iter(pages.values())).title for pages in PLACES.values()):
        visitor.follow(title)
        expect(page).to_have_title(f"{title} · Attention explorer")
        visitor.no_mishap()
    look("4-last-page")

    visitor.open("/training?task=reverse")
    page.get_by_role("button", name="Settings").click()
    visitor.fill("Steps", "30")
    visitor.widget("start_training").get_by_role("button").click()
    run = Run(laptop.runs / "reverse-1")
    wait_until(lambda: run.folder.exists() and run.status().state == DONE, "a trained model")
    visitor.says(re.compile("reverse-1 · .*done", re.IGNORECASE))
    look("5-trained")
    visitor.widget("open_run").get_by_role("button").click()
    visitor.titled("Attention maps")
    visitor.asks(model="reverse-1")
    visitor.until_run(lambda: visitor.type("abc"))
    visitor.drawn("attention_head")
    look("6-own-model")

    visitor.widget("export").get_by_role("button").first.click()
    with page.expect_download() as download:
        visitor.widget("export_html").get_by_role("button").click()
    kept = pictures / "kept.html"
    download.value.save_as(kept)
    page.goto(kept.as_uri())
    page.locator("[data-painted]").first.wait_for(state="visible")
    page.screenshot(path=pictures / "laptop-7-kept.png")


def test_a_laptop_without_a_network(browser: Browser, tmp_path: Path) -> None:
    path = chromium.find()
    assert path is not None
    pictures = Path(os.environ.get("PICTURES") or tmp_path)
    with Laptop(tmp_path) as laptop:
        start, flags = browser.browser_type.launch, list(chromium.FLAGS)
        with start(executable_path=laptop.browser(path), args=flags) as inside:
            spends_an_evening(laptop, Visitor(inside, laptop.url), pictures)
        laptop.stop()
        assert not laptop.tracebacks, laptop.tracebacks[0]
        assert not laptop.leftovers()
        assert laptop.asked == "", "hosts that the program wanted to reach"
