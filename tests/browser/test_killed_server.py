"""A server of two that is killed in mid work: who reads, what trains and what is downloaded."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from explorer.app.reader import COOKIE, new_key, owner_of
from explorer.catalog.model_download import fetched_bytes
from explorer.catalog.pretrained_models import PRETRAINED_MODELS
from explorer.runs.run import Run, create
from explorer.runs.spec import PAUSED, TRAINING
from explorer.runs.worker import train_to_end
from tests import proxy
from tests.browser.conftest import Visit
from tests.browser.test_training import becomes, press
from tests.browser.visiting import Visitor
from tests.catalog.downloads.serving import COMMIT, Site, served
from tests.served import Server, wait_until
from tests.tiny import tiny_spec

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
def killed(
    server: Server, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Another server of the same runs, whose folder of pretrained models is empty.

    It calls the folder of runs otherwise: the processes of a server are found by that name. Those
    that train are left to the other.
    """
    folder = tmp_path_factory.mktemp("killed")
    place = {"HF_ENDPOINT": site.url, "HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "0"}
    (folder / "same-runs").symlink_to(server.runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_EXAMPLES", str(folder / "examples"))
        killed = Server(folder / "same-runs", env=place | proxy.SHARED).start()
        try:
            yield killed.wait()
        finally:
            killed.kill()


@pytest.fixture(scope="module")
def downloader(browser: Browser, killed: Server) -> Iterator[Visitor]:
    """Who is at the machine of the server that is killed, and may download there."""
    visitor = Visitor(browser, killed.url)
    yield visitor
    visitor.close()


def begins_a_download(visitor: Visitor, name: str) -> None:
    page = visitor.open("/checkpoints")
    folded = page.locator("details:not([open]) > summary").filter(has_text="Pretrained models")
    if folded.count():  # as it is where there is a model
        folded.click()
    visitor.widget(f"get_{name}").get_by_role("button").click()
    folder = PRETRAINED_MODELS[name].folder
    wait_until(lambda: fetched_bytes(folder) >= HALF, "half of the weights")


def test_a_click_downloads_a_model(downloader: Visitor, site: Site) -> None:
    begins_a_download(downloader, "gpt2")
    bar = downloader.page.get_by_role("progressbar")
    expect(bar).to_be_visible()
    downloader.widget("cancel_list_gpt2").get_by_role("button").click()
    resume = downloader.widget("get_gpt2").get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    expect(bar).to_have_count(0)
    resume.click()
    expect(bar).to_be_visible()
    site.go_on.set()
    downloader.asks(model="gpt2")
    assert [each != "" for each in site.ranges_of(weights_of("gpt2"))] == [False, True]
    site.go_on.clear()
    downloader.no_mishap()


def goes_on(run: Run) -> None:
    now = run.status().step
    wait_until(lambda: run.status().step >= now + 20, "20 further steps")


def has_every_step(run: Run) -> None:
    """Nothing of the curve was lost, nothing is there twice."""
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == sorted(set(steps))
    assert len(steps) == steps[-1] - steps[0] + 1


@contextmanager
def nginx(servers: list[Server], folder: Path) -> Iterator[proxy.Replicas | None]:
    """With the settings of `deploy`, before these servers; None where there is no nginx."""
    try:
        proxy.ensure()
    except proxy.NoNginx:
        yield None
        return
    with proxy.before(servers, folder) as replicas:
        yield replicas


def test_all_but_downloads_go_on(
    killed: Server, server: Server, downloader: Visitor, visit: Visit, tmp_path: Path
) -> None:
    """At the other server, to which nginx leads."""
    begins_a_download(downloader, "distilgpt2")
    downloader.no_mishap()
    downloader.leave()
    with nginx([killed, server], tmp_path / "proxy") as replicas:
        url = replicas.url if replicas else server.url
        reader, key = visit(url), replicas.reader_of(killed) if replicas else new_key()
        reader.context.add_cookies([{"name": COOKIE, "value": key, "url": url}])
        run = create(server.runs, tiny_spec(steps=1_000_000), owner=owner_of(key))
        run.command("step")
        train_to_end(run.folder)
        reader.open(f"/training?run={run.name}")
        becomes(reader, run, PAUSED)
        press(reader, "resume")
        becomes(reader, run, TRAINING)
        page = reader.open(f"/attention?model=shakespeare&text=To+be,+{SECRET}&layer=1&head=1")
        seen, line = reader.picture(MATRIX), reader.socket
        reader.has_everything()  # or what it is sending is cut short
        killed.kill()

        def is_alone() -> bool:
            lines = [" ".join(process.cmdline()) for process in killed.leftovers()]
            return not any("background_downloads" in each for each in lines)

        wait_until(is_alone, "the end of the download")
        assert fetched_bytes(PRETRAINED_MODELS["distilgpt2"].folder) >= HALF
        goes_on(run)
        if replicas:
            wait_until(lambda: (page.evaluate("0"), reader.socket is not line)[1], "another line")
        reader.rest()
        reader.shows(MATRIX, seen)
        reader.pick(GRID, layer=1, head=3)  # the first that the other replica hears of them
        reader.at_head(1, 3)
        reader.changed(MATRIX, seen)
        reader.open(f"/training?run={run.name}")
        becomes(reader, run, TRAINING)
        press(reader, "pause")
        becomes(reader, run, PAUSED)
        has_every_step(run)
        reader.has_everything()
        assert not replicas or replicas.place_of(key) is server
        reader.no_mishap()
        reader.leave()  # before its proxy ends
        logs = [killed.log, server.log, replicas.proxy.log if replicas else ""]
        assert not any(SECRET in log for log in logs)
    assert not killed.tracebacks, killed.tracebacks[0]
