"""Takes the README's pictures from the running app: `python -m docs.pictures`.

Beside them it writes the words of each page, so that a test can name a picture whose page changed.
"""

import json
import re
import tempfile
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Browser, sync_playwright

from tests import apps
from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.served import Server

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


def page_words(address: str) -> list[str]:
    """The sentences, labels and figures of a page without its numbers."""
    parts = urlsplit(address)
    (path,) = (HERE.parent / "pages").glob(f"*/{parts.path.strip('/')}.py")
    at = apps.page(f"{path.parent.name}/{path.stem}", **dict(parse_qsl(parts.query)))
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
        visitor.page.screenshot(path=folder / name, animations="disabled")
    finally:
        visitor.close()
    return folder / name


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
        browser.close()
    write_words({name: page_words(address) for name, (address, _) in PICTURES.items()})


if __name__ == "__main__":
    main()
