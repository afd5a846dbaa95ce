"""Takes the README's pictures from the running app: `python -m docs.pictures`."""

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser import chromium
from tests.browser.visiting import Visitor
from tests.served import Server

HERE = Path(__file__).resolve().parent
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


if __name__ == "__main__":
    main()
