"""A training as a film: the slider moved by one, until every view of the frame is painted."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from explorer.runs.run import create
from explorer.runs.spec import RunSpec
from explorer.runs.worker import train_to_end
from explorer.tasks import TASKS
from tests.benchmarks.clicks import LISTEN
from tests.benchmarks.measuring import Row, at_most, milliseconds, quantile
from tests.benchmarks.places import a_browser
from tests.browser.visiting import Visitor
from tests.served import Server

GOAL = 0.05
"""Seconds from the key to the paint, of every second move; the row says p95 beside it."""
STEPS = 50
"""Of training: seven snapshots. How well it is trained changes nothing here."""
MOVES = 24
VIEWS = ("film_map", "film_heads", "film_pass")
FRAME_PAINTED = """views => {
  const left = new Set(views), observed = {attributes: true, attributeFilter: ["data-painted"]};
  window.answered = new Promise(done => views.forEach(view => new MutationObserver((_, all) => {
    all.disconnect();
    left.delete(view);
    if (left.size) return;
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.begun)));
  }).observe(view, observed)));
}"""
"""From the key's own time stamp to the first task after the frame in which the last view is new."""


def scrubbing() -> Iterator[Row]:
    """The toy translator: one head, every head and the picture of the pass."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        task = TASKS["translation"]
        training = task.training.replace(steps=STEPS)
        run = create(Path(folder), RunSpec(task.name, task.model, training))
        train_to_end(run.folder)
        with Server(Path(folder)) as server, a_browser() as browser:
            visitor = Visitor(browser, server.url)
            visitor.open(f"/training_history?model={run.name}")
            for name in VIEWS:
                visitor.drawn(name)
            visitor.rest()
            taken, messages = _moves(visitor, len(run.snapshots()))
    p50, p95 = quantile(taken, 0.5), quantile(taken, 0.95)
    yield at_most(
        "training history: the slider moved by one, toy translator",
        f"p50 {milliseconds(p50)}, p95 {milliseconds(p95)}, {messages} messages",
        f"{milliseconds(GOAL)} of a goal",
        p50 / GOAL,
        1,
    )


def _moves(visitor: Visitor, frames: int) -> tuple[list[float], int]:
    """Seconds of each move, back and forth; and how many messages went to the server."""
    page, sent, taken = visitor.page, list[object](), list[float]()
    visitor.socket.on("framesent", lambda message: sent.append(message))
    page.evaluate(LISTEN)
    views = [page.locator(f".st-key-{name} [data-painted]").element_handle() for name in VIEWS]
    page.get_by_role("heading", level=1).click()
    before = len(sent)
    for at in range(MOVES):
        key = "ArrowLeft" if at // (frames - 1) % 2 == 0 else "ArrowRight"
        page.evaluate(FRAME_PAINTED, views)
        page.keyboard.press(key)
        taken.append(page.evaluate("window.answered") / 1000)
    return taken, len(sent) - before
