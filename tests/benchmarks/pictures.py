"""Pictures of attention in a browser beside the peers: bytes, and time to the last paint.

Ours is the page a reader can export: the same code as in the app, and the data. Its overview
sends at most 32 × 32 cells a head, each the largest of the weights it stands for; bertviz and
CircuitsVis send and draw every weight. That is the difference that is measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, expect

from tests.benchmarks import drawings, peers
from tests.benchmarks.hovering import hover
from tests.benchmarks.painted import Drawing, Painted, context_of, last_paint, until_rest
from tests.benchmarks.peers import NAMES, Asked, Peers
from tests.benchmarks.places import a_browser, an_app
from tests.benchmarks.rows import Row, milliseconds, quantile
from tests.browser.visiting import AT_REST
from tests.components.samples import attention
from tests.served import ROOT

OVERVIEW_GOAL, PLOTLY_HEAD_GOAL, PLOTLY_OVERVIEW_GOAL = 1 / 10, 1 / 4, 1 / 15
FRAME = 0.016
ROUNDS = 7
PATIENCE = 30.0
"""Seconds for a peer, or three times what it would need to miss the goal where that is more."""
DEMO = ROOT / "tests" / "components" / "demo_matrix.py"
HEADS = drawings.LAYERS * drawings.HEADS


@contextmanager
def drawn_here() -> Iterator[tuple[Browser, Path]]:
    with a_browser() as browser, tempfile.TemporaryDirectory() as folder:
        yield browser, Path(folder)


def overview() -> Iterator[Row]:
    there = peers.ready()
    with drawn_here() as (browser, into):
        for name in NAMES:
            few = drawing_of(there, name, 8, into)
            assert peer_painted(browser, there, few, 60), f"{name} draws nothing"
        ours, _ = drawings.overview(drawings.weights(128), into)
        mine = own_median(browser, ours)
        patience = max(PATIENCE, 3 * mine / OVERVIEW_GOAL)
        pages = {name: drawing_of(there, name, 128, into) for name in NAMES}
        theirs = {name: peer_painted(browser, there, pages[name], patience) for name in NAMES}
        sizes = ours.size, pages["bertviz"].size
    what = f"overview of {HEADS} heads at 128 tokens"
    yield Row(
        f"{what}: bytes of the whole page",
        f"{sizes[0]:,}",
        f"{sizes[1]:,} of bertviz model_view without its scripts",
        sizes[0] / sizes[1],
    )
    best = min(seconds or patience for seconds in theirs.values())
    said = ", ".join(f"{NAMES[name]} {in_words(took, patience)}" for name, took in theirs.items())
    yield Row(
        f"{what}: navigation to last paint",
        milliseconds(mine),
        said,
        mine / best,
        f"≤ {OVERVIEW_GOAL:g} × the best",
        mine <= OVERVIEW_GOAL * best,
    )


def long_overview() -> Iterator[Row]:
    with drawn_here() as (browser, into):
        ours, _ = drawings.overview(drawings.weights(512), into)
        seconds = own_median(browser, ours)
        with context_of(browser) as context:
            page = context.new_page()
            assert until_rest(page, ours, 60)
            heads = [(at % drawings.LAYERS, at // drawings.LAYERS) for at in range(1, HEADS, 4)]
            hovers = hover(page, "grid", heads)
            expect(page.locator(".grid .sentence")).to_contain_text("largest weight")
    what = f"overview of {HEADS} heads at 512 tokens"
    yield Row(f"{what}: navigation to last paint", milliseconds(seconds))
    yield hover_row(f"{what}: script for a head pointed at", hovers)


def one_head() -> Iterator[Row]:
    script, head = peers.ready().script(peers.PLOTLY), attention(1024)
    with drawn_here() as (browser, into):
        mine = drawings.one_head(head, into)
        theirs = drawings.plotly_one_head(script, head, into)
        both = side_by_side(browser, mine, theirs)
    yield beside_plotly("one head at 1,024 tokens", *both, "Plotly's heatmap", PLOTLY_HEAD_GOAL)


def all_heads() -> Iterator[Row]:
    script, heads = peers.ready().script(peers.PLOTLY), drawings.weights(32)
    with drawn_here() as (browser, into):
        mine = drawings.overview(heads, into)[0]
        theirs = drawings.plotly_overview(script, heads, into)
        both = side_by_side(browser, mine, theirs)
    what = f"{HEADS} heads at 32 tokens, every weight"
    yield beside_plotly(what, *both, "Plotly's 12 × 12 heatmaps", PLOTLY_OVERVIEW_GOAL)


def hovering() -> Iterator[Row]:
    with a_browser() as browser, an_app(DEMO) as server, context_of(browser) as context:
        page = context.new_page()
        page.goto(f"{server.url}?show=1024")
        page.locator(".matrix[data-painted]").wait_for(timeout=60_000)
        page.wait_for_selector(AT_REST, state="attached", timeout=60_000)
        hovers = hover(page, "matrix", [(25 * at, 17 * at + 1) for at in range(1, 41)])
    yield hover_row("one head at 1,024 tokens: script for a cell pointed at", hovers)


def hover_row(what: str, hovers: list[float]) -> Row:
    p95 = quantile(hovers, 0.95)
    return Row(
        what,
        f"p95 {milliseconds(p95)}",
        f"{milliseconds(FRAME)} of one frame",
        p95 / FRAME,
        "≤ 1 ×",
        p95 <= FRAME,
    )


def beside_plotly(what: str, ours: Painted, theirs: Painted, plotly: str, goal: float) -> Row:
    """The goal is for the whole, from the navigation."""
    from_data = ours.handed / theirs.handed
    return Row(
        f"{what}: navigation to last paint",
        f"{milliseconds(ours.whole)} ({from_data:.2f} × from the data on)",
        f"{milliseconds(theirs.whole)} of {plotly}",
        ours.whole / theirs.whole,
        f"≤ {goal:.2g} ×",
        ours.whole <= goal * theirs.whole,
    )


def painted(browser: Browser, drawing: Drawing) -> Painted:
    """Our page, or Plotly's: neither may ask for anything."""
    with context_of(browser) as context:
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        taken = last_paint(context, drawing)
        assert taken is not None, f"{drawing.path.name} was not drawn in time"
        assert not [url for url in asked if url.startswith("http")]
        return taken


