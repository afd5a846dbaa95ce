"""A server of two that is killed in mid work: who reads, what trains and what is downloaded."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer.app.reader import COOKIE
from explorer.catalog.model_download import fetched_bytes
from explorer.catalog.pretrained_models import PRETRAINED_MODELS
from explorer.runs.run import Run
from explorer.runs.spec import PAUSED, STOPPED, TRAINING
from explorer.runs.worker import train_to_end
from tests import proxy
from tests.browser.conftest import Visit
from tests.browser.test_training import becomes, press
from tests.browser.visiting import Visitor
from tests.catalog.downloads.serving import COMMIT, Site, served
from tests.served import Server, wait_until
from tests.tiny import tiny_run

HUB_IDS = {"gpt2": "openai-community/gpt2", "distilgpt2": "distilbert/distilgpt2"}
HALF = 30_000
MATRIX, GRID = "attention_head", "overview"
SECRET = "Romeo"


def weights_of(name: str) -> str:
    return f"/{HUB_IDS[name]}/resolve/{COMMIT}/model.safetensors"


@pytest.fixture(scope="module")
def site(published: Path) -> Iterator[Site]:
    """A hub with two tiny models, which holds their weights back in the middle."""
    with served() as site:
        files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
        for name, hub_id in HUB_IDS.items():
            site.put_model(hub_id, files)
            site.held[weights_of(name)] = HALF
        yield site


@pytest.fixture(scope="module")
def both(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Two servers of one folder of runs, and of one of pretrained models, which is empty.

    The second calls the folder otherwise: the processes of a server are found by that name.
    """
    folder = tmp_path_factory.mktemp("killed")
    place = {"HF_ENDPOINT": site.url, "HF_HOME": str(folder / "hub"), **proxy.SHARED}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_EXAMPLES", str(folder / "examples"))
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        (folder / "runs").mkdir()
        (folder / "same-runs").symlink_to(folder / "runs")
        with (
            Server(folder / "runs", env=place) as first,
            Server(folder / "same-runs", env=place) as second,
        ):
            yield first, second


def begins_a_download(visitor: Visitor, name: str) -> None:
    page, button = visitor.open("/checkpoints"), visitor.widget(f"get_{name}").get_by_role("button")
    if PRETRAINED_MODELS["gpt2"].is_there:  # the list is folded where there is one
        page.locator("summary").get_by_text("Pretrained models").click()
    button.click()
    folder = PRETRAINED_MODELS[name].folder
    wait_until(lambda: fetched_bytes(folder) >= HALF, "half of the weights")


def test_a_click_downloads_a_model(both: tuple[Server, Server], site: Site, visit: Visit) -> None:
    """Another reader, who comes to the other server, sees it too."""
    reader, other = (visit(server.url) for server in both)
    begins_a_download(reader, "gpt2")
    bar = reader.page.get_by_role("progressbar")
    expect(bar).to_be_visible()
    other.open("/checkpoints")
    expect(other.page.get_by_role("progressbar")).to_be_visible()
    expect(other.widget("get_gpt2")).to_have_count(0)
    reader.widget("cancel_list_gpt2").get_by_role("button").click()
    resume = reader.widget("get_gpt2").get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    expect(bar).to_have_count(0)
    expect(other.widget("get_gpt2").get_by_role("button", name="Resume")).to_be_visible()
    resume.click()
    expect(bar).to_be_visible()
    site.go_on.set()
    reader.asks(model="gpt2")
    reader.rest()
    other.open("/checkpoints")
    expect(other.widget("open_gpt2").get_by_role("button")).to_be_enabled()
    assert [each != "" for each in site.ranges_of(weights_of("gpt2"))] == [False, True]
    site.go_on.clear()


def goes_on(run: Run) -> None:
    now = run.status().step
    wait_until(lambda: run.status().step >= now + 20, "20 further steps")


def has_every_step(run: Run) -> None:
    """Nothing of the curve was lost, nothing is there twice."""
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == sorted(set(steps))
    assert len(steps) == steps[-1] - steps[0] + 1


def trains_through_pages_and_a_pause(visitor: Visitor, run: Run) -> None:
    visitor.open(f"/training?run={run.name}")
    press(visitor, "resume")
    becomes(visitor, run, TRAINING)
    visitor.follow("Attention maps")
    goes_on(run)
    visitor.follow("Training")
    visitor.load()
    press(visitor, "pause")
    becomes(visitor, run, PAUSED)
    before = run.status().step
    press(visitor, "step")
    wait_until(lambda: run.status().step == before + 1, "one step")
    becomes(visitor, run, PAUSED)
    press(visitor, "resume")
    becomes(visitor, run, TRAINING)


@contextmanager
def a_reader_behind_nginx(
    killed: Server, left: Server, visit: Visit, folder: Path
) -> Iterator[None]:
    """Comes to the one by a link, and goes on at the other when the one is killed.

    nginx has the settings of `deploy`; where there is none, nobody comes.
    """
    try:
        proxy.ensure()
    except proxy.NoNginx:
        yield
        return
    with proxy.before([killed, left], folder) as replicas:
        reader, key = visit(replicas.url), replicas.reader_of(killed)
        reader.context.add_cookies([{"name": COOKIE, "value": key, "url": replicas.url}])
        page = reader.open(f"/attention?model=shakespeare&text=To+be,+{SECRET}&layer=1&head=1")
        seen, line = reader.picture(MATRIX), reader.socket
        reader.has_everything()  # or what it is sending is cut short
        yield
        wait_until(lambda: (page.evaluate("0"), reader.socket is not line)[1], "another line")
        reader.rest()
        reader.shows(MATRIX, seen)
        reader.pick(GRID, layer=1, head=3)  # the first that the other replica hears of them
        reader.at_head(1, 3)
        reader.changed(MATRIX, seen)
        reader.has_everything()
        assert replicas.place_of(key) is left
        reader.no_mishap()
        reader.leave()  # before its proxy ends
        assert not any(SECRET in log for log in (replicas.proxy.log, killed.log, left.log))


def test_all_but_downloads_go_on(both: tuple[Server, Server], visit: Visit, tmp_path: Path) -> None:
    killed, left = both
    run = tiny_run(killed.runs, steps=1_000_000)
    run.command("step")
    train_to_end(run.folder)
    owner = visit(killed.url)
    trains_through_pages_and_a_pause(owner, run)
    begins_a_download(owner, "distilgpt2")
    owner.leave()
    with a_reader_behind_nginx(killed, left, visit, tmp_path / "proxy"):
        killed.kill()

    def is_alone() -> bool:
        return not any("background_downloads" in " ".join(p.cmdline()) for p in killed.leftovers())

    wait_until(is_alone, "the end of the download")
    assert fetched_bytes(PRETRAINED_MODELS["distilgpt2"].folder) >= HALF
    owner = visit(left.url)
    owner.open(f"/training?run={run.name}")
    becomes(owner, run, TRAINING)
    goes_on(run)
    press(owner, "stop")
    becomes(owner, run, STOPPED)
    has_every_step(run)
    press(owner, "resume")
    becomes(owner, run, TRAINING)
    owner.no_mishap()
    owner.leave()
    goes_on(run)
    left.stop(signal.SIGTERM)
    wait_until(lambda: not killed.leftovers() + left.leftovers(), "the end of every process")
    for server in both:
        assert not server.tracebacks, server.tracebacks[0]
    assert run.status().can_resume
    has_every_step(run)
