"""Pictures of attention in a browser beside the peers: bytes, and time to the last paint.

Ours is the page a reader can export: the same code as in the app, and the data. Its overview
sends at most 32 × 32 cells a head, each the largest of the weights it stands for; bertviz and
CircuitsVis send and draw every weight. That is the difference that is measured.

The last paint is told by the page itself, by no record of the browser's: it is the second frame in
a row in which nothing is new. Until then what a page is to draw is not all there (for ours, the
view has not said that it has painted), elements still come, fonts are read, or the script did not
let a frame through for half a second. Its time runs from the start of the navigation, so reading
the page and its code, unpacking the data and drawing count. Beside it stands what follows the mark
`HANDED`, where a page sets it before the first line of script that gets the data: that leaves out
reading a library's code. Every page is opened in a browser of its own that has so far shown one
line of text, and once to see that its pixels are there. What the browser still rasters after that
is not counted, which can only flatter a slow page.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median

from playwright.sync_api import Locator, Page, Route, expect
from playwright.sync_api import TimeoutError as NotInTime

from tests.benchmarks import drawings, peers
from tests.benchmarks.drawings import HANDED, HEADS, LAYERS, Drawing
from tests.benchmarks.driver import a_browser, an_app
from tests.benchmarks.measuring import NotMeasured, Row, at_most, by_turns, milliseconds, quantile
from tests.browser.visiting import AT_REST
from tests.components.samples import attention
from tests.served import ROOT

FRAME = 0.016
ROUNDS = 7
PATIENCE = 30.0
"""Seconds for a peer, or three times what it would need to miss the goal where that is more."""
WATCH = Path(__file__).with_name("watch_paints.js").read_text("utf-8")

PAINTED = Path(__file__).with_name("painted.js").read_text("utf-8")
RESTS = "() => window.painted?.last && performance.now() - window.painted.last > 500"
TIMES = f"""() => [0, performance.getEntriesByName("{HANDED}")[0]?.startTime ?? 0]
  .map(begun => (window.painted.last - begun) / 1000)"""
HIDE = """all => {
  for (const each of all) each.style.visibility = "hidden";
}"""


def overview() -> Iterator[Row]:
    goal, scripts = 0.1, peers.scripts()
    with tempfile.TemporaryDirectory() as folder:
        for name in peers.NAMES:
            see(peers.draw(name, drawings.weights(8), Path(folder)), scripts)
        weights = drawings.weights(128)
        ours, _ = drawings.overview(weights, Path(folder))
        mine = own_median(ours)
        patience = max(PATIENCE, 3 * mine / goal)
        theirs = {name: peers.draw(name, weights, Path(folder)) for name in peers.NAMES}
        took: dict[str, float | None] = dict.fromkeys(peers.NAMES)
        for name, page in theirs.items():
            with suppress(NotMeasured):  # one that is not done is only known to be slower
                took[name] = last_paint(page, scripts, patience)[0]
        sizes = ours.size, theirs[peers.BERTVIZ].size
    what = f"overview of {LAYERS * HEADS} heads at 128 tokens"
    beside = f"{sizes[1]:,} of {peers.BERTVIZ} without its scripts"
    yield Row(f"{what}: bytes of the whole page", f"{sizes[0]:,}", beside, sizes[0] / sizes[1])
    late = f"not done after {patience:.0f} s"
    said = ", ".join(f"{name} {f'{p:.1f} s' if p else late}" for name, p in took.items())
    best = min(paint or patience for paint in took.values())
    what, goals = f"{what}: navigation to last paint", f"≤ {goal:g} × the best"
    yield Row(what, milliseconds(mine), said, mine / best, goals, mine <= goal * best)


def long_overview() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = drawings.overview(drawings.weights(512), Path(folder))
        seconds = own_median(ours)
        with new_page() as page:
            open_until_rest(page, ours)
            heads = [(at % LAYERS, at // LAYERS) for at in range(1, LAYERS * HEADS, 4)]
            what = f"overview of {LAYERS * HEADS} heads at 512 tokens"
            view = page.locator(".view.grid")
            said = f"{what}: script for a head pointed at"
            hovers = hover(said, view, cells_of(view, heads))
            expect(view.locator(".sentence")).to_contain_text("maximum weight")
    yield Row(f"{what}: navigation to last paint", milliseconds(seconds))
    yield hovers


def own_median(drawing: Drawing) -> float:
    see(drawing)
    return median(last_paint(drawing)[0] for _ in range(ROUNDS))


def one_head() -> Iterator[Row]:
    head = attention(1024)
    with tempfile.TemporaryDirectory() as folder:
        ours = drawings.one_head(head, Path(folder))
        theirs = drawings.plotly_one_head(peers.scripts()["plotly.min.js"], head, Path(folder))
        yield beside_plotly("one head at 1,024 tokens", ours, theirs, "heatmap", 0.25)


def all_heads() -> Iterator[Row]:
    heads, what = drawings.weights(32), f"{LAYERS * HEADS} heads at 32 tokens, every weight"
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = drawings.overview(heads, Path(folder))
        theirs = drawings.plotly_overview(peers.scripts()["plotly.min.js"], heads, Path(folder))
        yield beside_plotly(what, ours, theirs, "12 × 12 heatmaps", 1 / 15)


def beside_plotly(what: str, ours: Drawing, theirs: Drawing, drawn: str, goal: float) -> Row:
    """The goal is for the whole, from the navigation."""
    see(ours)
    see(theirs)
    whole, handed = by_turns(partial(last_paint, ours), partial(last_paint, theirs), ROUNDS)
    mine = f"{milliseconds(whole.ours)} ({handed.times:.2f} × from the data on)"
    beside = f"{milliseconds(whole.reference)} of Plotly's {drawn}"
    return at_most(f"{what}: navigation to last paint", mine, beside, whole.times, goal)


def hovering() -> Iterator[Row]:
    with an_app(ROOT / "tests" / "components" / "demo.py") as server, new_page() as page:
        page.goto(f"{server.url}/demo_matrix?show=1024")
        page.locator(".matrix[data-painted]").wait_for(timeout=60_000)
        page.wait_for_selector(AT_REST, state="attached", timeout=60_000)
        cells = [(25 * at, 17 * at + 1) for at in range(1, 41)]
        view, what = page.locator(".view.matrix"), "one head at 1,024 tokens: script for a cell"
        yield hover(f"{what} pointed at", view, cells_of(view, cells))


def cells_of(view: Locator, cells: Iterable[tuple[int, int]]) -> Iterator[tuple[float, float]]:
    """Where these cells (row, column) are on the canvas of the view."""
    left, top, wide, *high = map(float, str(view.get_attribute("data-cells")).split())
    for row, column in cells:
        yield left + (column + 0.4) * wide, top + (row + 0.4) * (high or [wide])[0]


def hover(what: str, view: Locator, points: Iterable[tuple[float, float]]) -> Row:
    """Script for the pointer on each point of a view's picture; each must be answered."""
    page, box = view.page, view.locator("canvas").first.bounding_box()
    assert box is not None
    sentence, said = view.locator(".sentence").first, ""
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.evaluate(WATCH)
    for x, y in points:
        page.mouse.move(box["x"] + x, box["y"] + y)
        expect(sentence).not_to_have_text(said)
        said = str(sentence.text_content())
    p95 = quantile(page.evaluate("window.spent"), 0.95) / 1000
    one_frame = f"{milliseconds(FRAME)} of one frame"
    return at_most(what, f"p95 {milliseconds(p95)}", one_frame, p95 / FRAME, 1)


