"""Films the README's moving picture from the running app: `python -m docs.moving_picture`.

It downloads the pretrained model as a reader would, with one click, types a sentence, lets the pass
run through all layers, clicks the edge that moved the name, and opens that head's numbers.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from docs.pictures import page_words, write_words
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS
from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.served import Server

HERE = Path(__file__).resolve().parent
FILE = HERE / "overview.webp"
FIRST_PAGE = "/overview"
SIZE, SHOWN = (1280, 720), (960, 540)
SENTENCE = "When Mary and John went to the store, John gave a drink to"
LONG = 1_600
"""Milliseconds that a picture stands which one wants to read."""


class Film:
    """Pictures of a page with the milliseconds that each is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[tuple[Image.Image, int]] = []

    def take(self, shown: int) -> None:
        image = Image.open(io.BytesIO(self.page.screenshot(animations="disabled")))
        self.frames.append((image.convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS), shown))

    def save(self, path: Path) -> None:
        first, *others = (image for image, _ in self.frames)
        times = [shown for _, shown in self.frames]
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=times,
            loop=0,
            quality=70,
            method=6,
        )


def film(browser: Browser, server: Server) -> Film:
    """From the first page of a new reader to the numbers of one head."""
    visitor = Visitor(browser, server.url, width=SIZE[0], height=SIZE[1])
    page, film = visitor.page, Film(visitor.page)
    page.emulate_media(reduced_motion="no-preference")
    visitor.open("/")
    visitor.drawn()
    film.take(LONG)
    page.get_by_role("button", name="Get SmolLM2").click()
    download(film)
    visitor.drawn()
    film.take(LONG)
    sentence = page.get_by_label("Your sentence")
    for words in (SENTENCE[:20], SENTENCE[:40], SENTENCE):
        sentence.fill(words)
        film.take(250)
    sentence.press("Enter")
    map_ = page.locator(".pass-map")
    expect(map_.locator(".options")).to_contain_text("Mary")
    visitor.drawn()
    film.take(LONG)
    play(film, map_.locator(".play"))
    film.take(600)
    pick_strongest(page, map_)
    expect(map_.locator(".card")).to_contain_text("Mary")
    visitor.drawn()
    film.take(LONG)
    page.get_by_role("button", name="Head, step by step").click()
    visitor.titled("Head, step by step")
    visitor.drawn()
    film.take(2 * LONG)
    visitor.close()
    return film


def download(film: Film) -> None:
    """The bar, whenever it says something new, until the model is chosen."""
    model, said = film.page.get_by_label("Model", exact=True), ""
    while model.input_value() != PRETRAINED_MODELS[FIRST].title:
        bars = film.page.get_by_test_id("stProgress").all_inner_texts()
        if bars and bars[0] != said:
            said = bars[0]
            film.take(300)


def play(film: Film, button: Locator) -> None:
    """The pass from the tokens to the answer."""
    button.click()
    while button.inner_text() == "Pause":
        film.take(120)


def pick_strongest(page: Page, map_: Locator) -> None:
    """Click the edge that carries most to the answer, where the picture says it is."""
    x, y = (float(at) for at in str(map_.get_attribute("data-strongest")).split())
    box = map_.locator(".stage").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + y)


def main(path: Path = FILE) -> None:
    chromium_path = chromium.ensure()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        env = {"EXPLORER_EXAMPLES": str(Path(place) / "examples")}
        with Server(Path(place) / "runs", env=env) as server:
            args = list(chromium.FLAGS)
            browser = playwright.chromium.launch(executable_path=chromium_path, args=args)
            film(browser, server).save(path)
            browser.close()
    write_words({path.name: page_words(FIRST_PAGE)})
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
