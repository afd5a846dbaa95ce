"""Pictures of attention in a browser beside the peers: bytes, and time to the last paint.

Ours is the page a reader can take away: the same code as in the app, and the data. Its
overview sends at most 32 × 32 cells a head, each the largest of the weights it stands for;
bertviz and CircuitsVis send and draw every weight. That is the difference that is measured.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, expect

from explorer.components.mounting import Drawn
from tests.benchmarks import drawings, peers
from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.hovering import hover
from tests.benchmarks.painted import Drawing, Painted, context_of, last_paint, until_rest
from tests.benchmarks.peers import NAMES, Asked, Peers
from tests.browser.visiting import AT_REST
from tests.components.samples import attention
from tests.served import ROOT, Server

OVERVIEW_BYTES, LONG_OVERVIEW_BYTES = 1_000_000, 8_000_000
OVERVIEW_BAR = 1 / 10
PLOTLY_HEAD_BAR = 1 / 4
PLOTLY_OVERVIEW_BAR = 1 / 15
FRAME = 0.016
ROUNDS = 7
PATIENCE = 30.0
"""Seconds for a peer, or three times what it would need to miss the bar where that is more."""

DEMO = ROOT / "tests" / "components" / "demo_matrix.py"
HEADS = drawings.LAYERS * drawings.HEADS


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


def compare(name: str, ours: Painted, theirs: Painted, plotly: str, bar: float) -> None:
    """Report both clocks; the bar is for the whole, from the navigation."""
    report(
        f"{name}, navigation to last paint",
        f"{milliseconds(ours.whole)}, {theirs.whole / ours.whole:.1f} times less "
        f"({milliseconds(ours.handed)} from the data, {theirs.handed / ours.handed:.1f} times)",
        f"{milliseconds(theirs.whole)} ({milliseconds(theirs.handed)} from the data) of {plotly}",
        f"1/{1 / bar:.0f}",
    )
    assert ours.whole <= bar * theirs.whole


def in_words(seconds: float | None, patience: float) -> str:
    return f"not done after {patience:.0f} s" if seconds is None else f"{seconds:.1f} s"


def test_overview_at_128_tokens(browser: Browser, tmp_path: Path) -> None:
    there = peers.ready()
    for name in NAMES:
        few = drawing_of(there, name, 8, tmp_path)
        assert peer_painted(browser, there, few, 60), f"{name} draws nothing"

    ours, view = drawings.overview(drawings.weights(128), tmp_path)
    mine = own_median(browser, ours)
    patience = max(PATIENCE, 3 * mine / OVERVIEW_BAR)
    pages = {name: drawing_of(there, name, 128, tmp_path) for name in NAMES}
    theirs = {name: peer_painted(browser, there, pages[name], patience) for name in NAMES}
    report(
        "overview of 144 heads at 128 tokens, bytes to the browser",
        size_of(ours, view),
        f"{pages['bertviz'].size:,} bytes of bertviz model_view without its scripts",
        f"{OVERVIEW_BYTES:,} bytes",
    )
    best = min(seconds or patience for seconds in theirs.values())
    said = {NAMES[name]: in_words(seconds, patience) for name, seconds in theirs.items()}
    report(
        "overview of 144 heads at 128 tokens, navigation to last paint",
        f"{milliseconds(mine)} with the largest of 4 × 4 weights a cell, {best / mine:.0f} times "
        f"{'' if any(theirs.values()) else 'or more '}less than the best of them",
        ", ".join(f"{name} {seconds}" for name, seconds in said.items()),
        f"1/{1 / OVERVIEW_BAR:.0f} of the best",
    )
    assert ours.size <= OVERVIEW_BYTES
    assert mine <= OVERVIEW_BAR * best


def size_of(page: Drawing, view: Drawn) -> str:
    return f"{len(view.data):,} bytes of data, {page.size:,} the whole page with its code"


def test_overview_at_512_tokens(browser: Browser, tmp_path: Path) -> None:
    ours, view = drawings.overview(drawings.weights(512), tmp_path)
    seconds = own_median(browser, ours)
    with context_of(browser) as context:
        page = context.new_page()
        assert until_rest(page, ours, 60)
        heads = [(at % drawings.LAYERS, at // drawings.LAYERS) for at in range(1, HEADS, 4)]
        hovers = hover(page, "grid", heads)
        expect(page.locator(".grid .sentence")).to_contain_text("largest weight")
    report(
        "overview of 144 heads at 512 tokens, bytes and last paint",
        f"{size_of(ours, view)}, painted {milliseconds(seconds)} after navigation, "
        f"{milliseconds(quantile(hovers, 0.95))} of script for a head pointed at (p95)",
        "nobody (bertviz would be sent 16 times its page of 128 tokens)",
        f"{LONG_OVERVIEW_BYTES:,} bytes",
    )
    assert ours.size <= LONG_OVERVIEW_BYTES
    assert quantile(hovers, 0.95) <= FRAME


def test_one_head_at_1024_tokens(browser: Browser, tmp_path: Path) -> None:
    script = peers.ready().script(peers.PLOTLY)
    head = attention(1024)
    ours, theirs = side_by_side(
        browser,
        drawings.one_head(head, tmp_path),
        drawings.plotly_one_head(script, head, tmp_path),
    )
    compare("one head at 1,024 tokens", ours, theirs, "Plotly's heatmap", PLOTLY_HEAD_BAR)


def test_144_heads_at_32_tokens(browser: Browser, tmp_path: Path) -> None:
    script = peers.ready().script(peers.PLOTLY)
    heads = drawings.weights(32)
    ours, theirs = side_by_side(
        browser,
        drawings.overview(heads, tmp_path)[0],
        drawings.plotly_overview(script, heads, tmp_path),
    )
    name = "144 heads at 32 tokens, every weight"
    compare(name, ours, theirs, "Plotly's 12 × 12 heatmaps", PLOTLY_OVERVIEW_BAR)


def test_hover_over_1024_tokens_asks_nobody(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path / "runs", script=DEMO) as server, context_of(browser) as context:
        page = context.new_page()
        sent: list[object] = []
        page.on("websocket", lambda socket: socket.on("framesent", lambda it: sent.append(it)))
        page.goto(f"{server.url}?show=1024")
        page.locator(".matrix[data-painted]").wait_for(timeout=60_000)
        page.wait_for_selector(AT_REST, state="attached", timeout=60_000)
        before = len(sent)
        assert before, "the page was never served"
        hovers = hover(page, "matrix", [(25 * at, 17 * at + 1) for at in range(1, 41)])
        asked = len(sent) - before
    report(
        "hover over one head at 1,024 tokens, script for one event",
        f"p50 {quantile(hovers, 0.5) * 1000:.1f} ms, p95 {quantile(hovers, 0.95) * 1000:.1f} ms, "
        f"{asked} messages to the server",
        "a frame of the screen",
        f"{milliseconds(FRAME)}, 0 messages",
    )
    assert not asked
    assert quantile(hovers, 0.95) <= FRAME
