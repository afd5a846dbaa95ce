"""Training in the page, to the end, and through everything that may interrupt it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from playwright.sync_api import Browser, expect

from explorer.runs.run import Run
from explorer.runs.spec import DONE, PAUSED, STOPPED, TRAINING
from tests.browser.visiting import Visitor
from tests.served import Server, wait_until

LONG_TASK = "sort"
"""A task that trains long enough to be interrupted."""


def start(visitor: Visitor, runs: Path, task: str, steps: int | None = None) -> Run:
    """Pick the task in the address, press the button, and wait for the first steps."""
    visitor.open(f"/train?task={task}")
    if steps is not None:
        visitor.page.get_by_text(re.compile("^Optimizer · ")).click()
        visitor.fill("Steps", str(steps))
    visitor.widget("start_training").get_by_role("button").click()
    run = Run(runs / f"{task}-1")
    wait_until(lambda: run.folder.exists() and run.status().step > 0, "the first step")
    return run


def steps_on(run: Run, further: int = 20) -> None:
    """Wait until the run has gone on by so many steps."""
    now = run.status().step
    wait_until(lambda: run.status().step >= now + further, f"{further} further steps")


def press(visitor: Visitor, key: str) -> None:
    visitor.rest()
    visitor.widget(key).get_by_role("button").click()


def shows(visitor: Visitor, run: Run, state: str = "") -> None:
    """The page shows this run, in this state."""
    text = re.compile(f"{run.name} · .*{state}", re.IGNORECASE)
    expect(visitor.page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()


def has_every_step(run: Run) -> None:
    """Nothing of the curve was lost, nothing is there twice."""
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == sorted(set(steps))
    assert len(steps) == steps[-1] - steps[0] + 1


def ends_in_order(server: Server, how: signal.Signals, run: Run) -> None:
    """Ended while it trains, the server leaves no process, and a run that can go on."""
    steps_on(run)
    server.stop(how)
    wait_until(lambda: not server.leftovers(), "the end of every process")
    assert not server.tracebacks, server.tracebacks[0]
    assert run.status().can_resume
    has_every_step(run)


def test_a_run_is_finished_and_opened_another_watched_paused_and_ended_with_its_server(
    browser: Browser, tmp_path: Path
) -> None:
    """Through a reload, other pages, a pause and a single step no step is lost."""
    with Server(tmp_path / "runs") as server:
        visitor = Visitor(browser, server.url)
        visitor.open("/attention")
        visitor.drawn("attention_head")
        alone = [process.pid for process in server.leftovers()]
        assert alone == [server.pid], "who does not train has no processes for it"

        run = start(visitor, server.runs, "reverse", steps=40)
        shows(visitor, run)
        wait_until(lambda: run.status().state == DONE, "the end of the run")
        assert run.status().step == 40
        press(visitor, "open_run")
        visitor.titled("Attention")
        visitor.asks(model=run.name)
        visitor.rest()
        visitor.drawn("attention_head")
        visitor.follow("Checkpoints")
        expect(visitor.page.get_by_text(run.name).first).to_be_visible()

        run = start(visitor, server.runs, LONG_TASK)
        progress = visitor.page.get_by_test_id("stProgress")
        expect(progress).not_to_have_text(progress.inner_text())
        expect(visitor.page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
        visitor.page.reload()
        visitor.rest()
        shows(visitor, run, TRAINING)
        visitor.follow("Attention")
        steps_on(run)
        visitor.follow("Train")
        shows(visitor, run, TRAINING)
        press(visitor, "pause")
        wait_until(lambda: run.status().state == PAUSED, "the pause")
        shows(visitor, run, PAUSED)
        before = run.status().step
        press(visitor, "step")
        wait_until(lambda: run.status().step == before + 1, "one step")
        wait_until(lambda: run.status().state == PAUSED, "the pause again")
        shows(visitor, run, PAUSED)
        press(visitor, "resume")
        wait_until(lambda: run.status().state == TRAINING, "the run to go on")
        visitor.no_mishap()
        visitor.close()
        ends_in_order(server, signal.SIGTERM, run)


def test_a_killed_server_takes_no_run_with_it(browser: Browser, tmp_path: Path) -> None:
    """The next server shows the run, which goes on, is stopped, and goes on again."""
    first, second = Server(tmp_path / "runs"), Server(tmp_path / "runs")
    try:
        first.start().wait()
        visitor = Visitor(browser, first.url)
        run = start(visitor, first.runs, LONG_TASK)
        first.kill()
        visitor.close()
        second.start().wait()
        visitor = Visitor(browser, second.url)
        visitor.open("/train")
        shows(visitor, run, TRAINING)
        steps_on(run)
        press(visitor, "stop")
        wait_until(lambda: run.status().state == STOPPED, "the end of the run")
        shows(visitor, run, STOPPED)
        has_every_step(run)
        press(visitor, "resume")
        wait_until(lambda: run.status().state == TRAINING, "the run to go on")
        visitor.no_mishap()
        visitor.close()
        ends_in_order(second, signal.SIGINT, run)
    finally:
        for server in (first, second):
            server.clear()