def peer_painted(browser: Browser, there: Peers, drawing: Drawing, patience: float) -> float | None:
    """A peer's page, its CDN answered from the packages and asked for nothing else."""
    with context_of(browser) as context:
        asked = Asked(there)
        asked.watch(context)
        taken = last_paint(context, drawing, patience)
        assert not asked.others, asked.others
        return taken.whole if taken else None


def drawing_of(there: Peers, name: str, tokens: int, into: Path) -> Drawing:
    """bertviz draws a line for every weight, CircuitsVis a canvas for every head."""
    path = there.draw(name, drawings.weights(tokens), into)
    return (
        Drawing(path, "svg line", HEADS * tokens * tokens)
        if name == "bertviz"
        else Drawing(path, "canvas", HEADS)
    )


def medians(taken: list[Painted]) -> Painted:
    return Painted(median(each.whole for each in taken), median(each.handed for each in taken))


def side_by_side(browser: Browser, ours: Drawing, theirs: Drawing) -> tuple[Painted, Painted]:
    """Medians of both, by turns."""
    taken: dict[Drawing, list[Painted]] = {ours: [], theirs: []}
    for turn in range(ROUNDS):
        for side in (ours, theirs) if turn % 2 else (theirs, ours):
            taken[side].append(painted(browser, side))
    return medians(taken[ours]), medians(taken[theirs])


def own_median(browser: Browser, drawing: Drawing) -> float:
    return medians([painted(browser, drawing) for _ in range(ROUNDS)]).whole


def in_words(seconds: float | None, patience: float) -> str:
    return f"not done after {patience:.0f} s" if seconds is None else f"{seconds:.1f} s"
