"""Training in the page, to the end, and through everything that may interrupt it."""

import re
import signal
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, FloatRect, Locator, expect

from explorer.runs.run import Run
from explorer.runs.spec import DONE, PAUSED, STOPPED, TRAINING
from explorer.runs.worker import train_to_end
from tests.browser.visiting import Visitor
from tests.runs.making import tiny_run
from tests.served import Server, wait_until

LONG_TASK = "sort"
"""A task that trains long enough to be interrupted."""
CUT_TEXTS = """charts => charts.flatMap(chart => [...chart.querySelectorAll("text")].filter(
    text => text.getBoundingClientRect().right > chart.getBoundingClientRect().right + 1))
    .map(text => text.textContent)"""


def start(visitor: Visitor, runs: Path, task: str, steps: int | None = None) -> Run:
    """Pick the task in the address, press the button, and wait for the first steps."""
    visitor.open(f"/training?task={task}")
    if steps is not None:
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


def box_of(place: Locator) -> FloatRect:
    """Where it is on the screen."""
    box = place.bounding_box()
    assert box is not None
    return box


def becomes(visitor: Visitor, run: Run, state: str) -> None:
    """The run is in this state, and the page says so."""
    wait_until(lambda: run.status().state == state, f"{run.name}: {state}")
    text = re.compile(f"{run.name} · .*{state}", re.IGNORECASE)
    expect(visitor.page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()


def has_every_step(run: Run) -> None:
    """Nothing of the curve was lost, nothing is there twice."""
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == sorted(set(steps))
    assert len(steps) == steps[-1] - steps[0] + 1


def ends_in_order(server: Server, run: Run) -> None:
    """Ended while it trains, the server leaves no process, and a run that can go on."""
    steps_on(run)
    server.stop(signal.SIGTERM)
    wait_until(lambda: not server.leftovers(), "the end of every process")
    assert not server.tracebacks, server.tracebacks[0]
    assert run.status().can_resume
    has_every_step(run)


def finishes_and_opens_a_run(visitor: Visitor, runs: Path) -> None:
    run = start(visitor, runs, "reverse", steps=40)
    becomes(visitor, run, DONE)
    assert run.status().step == 40
    press(visitor, "open_run")
    visitor.titled("Attention")
    visitor.asks(model=run.name)
    visitor.drawn("attention_head")


def is_watched_and_paused(visitor: Visitor, run: Run) -> None:
    progress = visitor.page.get_by_test_id("stProgress")
    expect(progress).not_to_have_text(progress.inner_text())
    charts = visitor.page.get_by_test_id("stVegaLiteChart").locator("svg")
    expect(charts.first).to_be_visible()
    assert charts.evaluate_all(CUT_TEXTS) == []
    visitor.follow("Attention maps")
    steps_on(run)
    visitor.follow("Training")
    visitor.page.reload()
    visitor.rest()
    becomes(visitor, run, TRAINING)
    press(visitor, "pause")
    becomes(visitor, run, PAUSED)
    before = run.status().step
    press(visitor, "step")
    wait_until(lambda: run.status().step == before + 1, "one step")
    becomes(visitor, run, PAUSED)
    press(visitor, "resume")
    becomes(visitor, run, TRAINING)


def test_the_curve_and_the_map_of_a_run_are_seen_at_once(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path / "runs") as server:
        run = tiny_run(server.runs)
        train_to_end(run.folder)
        for width in (1440, 1280):
            visitor = Visitor(browser, server.url, width=width, height=900)
            visitor.open(f"/training?run={run.name}")
            visitor.drawn("watched")
            curve = visitor.page.get_by_test_id("stVegaLiteChart").first
            for seen in (curve, visitor.widget("watched").locator("canvas").first):
                expect(seen).to_be_in_viewport(ratio=1)
            visitor.no_mishap()
            visitor.close()


def what_chooses_stands_above(visitor: Visitor, picture: Locator) -> None:
    """The sentence and the head, in one line."""
    main = visitor.page.get_by_test_id("stMain")
    labels = [box_of(main.get_by_text(re.compile(name))) for name in ("^Sentence$", "^Head of")]
    assert abs(labels[0]["y"] - labels[1]["y"]) < 1
    assert labels[0]["y"] < box_of(picture)["y"]


def test_pictures_stand_in_line_and_deleting_hangs_over_no_sidebar(
    browser: Browser, tmp_path: Path
) -> None:
    with Server(tmp_path / "runs") as server:
        visitor = Visitor(browser, server.url, width=1280, height=900)
        page = visitor.open("/training?task=reverse")
        pictures = [visitor.widget(key).locator("canvas").first for key in ("watched", "expected")]
        for key in ("watched", "expected"):
            visitor.drawn(key)
        tops = [box_of(picture)["y"] for picture in pictures]
        assert abs(tops[0] - tops[1]) < 1
        what_chooses_stands_above(visitor, pictures[0])
        run = tiny_run(server.runs)
        train_to_end(run.folder)
        visitor.open(f"/training?run={run.name}")
        visitor.drawn("watched")
        what_chooses_stands_above(visitor, page.get_by_test_id("stVegaLiteChart").first)
        press(visitor, "delete")
        question = page.get_by_test_id("stPopoverBody")
        expect(question.get_by_text("can bring it back")).to_be_visible()
        edge = box_of(page.get_by_test_id("stMain"))
        over = box_of(question)
        assert over["x"] >= edge["x"]
        assert over["x"] + over["width"] <= edge["x"] + edge["width"]
        visitor.no_mishap()
        visitor.close()


def test_the_choices_of_the_form_are_not_cut(visitor: Visitor) -> None:
    page = visitor.open("/training?task=reverse")
    for group in ("Model", "Optimizer", "Schedule", "Data"):
        page.get_by_text(re.compile(f"^{group} · ")).click()
    choices = page.get_by_test_id("stMain").get_by_role("combobox")
    expect(page.get_by_role("combobox", name="Positions")).to_have_value("sinusoidal")
    expect(page.get_by_role("combobox", name="Schedule")).to_be_visible()
    cut = "inputs => inputs.filter(one => one.scrollWidth > one.clientWidth).map(one => one.value)"
    assert choices.evaluate_all(cut) == []
    stop = page.get_by_text("Stop at a target")
    assert stop.evaluate("label => label.scrollWidth <= label.clientWidth + 1")


def test_a_text_that_was_typed_is_used_without_a_key(visitor: Visitor) -> None:
    page = visitor.open("/training?task=characters")
    text = "the quick brown fox jumps over the lazy dog. " * 40
    page.get_by_label("Text", exact=True).fill(text)
    visitor.press("Use this text")
    expect(visitor.widget("start_training").get_by_role("button")).to_be_enabled()
    expect(page.get_by_label("Text", exact=True)).to_have_value(text)
    page.get_by_label("Text", exact=True).fill(text + "and more")
    visitor.choose("Task", "reverse")
    visitor.choose("Task", "characters")
    expect(page.get_by_label("Text", exact=True)).to_have_value(text + "and more")


def test_two_tabs_steer_one_run_and_both_show_the_truth(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path / "runs") as server:
        run = tiny_run(server.runs, steps=5_000)
        run.command("step")
        train_to_end(run.folder)
        one, other = (Visitor(browser, server.url) for _ in range(2))
        for tab in (one, other):
            tab.open(f"/training?run={run.name}")
            becomes(tab, run, PAUSED)
        press(one, "step")
        wait_until(lambda: run.status().step == 2, "the step")
        expect(other.page.get_by_text("Step 2 of 5,000")).to_be_visible()
        rate = one.page.get_by_role("spinbutton", name="Learning rate")
        rate.fill("0.25")
        rate.press("Enter")
        wait_until(lambda: run.requested() == {"lr": 0.25}, "the change")
        press(other, "resume")
        becomes(other, run, TRAINING)
        becomes(one, run, TRAINING)
        wait_until(lambda: run.training_now().lr == 0.25, "the learning rate")
        press(one, "pause")
        for tab in (other, one):
            becomes(tab, run, PAUSED)
            tab.no_mishap()
            tab.close()


def test_a_run_goes_on_through_pages_pauses_and_the_end_of_its_server(
    browser: Browser, tmp_path: Path
) -> None:
    """The first visitor of a server comes by a link; the next server shows the run.

    Through a reload, other pages, a pause, a single step and a killed server no step is lost.
    """
    with Server(tmp_path / "runs") as first:
        visitor = Visitor(browser, first.url)
        page = visitor.open("/attention?model=shakespeare&layer=0&head=2")
        assert urlsplit(page.url).path == "/attention"
        expect(page.get_by_text(re.compile("Layer 0, head 2$"))).to_be_visible()
        visitor.drawn("attention_head")
        alone = [process.pid for process in first.leftovers()]
        assert alone == [first.pid], "who does not train has no processes for it"
        finishes_and_opens_a_run(visitor, first.runs)
        run = start(visitor, first.runs, LONG_TASK)
        is_watched_and_paused(visitor, run)
        visitor.no_mishap()
        visitor.close()
        assert not first.tracebacks, first.tracebacks[0]
        first.kill()

        with Server(first.runs) as second:
            visitor = Visitor(browser, second.url)
            visitor.open("/training")
            becomes(visitor, run, TRAINING)
            steps_on(run)
            press(visitor, "stop")
            becomes(visitor, run, STOPPED)
            has_every_step(run)
            press(visitor, "resume")
            becomes(visitor, run, TRAINING)
            visitor.no_mishap()
            visitor.close()
            ends_in_order(second, run)