@contextmanager
def new_page() -> Iterator[Page]:
    """In a browser of its own that has found its fonts."""
    with a_browser() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        first = context.new_page()
        first.set_content("<p>text</p><code>code</code>")
        first.screenshot()
        first.close()
        yield context.new_page()


def open_until_rest(page: Page, drawing: Drawing, patience: float = 60) -> None:
    """NotMeasured where it does not come to rest within so many seconds."""
    page.add_init_script(f"{PAINTED}({json.dumps([drawing.selector, drawing.count])})")
    try:
        page.goto(drawing.path.as_uri(), wait_until="commit", timeout=1000 * patience)
        page.wait_for_function(RESTS, polling=50, timeout=1000 * patience)
    except NotInTime as late:
        raise NotMeasured(f"{drawing.path.stem} is not done after {patience:.0f} s") from late


@contextmanager
def asking_only_for(page: Page, scripts: Mapping[str, Path]) -> Iterator[None]:
    """What the page fetches is answered with these scripts; it may ask for nothing else."""
    others, errors = list[str](), list[str]()

    def answer(route: Route) -> None:
        if path := scripts.get(route.request.url.rpartition("/")[2]):
            route.fulfill(path=path)
        else:
            others.append(route.request.url)
            route.abort()

    page.context.route(lambda url: url.startswith("http"), answer)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield
    assert not others + errors, others + errors


def last_paint(
    drawing: Drawing, scripts: Mapping[str, Path] | None = None, patience: float = 60
) -> list[float]:
    """Seconds to the last paint, from the navigation and from the data handed over."""
    with new_page() as page, asking_only_for(page, scripts or {}):
        open_until_rest(page, drawing, patience)
        found: list[float] = page.evaluate(TIMES)
        return found


def see(drawing: Drawing, scripts: Mapping[str, Path] | None = None) -> None:
    """NotMeasured where the screen does not change when what it has drawn is hidden."""
    with new_page() as page, asking_only_for(page, scripts or {}):
        open_until_rest(page, drawing)
        shown = page.screenshot()
        page.locator(drawing.pixels or drawing.selector).evaluate_all(HIDE)
        if page.screenshot() == shown:
            raise NotMeasured(f"{drawing.path.stem} says that it is drawn and has no pixels")
