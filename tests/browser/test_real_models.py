"""A real model by one click, from a hub on this machine: seen from every page, after a reload."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer.catalog.real_models import REAL_MODELS
from explorer.downloads.model_download import fetched_bytes
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.downloads.serving import COMMIT, Site, served
from tests.served import Server, wait_until

HUB_ID = "openai-community/gpt2"
WEIGHTS = f"/{HUB_ID}/resolve/{COMMIT}/model.safetensors"
HALF = 30_000


@pytest.fixture
def site(published: Path) -> Iterator[Site]:
    """A hub that has a tiny GPT-2 and holds its weights back in the middle."""
    with served() as site:
        files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
        site.put_model(HUB_ID, files)
        site.held[WEIGHTS] = HALF
        yield site


@pytest.fixture
def empty(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An app whose folder of models is empty."""
    monkeypatch.setenv("EXPLORER_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    place = {"HF_ENDPOINT": site.url, "HF_HOME": str(tmp_path / "hub")}
    with Server(tmp_path / "runs", env=place) as server:
        yield server


def test_a_click_downloads_a_model_which_opens_when_it_is_there(
    empty: Server, site: Site, visit: Visit
) -> None:
    model = REAL_MODELS["gpt2"]
    reader, other = visit(empty.url), visit(empty.url)
    page = reader.open("/checkpoints")
    reader.widget("get_gpt2").get_by_role("button").click()
    wait_until(lambda: fetched_bytes(model.folder) >= HALF, "half of the weights")
    bar = page.get_by_role("progressbar")
    expect(bar).to_be_visible()
    page.reload()
    expect(bar).to_be_visible()
    other.open("/checkpoints")
    expect(other.page.get_by_role("progressbar")).to_be_visible()
    expect(other.widget("get_gpt2")).to_have_count(0)

    reader.widget("cancel_shelf_gpt2").get_by_role("button").click()
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
    assert [each != "" for each in site.ranges_of(WEIGHTS)] == [False, True]
    empty.stop()
    assert not empty.tracebacks


def test_a_download_ends_with_a_server_that_is_killed(empty: Server, visit: Visit) -> None:
    reader = visit(empty.url)
    reader.open("/checkpoints")
    reader.widget("get_gpt2").get_by_role("button").click()
    folder = REAL_MODELS["gpt2"].folder
    wait_until(lambda: fetched_bytes(folder) >= HALF, "half of the weights")
    assert len(empty.leftovers()) > 1
    reader.leave()
    empty.kill()

    def is_alone() -> bool:
        return not any("download_process" in " ".join(p.cmdline()) for p in empty.leftovers())

    wait_until(is_alone, "the end of the download")
    assert fetched_bytes(folder) >= HALF


def test_the_list_of_models_leads_to_more(visitor: Visitor) -> None:
    visitor.open("/attention?model=gpt2")
    visitor.choose("Model", "More models")
    visitor.titled("Checkpoints")
    visitor.asks(model="gpt2")
