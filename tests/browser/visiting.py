"""A visitor's browser: opens the app, waits until it rests, and notes what it saw."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    FloatRect,
    Locator,
    Page,
    Position,
    Request,
    ViewportSize,
    WebSocket,
    WebSocketRoute,
    expect,
)
from playwright.sync_api import TimeoutError as NotInTime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from explorer.app.page_table import ROWS, place_of
from tests.budget import spend
from tests.served import wait_until

expect.set_options(timeout=30_000)  # what is waited for may be slow, what never comes still fails
DRAWN_ANEW = """() => new Promise(come => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(come)));
})"""
SETTLED = Path(__file__).with_name("settled.js").read_text("utf-8")
THEME = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
WITHIN = "main => main.scrollWidth <= main.clientWidth"
AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]'
RESTS = f"""seconds => new Promise(come => {{
  const end = performance.now() + 1000 * seconds;
  const look = () => {{
    const title = () => document.querySelector('[data-testid="stMain"] h1');
    if (document.querySelector('{AT_REST}') && title()?.checkVisibility()) come(true);
    else if (performance.now() > end) come(false);
    else setTimeout(look, 10);
  }};
  look();
}})"""
"""Looks in the page itself, since Playwright looks again half a second after it found nothing."""


GO = """address => {
  const presents = new URL(address, location.href).searchParams.get("present") === "true";
  globalThis.explorerPresenter?.turn(presents);
  history.pushState({}, "", address);
  dispatchEvent(new PopStateEvent("popstate", {state: {}}));
}"""
"""As the browser's own Back goes: the app stays loaded."""
IN_APP = """() => !!document.querySelector("[data-test-connection-state=CONNECTED]")"""
BEGIN = """async () => {
  document.activeElement?.blur();
  if (document.fullscreenElement) await document.exitFullscreen();
}"""
QUIET = "/lessons"
"""Where nothing is chosen: over it an address leads to its page as somebody new sees that page."""


def box_of(drawn: Locator) -> FloatRect:
    """Where it is on the screen."""
    box = drawn.bounding_box()
    assert box is not None, "it is not in sight"
    return box


def is_end(message: bytes | str) -> bool:
    """Whether the server says that it has run the page's script."""
    said = ForwardMsg.FromString(message) if isinstance(message, bytes) else ForwardMsg()
    return said.WhichOneof("type") == "script_finished"


class EndOfPage:
    """Whether the server says that it has run a whole page that it began since this was made."""

    def __init__(self) -> None:
        self.has_begun = False

    def __call__(self, message: bytes | str) -> bool:
        if not isinstance(message, bytes):
            return False
        said = ForwardMsg.FromString(message)
        self.has_begun |= said.WhichOneof("type") == "new_session"
        is_whole = said.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        return self.has_begun and is_end(message) and is_whole


NOT_OURS = ("/_stcore/upload_file/", "ReadPixels", "Canvas2D", "WebSocket onclose")


