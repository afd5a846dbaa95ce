"""Takes the pictures of the README and of the list of lessons: `python -m docs.pictures`.

It takes them from the running app. Beside those of the README it writes the words of each page, so
that a test can name a picture whose page changed.
"""

import io
import json
import re
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from explorer.app import address_parameters
from explorer.lessons.lesson_catalog import FILES
from explorer.lessons.lesson_catalog import PICTURES as OF_LESSONS
from explorer.lessons.lesson_file import read_file
from tests import apps
from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.served import Server
from tests.smollm2 import folder_with_smollm2

HERE = Path(__file__).resolve().parent
WORDS = HERE / "pictures.json"
NUMBER = re.compile(r"[-−]?\d[\d.,]*(e[-−]?\d+)?")
WIDTH, HEIGHT = 1280, 800
PICTURES: dict[str, tuple[str, bool]] = {
    "attention-dark.png": ("/attention", True),
    "interventions.png": (
        "/interventions?model=shakespeare&layer=0&head=1&edits=1.1~h.d.0.1.z",
        False,
    ),
    "forward_pass.png": (
        "/forward_pass?model=translation&text=the+cat&stage=encoder.0.mlp.out",
        False,
    ),
    "museum.png": ("/museum", False),
}
"""File name: the address it shows, and whether it shows it dark."""

STEPS = {
    "attention_by_hand": 5,
    "two_layers_make_induction": 3,
}
"""The step of a lesson that its picture shows; of the others the first."""
SMALL = (320, 200)
FIGURE = """() => {
  const area = box => box.width * box.height;
  const found = [...document.querySelectorAll('[class*="st-key-stage-"]')];
  const [largest] = found.map(e => e.getBoundingClientRect()).sort((a, b) => area(b) - area(a));
  const {x, y, width, height} = largest ?? {x: 300, y: 100, width: 960, height: 600};
  return {x, y, width: Math.min(width, height * 1.6), height: Math.min(height, width / 1.6)};
}"""
"""The upper left of the largest figure, in the shape of a small picture."""


def page_words(address: str) -> list[str]:
    """The sentences, labels and figures of a page without its numbers."""
    at = apps.linked(address)
    controls = [*at.button, *at.selectbox, *at.toggle, *at.get("button_group")]
    labels = [control.label for control in controls if control.label]
    words = [*apps.said(at).splitlines(), *labels, *sorted(map(str, apps.views(at)))]
    return [NUMBER.sub("#", line) for line in words]


def write_words(pages: dict[str, list[str]]) -> None:
    """The words of these pictures' pages, beside those of the others."""
    words = json.loads(WORDS.read_text("utf-8")) | pages
    WORDS.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", "utf-8")


def take(browser: Browser, server: Server, name: str, folder: Path) -> Path:
    """One picture of one address, taken when everything on it is drawn."""
    address, dark = PICTURES[name]
    visitor = Visitor(browser, server.url, width=WIDTH, height=HEIGHT, dark=dark)
    try:
        visitor.open(address)
        visitor.drawn()
        visitor.has_everything()
        visitor.page.screenshot(path=folder / name, animations="disabled")
    finally:
        visitor.close()
    return folder / name


def take_lesson(browser: Browser, server: Server, path: Path) -> Path:
    """The main figure of one step of a lesson, small."""
    lesson = read_file(path, address_parameters.of_pages())
    step = lesson.steps[STEPS.get(lesson.name, 1) - 1]
    visitor = Visitor(browser, server.url, width=WIDTH, height=HEIGHT)
    try:
        visitor.open(step.ends or step.begins)
        visitor.has_everything()
        visitor.settled()
        figure = visitor.page.screenshot(animations="disabled", clip=visitor.page.evaluate(FIGURE))
    finally:
        visitor.close()
    OF_LESSONS.mkdir(exist_ok=True)
    file = OF_LESSONS / f"{lesson.name}.webp"
    image = Image.open(io.BytesIO(figure)).convert("RGB")
    image.resize(SMALL, Image.Resampling.LANCZOS).save(file, quality=70, method=6)
    return file


def main(folder: Path = HERE) -> None:
    path = chromium.ensure()
    with (
        tempfile.TemporaryDirectory() as runs,
        Server(Path(runs) / "runs") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        for name in PICTURES:
            print(take(browser, server, name, folder))
        models = {"EXPLORER_EXAMPLES": str(folder_with_smollm2())}
        with Server(Path(runs) / "lessons", env=models) as server:
            for lesson in sorted(FILES.glob("*.toml")):
                print(take_lesson(browser, server, lesson))
        browser.close()
    write_words({name: page_words(address) for name, (address, _) in PICTURES.items()})


if __name__ == "__main__":
    main()
