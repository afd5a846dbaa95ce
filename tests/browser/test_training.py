"""Training in the page, to the end, and through everything that may interrupt it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from explorer.runs.run import Run
from explorer.runs.spec import DONE, PAUSED, STOPPED, TRAINING
from tests.browser.visiting import Visitor
from tests.served import Server, wait_until

LONG_TASK = "sort"
"""A task that trains long enough to be interrupted."""


@pytest.fixture
def trainee(browser: Browser, fresh_server: Server) -> Iterator[Visitor]:
    """A visitor with a server, and a cluster, of their own."""
    visitor = Visitor(browser, fresh_server.url)
    yield visitor
    visitor.close()


def start(visitor: Visitor, runs: Path, task: str) -> Run:
    """Pick the task in the address, press the button, and wait for the first steps."""
    visitor.open(f"/train?task={task}")
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


def test_who_does_not_train_has_no_processes_for_it(trainee: Visitor, fresh_server: Server) -> None:
    trainee.open("/attention")
    trainee.drawn("attention_head")
    alone = fresh_server.leftovers()
    assert [process.pid for process in alone] == [fresh_server.pid]
    trainee.follow("Train")
    wait_until(lambda: len(fresh_server.leftovers()) > 1, "the processes that train")


def test_reverse_is_trained_to_the_end_and_opened(trainee: Visitor, fresh_server: Server) -> None:
    run = start(trainee, fresh_server.runs, "reverse")
    shows(trainee, run)
    wait_until(lambda: run.status().state == DONE, "the end of the run", 240)
    assert (run.status().value or 0) >= 0.99
    press(trainee, "open_run")
    trainee.titled("Attention")
    trainee.asks(model=run.name)
    trainee.rest()
    trainee.drawn("attention_head")
    trainee.no_traceback()
    trainee.follow("Checkpoints")
    expect(trainee.page.get_by_text(run.name).first).to_be_visible()


def test_a_reload_and_a_page_change_lose_nothing(trainee: Visitor, fresh_server: Server) -> None:
    run = start(trainee, fresh_server.runs, LONG_TASK)
    trainee.page.reload()
    trainee.rest()
    shows(trainee, run, TRAINING)
    trainee.follow("Attention")
    trainee.drawn()
    steps_on(run)
    trainee.follow("Train")
    shows(trainee, run, TRAINING)
    steps_on(run)
    press(trainee, "stop")
    wait_until(lambda: run.status().state == STOPPED, "the end of the run")
    shows(trainee, run, STOPPED)
    has_every_step(run)
    trainee.no_traceback()


def test_pause_step_and_go_on(trainee: Visitor, fresh_server: Server) -> None:
    run = start(trainee, fresh_server.runs, LONG_TASK)
    press(trainee, "pause")
    wait_until(lambda: run.status().state == PAUSED, "the pause")
    shows(trainee, run, PAUSED)
    before = run.status().step
    press(trainee, "step")
    wait_until(lambda: run.status().step == before + 1, "one step")
    wait_until(lambda: run.status().state == PAUSED, "the pause again")
    shows(trainee, run, PAUSED)
    press(trainee, "resume")
    steps_on(run)
    press(trainee, "stop")
    wait_until(lambda: run.status().state == STOPPED, "the end of the run")
    has_every_step(run)


def test_a_killed_server_takes_no_run_with_it(browser: Browser, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    first, second = Server(runs), Server(runs)
    try:
        first.start().wait()
        visitor = Visitor(browser, first.url)
        run = start(visitor, runs, LONG_TASK)
        first.kill()
        visitor.close()
        steps_on(run)

        second.start().wait()
        visitor = Visitor(browser, second.url)
        visitor.open("/train")
        shows(visitor, run, TRAINING)
        steps_on(run)
        press(visitor, "stop")
        wait_until(lambda: run.status().state == STOPPED, "the end of the run")
        visitor.no_traceback()
        visitor.close()
        has_every_step(run)
        second.stop()
        assert not second.tracebacks, second.tracebacks[0]
        wait_until(lambda: not second.leftovers(), "the end of every process", 20)
    finally:
        first.clear()
        second.clear()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "terminated"])
def test_an_orderly_stop_leaves_no_process(browser: Browser, tmp_path: Path, how: int) -> None:
    server = Server(tmp_path / "runs")
    try:
        server.start().wait()
        visitor = Visitor(browser, server.url)
        run = start(visitor, server.runs, LONG_TASK)
        server.stop(how)
        visitor.close()
        wait_until(lambda: not server.leftovers(), "the end of every process", 20)
        assert not server.tracebacks, server.tracebacks[0]
        assert run.status().can_resume
    finally:
        server.clear()
