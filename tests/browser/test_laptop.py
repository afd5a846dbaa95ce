"""A student alone with a laptop and no network, from the start of the program to what they keep.

One test, since it is one evening: it takes a minute. `PICTURES=folder` keeps a picture of each
scene.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from explorer.runs.run import Run
from explorer.runs.spec import DONE
from tests.browser import chromium
from tests.browser.offline import Laptop
from tests.browser.visiting import Visitor
from tests.served import wait_until


class Evening:
    """What the student does, one scene after the other."""

    def __init__(self, laptop: Laptop, visitor: Visitor, pictures: Path) -> None:
        self.laptop, self.visitor, self.page = laptop, visitor, visitor.page
        self.pictures = pictures
        self.taken = 0

    def look(self, what: str) -> None:
        """Nothing went wrong; a picture of what is on the screen."""
        self.visitor.has_everything()
        self.visitor.no_mishap()
        self.taken += 1
        self.page.screenshot(path=self.pictures / f"laptop-{self.taken:02}-{what}.png")

    def opens_the_app(self) -> None:
        self.visitor.open("/")
        self.visitor.drawn()
        alone = [process.pid for process in self.laptop.leftovers()]
        assert alone == [self.laptop.pid], "who does not train has no processes for it"
        self.look("first-page")

    def types_a_sentence_and_turns_to_a_head(self) -> None:
        self.visitor.follow("Attention maps")
        self.visitor.choose("Model", "shakespeare")
        self.visitor.until_run(lambda: self.visitor.type("To sleep, perchance to dream"))
        self.visitor.asks(text="To sleep, perchance to dream")
        before = self.visitor.picture("attention_head")
        self.visitor.pick("overview", layer=0, head=1)
        self.visitor.at_head(0, 1)
        self.visitor.changed("attention_head", before)
        self.look("head")

    def does_a_step_of_a_lesson(self) -> None:
        lesson = "Attention by hand"
        self.visitor.follow("Lessons")
        self.page.get_by_role("link", name=lesson).click()
        expect(self.page.locator(".lesson-strip .where")).to_have_text(lesson)
        self.visitor.rest()
        self.visitor.choose("Query", "0 · <cls>")
        strip = self.page.locator(".lesson-strip")
        expect(strip.locator(".mark")).to_be_visible()
        self.look("lesson")
        strip.get_by_role("button", name="Next").click()
        self.visitor.asks(lesson_step="2")
        self.visitor.rest()

    def opens_every_page(self) -> None:
        for title in self.visitor.links().all_text_contents():
            self.visitor.follow(str(title).strip())
            self.visitor.no_mishap()
        self.look("last-page")

    def trains_a_model(self) -> None:
        self.visitor.open("/training?task=reverse")
        self.visitor.fill("Steps", "30")
        self.visitor.widget("start_training").get_by_role("button").click()
        run = Run(self.laptop.runs / "reverse-1")
        wait_until(lambda: run.folder.exists() and run.status().state == DONE, "a trained model")
        self.visitor.says(re.compile("reverse-1 · .*done", re.IGNORECASE))
        self.look("trained")

    def opens_what_was_trained(self) -> None:
        self.visitor.widget("open_run").get_by_role("button").click()
        self.visitor.titled("Attention")
        self.visitor.asks(model="reverse-1")
        self.visitor.rest()
        expect(self.page.get_by_role("combobox", name="Model")).to_have_value("reverse-1")
        self.visitor.drawn("attention_head")
        self.look("own-model")

    def keeps_the_views(self) -> None:
        self.visitor.widget("export").get_by_role("button").first.click()
        with self.page.expect_download() as download:
            self.visitor.widget("export_html").get_by_role("button").click()
        kept = self.pictures / "kept.html"
        download.value.save_as(kept)
        self.page.goto(kept.as_uri())
        self.page.locator("[data-painted]").first.wait_for(state="visible")
        self.page.screenshot(path=self.pictures / "laptop-kept.png")


def test_a_laptop_without_a_network(browser: Browser, tmp_path: Path) -> None:
    path = chromium.find()
    assert path is not None
    pictures = Path(os.environ.get("PICTURES") or tmp_path)
    with Laptop(tmp_path) as laptop:
        inside = browser.browser_type.launch(
            executable_path=laptop.browser(path), args=list(chromium.FLAGS)
        )
        with inside:
            evening = Evening(laptop, Visitor(inside, laptop.url), pictures)
            evening.opens_the_app()
            evening.types_a_sentence_and_turns_to_a_head()
            evening.does_a_step_of_a_lesson()
            evening.opens_every_page()
            evening.trains_a_model()
            evening.opens_what_was_trained()
            evening.keeps_the_views()
        laptop.stop()
        assert not laptop.tracebacks, laptop.tracebacks[0]
        assert not laptop.leftovers()
        assert laptop.asked == "", "hosts that the program wanted to reach"