@dataclass
class Notes:
    """What went on in one browser context that no test asked for."""

    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https", "ws", "wss"}:
            self.hosts.add(parts.netloc)

    def said(self, message: ConsoleMessage) -> None:
        # Not ours: an upload is refused, plotly reads its canvas, the server is gone.
        words = f"{message.location} {message.text}"
        if message.type in {"error", "warning"} and not any(each in words for each in NOT_OURS):
            self.errors.append(message.text)

    def interrupted(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


class SlowLine:
    """A line to the server on which answers can be held back; to be laid before a page opens."""

    def __init__(self, page: Page) -> None:
        self.held: list[bytes | str] | None = None
        page.route_web_socket(re.compile("_stcore/stream"), self._connect)

    def _connect(self, browser: WebSocketRoute) -> None:
        self._browser = browser
        self._server = browser.connect_to_server()
        self._server.on_message(self._down)

    def _down(self, message: bytes | str) -> None:
        if self.held is None:
            self._browser.send(message)
        else:
            self.held.append(message)

    def hold(self) -> None:
        """From now on the browser hears nothing."""
        self.held = []

    def answered(self, page: Page, runs: int) -> None:
        """Wait until the server has run so often while its answers were held back."""

        def has_run() -> bool:
            page.evaluate(DRAWN_ANEW)  # meanwhile messages arrive
            return sum(map(is_end, self.held or ())) >= runs

        wait_until(has_run, f"the end of {runs} runs")

    def release(self) -> None:
        """The browser hears everything, in order."""
        held, self.held = self.held or [], None
        for message in held:
            self._browser.send(message)


class Visitor:
    """One person with a browser of their own."""

    def __init__(
        self,
        browser: Browser,
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
    ) -> None:
        self.url = url
        self.size = ViewportSize(width=width, height=height)
        self.notes = Notes()
        self._socket: WebSocket | None = None
        self._underway = set[Request]()
        how: Any = {"color_scheme": "dark" if dark else "light", "reduced_motion": "reduce"}
        self.context = browser.new_context(viewport=self.size, has_touch=touch, **how)
        self.context.set_default_timeout(60_000)
        self.context.on("request", lambda request: self.notes.asked(request.url))
        self.context.on("request", lambda request: self._underway.add(request))
        self.context.on("requestfinished", lambda request: self._underway.discard(request))
        self.context.on("requestfailed", lambda request: self._underway.discard(request))
        self.context.on("console", lambda message: self.notes.said(message))
        self.context.on("weberror", lambda error: self.notes.errors.append(str(error.error)))
        self.context.on("dialog", lambda dialog: self.notes.interrupted(dialog))
        self.page: Page = self.context.new_page()
        self.page.on("websocket", self._connected)

    def _connected(self, socket: WebSocket) -> None:
        self.notes.asked(socket.url)
        self._socket = socket

    @property
    def socket(self) -> WebSocket:
        """How the page that was opened last talks with its server."""
        assert self._socket is not None, "no page of the app was opened"
        return self._socket

    def begin(self) -> None:
        """As somebody who just came: with nothing noted or open, and the pointer out of the way."""
        self.notes = Notes()
        self.page.emulate_media(reduced_motion="reduce", color_scheme="light")
        self.page.evaluate(BEGIN)
        self.page.set_viewport_size(self.size)
        self.page.mouse.move(0, 0)

    def leave(self) -> None:
        """Close the page: one that stays open asks on, beside what comes next."""
        self.page.goto("about:blank")

    def open(self, address: str = "/", *, fresh: bool = False) -> Page:
        """Go to an address of the app and wait until it is drawn.

        Where the app is loaded it stays so, and the address alone decides what is shown, but for
        what a session holds besides; `fresh` loads the app as a link does.
        """
        path = urlsplit(address).path
        is_in_app = self.page.url.startswith(self.url) and self.page.evaluate(IN_APP)
        if fresh or path == "/overview" or not is_in_app:
            return self.load(address)
        if urlsplit(self.page.url).path == path:  # what only a page holds ends on the way
            self._go(QUIET if path != QUIET else "/museum")
        self._go(address)
        return self.page

    def _go(self, address: str) -> None:
        self.until_page(lambda: self.page.evaluate(GO, address))

    def until_page(self, act: Callable[[], object]) -> None:
        """Do what leads to a page, and wait until all of it is drawn."""
        self._until(EndOfPage(), act)

    def _until(self, is_over: Callable[[bytes | str], bool], act: Callable[[], object]) -> None:
        self.rest()
        with self.socket.expect_event("framereceived", is_over, timeout=60_000):
            act()
        self.page.evaluate(DRAWN_ANEW)
        self.rest()

    def load(self, address: str = "") -> Page:
        """Load the app in this tab, at an address or where it is, and wait until it is drawn."""
        self.fetch(address)
        self.rest()
        return self.page

    def fetch(self, address: str = "") -> None:
        """Every cold load of a page is made here: it is what takes the browser's time."""
        spend("load")
        self._underway.clear()  # the browser may not say how requests of the page before end
        if address:
            self.page.goto(self.url + address)
        else:
            self.page.reload()

    def rest(self, seconds: float = 90) -> None:
        """Wait until the app has drawn something and its script has ended."""
        assert self.page.evaluate(RESTS, seconds), f"{self.page.url} was not drawn in {seconds} s"

    def settled(self, seconds: float = 30) -> None:
        """Wait until nothing moves, fades or is laid out anew, as after another theme or size.

        What reads a colour, a size, a place or a picture after a switch waits for this.
        """
        self.page.evaluate(SETTLED, seconds)

    def themed(self, theme: str) -> None:
        """The system asks for this theme, “light” or “dark”; the page has it."""
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        self.page.wait_for_function(f"() => {THEME} === '{theme}'")
        self.settled()

    def sized(self, width: int, height: int = 900) -> None:
        """The window has this size, and the page is laid out for it."""
        self.page.evaluate(BEGIN)  # one in full screen keeps its size
        self.page.set_viewport_size({"width": width, "height": height})
        self.settled()

    def fits(self, what: str) -> None:
        """Nothing runs over the edge of the page but within its own frame; tables resize late."""
        main = self.page.get_by_test_id("stMain")
        wait_until(lambda: bool(main.evaluate(WITHIN)), f"{what} within the edge of the page")

    def has_everything(self) -> None:
        """Wait until all that the page shows has come: its code, its fonts, its pictures.

        Streamlit fetches the code of a kind of element when it first draws one.
        """

        def nothing_comes() -> bool:
            self.page.evaluate(DRAWN_ANEW)  # what has come may ask for more
            return not self._underway and not self.page.get_by_test_id("stSkeleton").count()

        def everything() -> str:
            requests = [request.url for request in self._underway]
            return f"everything that {self.page.url} shows (requests: {requests})"

        wait_until(nothing_comes, everything)

    def follow(self, title: str) -> None:
        """Click the page's place in the navigation, then its view, until that page is drawn."""
        ((name, row),) = [(name, row) for name, row in ROWS.items() if row.title == title]
        place, views = place_of(name)
        for link, text in ((self.links(), place), (self.widget("views").locator("a"), row.view)):
            if self.page.title().partition(" · ")[0] != title and (text or len(views) > 1):
                named = re.compile(f"^{re.escape(text or title)}$")
                self.until_page(link.filter(has_text=named).click)
        self.titled(title)

    def links(self) -> Locator:
        """The places in the navigation."""
        return self.widget("navigation").locator("a")

    def titled(self, title: str) -> None:
        expect(self.page).to_have_title(re.compile(f"^{title} · "), timeout=60_000)

    def presents(self, is_on: bool = True) -> None:
        """Wait until the page is presented, or no longer."""
        expect(self.page.locator("html.presenting")).to_have_count(int(is_on))

    def drawn(self, key: str = "") -> None:
        """Wait until a canvas view (the one under this key, or any) has been painted."""
        place = f".st-key-{key} " if key else ""
        self.page.locator(f"{place}[data-painted]").first.wait_for(state="visible", timeout=60_000)

    def cell(self, key: str, row: float, column: float) -> tuple[Locator, Position]:
        """The canvas of the view under this key, and the middle of one of its cells on it."""
        self.drawn(key)
        view = self.widget(key).locator("[data-cells]").first
        self.settled()
        left, top, *sizes = map(float, str(view.get_attribute("data-cells")).split())
        if columns := view.get_attribute("data-columns"):  # as many rows of cells in each
            rows, across = map(float, columns.split())
            left, row = left + row // rows * across, row % rows
        at = Position(x=left + (column + 0.5) * sizes[0], y=top + (row + 0.5) * sizes[-1])
        return view.locator("canvas").first, at

    def point(self, key: str, row: float, column: float) -> Locator:
        """Move the pointer over a cell; the sentence that the view says of it."""
        canvas, at = self.cell(key, row, column)
        canvas.hover(position=at)
        return self.widget(key).locator(".sentence").first

    def click(self, key: str, row: float, column: float) -> None:
        """Click a cell of the view under this key."""
        canvas, at = self.cell(key, row, column)
        canvas.click(position=at)

    def away(self) -> None:
        """Move the pointer off everything."""
        self.page.mouse.move(0, 0)

    def says(self, words: str | re.Pattern[str]) -> None:
        """Wait until the page says this."""
        expect(self.page.get_by_test_id("stMain").get_by_text(words).first).to_be_visible()

    def turn_to(self, name: str) -> None:
        """Choose one of a few by its name, beside or above the figure."""
        main = self.page.get_by_test_id("stMain")
        self.until_run(main.get_by_role("radio", name=name, exact=True).click)

    def until_run(self, act: Callable[[], object]) -> None:
        """Do this, and wait until what the script makes of it is shown.

        The address changes before the server knows of it, and a short run is not seen in the page.
        """
        self._until(is_end, act)

    def press(self, name: str) -> None:
        """Press the button of this name and wait until the page rests."""
        self.until_run(self.page.get_by_role("button", name=name, exact=True).click)

    def fill(self, label: str, text: str) -> None:
        """Type into a field of the page, until the page rests."""
        self.type(text, label)
        self.rest()

    def picture(self, key: str) -> str:
        """What is painted on the canvas under this key, as the browser would save it.

        With its fonts: a view may be painted before they are there, and is painted again.
        """
        self.drawn(key)
        self.settled()
        url: str = self.widget(key).locator("canvas").first.evaluate("canvas => canvas.toDataURL()")
        return url

    def changed(self, key: str, before: str) -> str:
        """Wait until something else is painted under this key; what it is."""
        wait_until(lambda: self.picture(key) != before, f"another picture under {key}", 30)
        return self.picture(key)

    def shows(self, key: str, picture: str) -> None:
        """Wait until this is painted under this key."""
        wait_until(lambda: self.picture(key) == picture, f"the same picture under {key}", 30)

    def pick(self, key: str, *, layer: int, head: int) -> None:
        """Click the small picture of a head in the overview under this key."""
        self.click(key, layer, head)

    def type(self, text: str, label: str = "Your sentence") -> None:
        """Put a sentence of one's own into the field on every page."""
        field = self.page.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Enter")

    def choose(self, label: str, option: str) -> None:
        """Pick an option of the list with this label: type it until it is marked, then Enter.

        A click would have to hit what is drawn anew while the list scrolls. A list that
        closes while the page settles keeps what was typed and chooses nothing; left, it
        shows what is chosen.
        """
        box = self.page.get_by_role("combobox", name=label)
        marked = self.page.locator("[role=option][data-focused=true]").filter(has_text=option)

        def chosen() -> bool:
            box.click()
            box.fill("")
            box.fill(option)
            if marked.count() == 1:
                box.press("Enter")
            box.blur()
            return option in box.input_value()

        self.until_run(lambda: wait_until(chosen, f"{option} in a list"))

    def hide(self, *names: str) -> Locator:
        """Open Share and choose these controls to be hidden; the field that has the link then.

        A list that closes while the page settles is opened again.
        """
        self.until_run(self.page.get_by_role("button", name="Share").click)
        listed = self.page.get_by_role("combobox", name="Hide controls")
        link = self.page.get_by_label("Link to this page")
        for count, name in enumerate(names, 1):
            option = self.page.get_by_role("option", name=name, exact=True)
            has_it = re.compile(rf"(hidden=.*){{{count}}}")

            def hidden(
                name: str = name, option: Locator = option, has_it: re.Pattern[str] = has_it
            ) -> bool:
                listed.fill(name)
                with suppress(NotInTime):
                    option.click(timeout=5_000)
                with suppress(AssertionError):
                    expect(link).to_have_value(has_it, timeout=5_000)
                return bool(has_it.search(link.input_value()))

            wait_until(hidden, f"a link that hides {name}")
        if names:
            listed.fill("")
            listed.blur()
        return link

    def query(self) -> dict[str, str]:
        """The choices in the address."""
        here: str = self.page.evaluate("location.search")
        return dict(parse_qsl(here.removeprefix("?")))

    def asks(self, **choices: str) -> None:
        """Wait until the address holds these choices."""
        wanted = choices.items()
        wait_until(
            lambda: self.query().items() >= wanted, lambda: f"{choices} in {self.page.url}", 60
        )

    def at_head(self, layer: int, head: int) -> None:
        """Wait until the bar has this head; the address leaves out a model's first one."""
        for key, value in (("layer", layer), ("head", head)):
            expect(self.widget(key).locator("input")).to_have_value(str(value))

    def widget(self, key: str) -> Locator:
        """What the app drew under this key."""
        return self.page.locator(f".st-key-{key}")

    def no_mishap(self) -> None:
        """No traceback, no error of a script, no dialog, nothing asked of another host."""
        self.no_traceback()
        assert not self.notes.errors, f"of a script or a policy: {self.notes.errors[0]}"
        assert self.notes.dialogs == []
        assert self.notes.hosts <= {urlsplit(self.url).netloc}

    def no_traceback(self) -> None:
        """The page shows no traceback and no message of a failed script."""
        expect(self.page.get_by_test_id("stException")).to_have_count(0)
        expect(self.page.get_by_text("Traceback")).to_have_count(0)
        expect(self.page.get_by_text("Page not found")).to_have_count(0)

    def close(self) -> None:
        self.context.close()
