"""Training by hand: its form, its curves, two tabs of one run, fine-tuning, mistakes and a film."""

import re

from playwright.sync_api import Locator, expect

from explorer.runs.run import Run, all_runs
from explorer.runs.spec import PAUSED
from explorer.runs.worker import train_to_end
from explorer.views.museum.exhibits import EXHIBITS
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor, box_of
from tests.served import Server, wait_until
from tests.tiny import tiny_run, trained_run

CUT_TEXTS = """charts => charts.flatMap(chart => [...chart.querySelectorAll("text")].filter(
    text => text.getBoundingClientRect().right > chart.getBoundingClientRect().right + 1))
    .map(text => text.textContent)"""
CUT_CHOICES = """inputs => inputs.filter(one => one.scrollWidth > one.clientWidth)
    .map(one => one.value)"""
STOP_AT_ONCE = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  new MutationObserver((_, observer) => {
    const buttons = [...main.querySelectorAll("button")];
    const stop = buttons.find(each => each.innerText.trim() === "Stop");
    if (!stop || !/Training both: [1-9]/.test(main.innerText)) return;
    observer.disconnect();
    stop.click();
  }).observe(main, {childList: true, subtree: true, characterData: true});
}"""


def press(visitor: Visitor, key: str) -> None:
    visitor.rest()
    visitor.widget(key).get_by_role("button").click()


def settings(visitor: Visitor) -> None:
    """Open the settings of the form."""
    visitor.page.get_by_role("button", name="Settings").click()


def becomes(visitor: Visitor, run: Run, state: str) -> None:
    """The run is in this state, and the page says so."""
    wait_until(lambda: run.status().state == state, f"{run.name}: {state}")
    visitor.says(re.compile(f"{run.title} · .*{state}", re.IGNORECASE))


def what_chooses_stands_above(visitor: Visitor, picture: Locator) -> None:
    """The sentence and the head, in one line."""
    main = visitor.page.get_by_test_id("stMain")
    sentence = box_of(main.get_by_label("Sentence", exact=True))
    head = box_of(main.get_by_text(re.compile("^Head of")))
    assert sentence["y"] < head["y"] + head["height"] / 2 < sentence["y"] + sentence["height"]
    assert sentence["y"] < box_of(picture)["y"]


def test_the_form_is_in_line_and_not_cut_and_a_typed_text_needs_no_key(visitor: Visitor) -> None:
    page = visitor.open("/training?task=reverse")
    pictures = [visitor.widget(key).locator("canvas").first for key in ("watched", "expected")]
    for key in ("watched", "expected"):
        visitor.drawn(key)
    visitor.settled()
    watched, expected = map(box_of, pictures)
    assert watched["x"] + watched["width"] <= expected["x"]
    assert watched["width"] > expected["width"]
    what_chooses_stands_above(visitor, pictures[0])
    settings(visitor)
    for group in ("Model", "Optimizer", "Schedule", "Data"):
        page.get_by_text(re.compile(f"^{group} · ")).click()
    expect(page.get_by_role("combobox", name="Positions")).to_have_value("sinusoidal")
    expect(page.get_by_role("combobox", name="Schedule")).to_be_visible()
    visitor.settled()
    choices = page.get_by_test_id("stPopoverBody").get_by_role("combobox")
    assert choices.evaluate_all(CUT_CHOICES) == []
    stop = page.get_by_text("Stop at a target")
    assert stop.evaluate("label => label.scrollWidth <= label.clientWidth + 1")

    visitor.choose("Task", "characters")
    settings(visitor)
    page.get_by_text("Your own text", exact=True).click()
    field = page.get_by_label("Text", exact=True)
    text = "the quick brown fox jumps over the lazy dog. " * 40
    field.fill(text)
    visitor.press("Use this text")
    expect(visitor.widget("start_training").get_by_role("button")).to_be_enabled()
    expect(field).to_have_value(text)
    field.fill(text + "and more")
    visitor.choose("Task", "reverse")
    visitor.choose("Task", "characters")
    settings(visitor)
    expect(field).to_have_value(text + "and more")


def test_curve_and_map_are_seen_at_once_and_the_sidebar(visitor: Visitor, server: Server) -> None:
    page = visitor.open(f"/training?run={trained_run(server.runs).name}")
    charts = page.get_by_test_id("stVegaLiteChart")
    for width in (1440, 1280):
        visitor.sized(width)
        visitor.drawn("watched")
        for seen in (charts.first, visitor.widget("watched").locator("canvas").first):
            expect(seen).to_be_in_viewport(ratio=1)
    visitor.settled()
    assert charts.locator("svg").evaluate_all(CUT_TEXTS) == []
    what_chooses_stands_above(visitor, charts.first)
    press(visitor, "delete")
    question = page.get_by_test_id("stPopoverBody")
    expect(question.get_by_text("can bring it back")).to_be_visible()
    visitor.settled()
    edge, over = box_of(page.get_by_test_id("stMain")), box_of(question)
    assert over["x"] >= edge["x"]
    assert over["x"] + over["width"] <= edge["x"] + edge["width"]
    page.keyboard.press("Escape")


def test_two_tabs_steer_one_run_and_agree(visitor: Visitor, visit: Visit, server: Server) -> None:
    run = tiny_run(server.runs, steps=90_000)
    run.command("step")
    train_to_end(run.folder)
    other = visit()
    for tab in (visitor, other):
        tab.open(f"/training?run={run.name}")
        becomes(tab, run, PAUSED)
    press(visitor, "step")
    wait_until(lambda: run.status().step == 2, "the step")
    other.says("Step 2 of 90,000")
    settings(visitor)
    rate = visitor.page.get_by_role("spinbutton", name="Learning rate")
    rate.fill("0.25")
    rate.press("Enter")
    wait_until(lambda: run.requested_values() == {"lr": 0.25}, "the change")
    press(other, "step")
    for tab in (other, visitor):
        tab.says("Step 3 of 90,000")
    assert run.spec_now().training.lr == 0.25


def test_a_model_is_tuned_and_compared_with_its_start(visitor: Visitor, server: Server) -> None:
    page = visitor.open("/training?task=reverse&start_from=reverse")
    settings(visitor)
    visitor.fill("Steps", "5")
    press(visitor, "start_training")
    expect(page.get_by_text("Step 5 of 5")).to_be_visible(timeout=120_000)
    page.get_by_role("button", name="Compare with what it started from").click()
    expect(page.get_by_text("Weights that differ")).to_be_visible(timeout=60_000)
    visitor.rest()
    run, *_ = all_runs(server.runs)
    visitor.asks(model=run.name, training_step="0", other_step="5")
    visitor.asks(**{"with": "A training step"})
    assert (run.spec.parent, run.spec.lora_rank) == ("reverse", 4)


def test_two_trainings_of_the_museum_are_shown_and_stopped(visitor: Visitor) -> None:
    """Stopped by the page itself at the first step it shows: a hand might come too late."""
    page = visitor.open("/museum?room=Exhibits&model=translation&text=the+black+cat+sleeps")
    assert page.locator(".matrix .sentence").evaluate_all(CUT_CHOICES) == []
    visitor.choose("Exhibit", EXHIBITS[11].label)
    visitor.rest()
    page.evaluate(STOP_AT_ONCE)
    page.get_by_role("button", name="Train both").click()
    expect(page.get_by_role("button", name="Train both again")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Accuracy at step [1-5]?\d:"))).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()


def test_a_film_needs_no_server_and_keeps_its_step(visitor: Visitor, server: Server) -> None:
    text = "the black cat sleeps"
    run = trained_run(server.runs, task="translation")
    visitor.open(f"/training_history?model={run.name}&text={text}&part=Cross&layer=0&head=1")
    for name in ("film", "film_map", "film_heads", "film_pass"):
        visitor.drawn(name)
    visitor.has_everything()
    sent: list[object] = []
    visitor.socket.on("framesent", lambda frame: sent.append(frame))
    slider = visitor.widget("film").get_by_role("slider")
    said = []
    slider.press("End")
    for step, _ in reversed(run.snapshots()):
        expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
        said.append(visitor.point("film_map", 0, 2).inner_text())
        visitor.away()
        slider.press("ArrowLeft")
    assert said[0] != said[-1]
    assert not sent, "a frame was asked of the server"

    slider.press("ArrowRight")
    first, *_, last = (str(step) for step, _ in run.snapshots()[1:])
    visitor.asks(film_step=first)
    visitor.choose("Head", "0")
    visitor.pick("film_heads", layer=0, head=1)
    visitor.at_head(0, 1)
    visitor.has_everything()
    expect(slider).to_have_attribute("aria-valuetext", f"Step {first}")
    visitor.widget("film").get_by_role("button", name="Compare").click()
    visitor.asks(first_step=first, second_step=last)
    visitor.drawn("moment_first")
