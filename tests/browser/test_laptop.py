"""A student alone with a laptop and no network, from the start of the program to what they keep.

One test, since it is one evening. `PICTURES=folder` keeps a picture of each scene.
"""

import os
import re
import signal
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

    visitor.until_run(lambda: visitor.type(HARMFUL))
    for title in (next(iter(pages.values())).title for pages in PLACES.values()):
        visitor.follow(title)
        expect(page).to_have_title(f"{title} · Attention explorer")
        visitor.no_mishap()
    look("2-last-page")

    visitor.open("/training?task=reverse&settings=steps~30")
    visitor.widget("start_training").get_by_role("button").click()
    run = Run(laptop.runs / "reverse-1")
    wait_until(lambda: run.folder.exists() and run.status().state == DONE, "a trained model")
    visitor.says(re.compile("reverse-1 · .*done", re.IGNORECASE))
    look("3-trained")
    visitor.widget("open_run").get_by_role("button").click()
    visitor.titled("Attention maps")
    visitor.asks(model="reverse-1")
    visitor.until_run(lambda: visitor.type("abc"))
    visitor.drawn("attention_head")
    look("4-own-model")

    visitor.widget("export").get_by_role("button").first.click()
    with page.expect_download() as download:
        visitor.widget("export_html").get_by_role("button").click()
    kept = pictures / "kept.html"
    download.value.save_as(kept)

    visitor.open("/training?task=induction&settings=steps~100000")
    visitor.widget("start_training").get_by_role("button").click()
    run = Run(laptop.runs / "induction-1")
    wait_until(lambda: run.folder.exists() and run.status().step >= 20, "20 steps")
    visitor.rest()
    page.goto(kept.as_uri())
    page.locator("[data-painted]").first.wait_for(state="visible")
    page.screenshot(path=pictures / "laptop-5-kept.png")


def test_a_laptop_without_a_network(browser: Browser, tmp_path: Path) -> None:
    path = chromium.find()
    assert path is not None
    pictures = Path(os.environ.get("PICTURES") or tmp_path)
    with Laptop(tmp_path) as laptop:
        start, flags = browser.browser_type.launch, list(chromium.FLAGS)
        with start(executable_path=laptop.browser(path), args=flags) as inside:
            spends_an_evening(laptop, Visitor(inside, laptop.url), pictures)
        laptop.stop(signal.SIGTERM)  # as when the laptop is shut down
        assert not laptop.tracebacks, laptop.tracebacks[0]
        assert not laptop.leftovers()
        assert laptop.asked == "", "hosts that the program wanted to reach"
        assert Run(laptop.runs / "induction-1").status().can_resume
