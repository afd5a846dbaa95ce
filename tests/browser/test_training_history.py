"""The film of a training in the browser: every frame is there, and none asks the server."""

from playwright.sync_api import expect

from explorer.inference.forward_pass import rerun, run_text
from explorer.runs.open_run import open_folder
from explorer.runs.worker import train_to_end
from explorer.text.number_format import three
from tests.browser.visiting import Visitor
from tests.runs.making import tiny_run
from tests.served import Server

TEXT = "the black cat sleeps"


def test_dragging_back_shows_each_step_as_its_own_pass_without_asking_the_server(
    visitor: Visitor, server: Server
) -> None:
    run = tiny_run(server.runs, task="translation")
    train_to_end(run.folder)
    page = visitor.open(f"/training_history?model={run.name}&text={TEXT}&part=Cross&layer=0&head=1")
    for name in ("film", "film_map", "film_heads", "film_pass"):
        visitor.drawn(name)
    visitor.has_everything()
    snapshots = run.snapshots()
    last = run_text(open_folder(snapshots[-1][1]), TEXT)
    sent: list[object] = []
    visitor.socket.on("framesent", lambda message: sent.append(message))
    slider = visitor.widget("film").get_by_role("slider")
    for at in range(len(snapshots) - 1, -1, -1):
        step, folder = snapshots[at]
        expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
        there = rerun(open_folder(folder), last, last.source, last.target, ())
        weight = float(there.weights("decoder.cross_attn", 0, 1)[0, 2])
        said = visitor.point("film_map", 0, 2)
        expect(said).to_contain_text(three(weight))
        visitor.away()
        slider.press("ArrowLeft")
    assert not sent, "a frame was asked of the server"
    assert page.url.count("training_history") == 1


def test_a_link_and_another_head_keep_the_step_and_a_click_compares_it(
    visitor: Visitor, server: Server
) -> None:
    run = tiny_run(server.runs, task="translation")
    train_to_end(run.folder)
    visitor.open(f"/training_history?model={run.name}&text={TEXT}&part=Cross&layer=0&head=1")
    visitor.drawn("film")
    slider = visitor.widget("film").get_by_role("slider")
    for _ in range(3):
        slider.press("ArrowLeft")
    step = str(run.snapshots()[-4][0])
    visitor.asks(film_step=step)
    visitor.choose("Head", "0")
    visitor.has_everything()
    expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
    visitor.pick("film_heads", layer=0, head=1)
    visitor.at_head(0, 1)
    visitor.has_everything()
    expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
    visitor.asks(film_step=step)
    visitor.page.reload()
    expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
    compare = visitor.widget("film").get_by_role("button", name="Compare")
    newest = str(run.snapshots()[-1][0])
    compare.click()
    visitor.asks(first_step=step, second_step=newest)
    visitor.drawn("moment_first")
    visitor.turn_to("Film")
    expect(slider).to_have_attribute("aria-valuetext", f"Step {step}")
    slider.press("End")
    compare.click()
    visitor.asks(first_step="0", second_step=newest)
