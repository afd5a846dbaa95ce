"""Downloads in processes of their own: one for each model, seen by all, ended by a click."""

import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from explorer.catalog import background_downloads
from explorer.catalog.background_downloads import DownloadState, state_of
from explorer.catalog.model_download import DownloadProgress, fetched_bytes, part_folder
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.system.atomic_files import Lock, write_json
from tests.catalog.downloads.serving import COMMIT, Site
from tests.served import wait_until

HUB_ID = "openai-community/gpt2"
WEIGHTS = f"/{HUB_ID}/resolve/{COMMIT}/model.safetensors"
HALF = 30_000


@pytest.fixture
def model(site: Site, published: Path) -> Iterator[PretrainedModel]:
    """GPT-2 of a hub that has a tiny one, and holds its weights back in the middle."""
    files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
    site.put_model(HUB_ID, files)
    site.held[WEIGHTS] = HALF
    yield PRETRAINED_MODELS["gpt2"]
    background_downloads.end_all()


def start_to_the_middle(model: PretrainedModel) -> subprocess.Popen[bytes]:
    background_downloads.start(model)
    wait_until(lambda: fetched_bytes(model.folder) >= HALF, "half of the weights")
    return background_downloads._processes[model.folder]


def test_one_process_downloads_and_goes_on_if_cancelled(
    site: Site, model: PretrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_of(model) == DownloadState("absent")
    for _ in range(3):
        background_downloads.start(model)
    process = start_to_the_middle(model)
    wait, seen = process.wait, []

    def waiting(timeout: float | None = None) -> int:
        """Others need not wait for the end to know how it stands."""
        another = ThreadPoolExecutor(1)  # not left with `with`, which would wait without end
        seen.append(another.submit(state_of, model).result(60))
        return wait(timeout)

    monkeypatch.setattr(process, "wait", waiting)
    state = state_of(model)
    assert (state.kind, state.is_ours) == ("running", True)
    assert state.progress is not None
    assert site.ranges_of(WEIGHTS) == [""]
    background_downloads.cancel(model)
    assert len(seen) == 1
    state = state_of(model)
    assert (state.kind, state.fault) == ("absent", "")
    assert state.left >= HALF
    assert not model.is_there
    site.go_on.set()
    background_downloads.start(model)
    wait_until(lambda: state_of(model).kind == "there", "the model")
    asked = site.ranges_of(WEIGHTS)
    assert len(asked) == 2
    assert int(asked[1].removeprefix("bytes=").removesuffix("-")) >= HALF
    assert not part_folder(model.folder).exists()
    background_downloads.start(model)
    assert state_of(model) == DownloadState("there")
    assert len(site.ranges_of(WEIGHTS)) == 2


def test_what_fails_or_ends_with_its_server_says_so(site: Site, model: PretrainedModel) -> None:
    at = f"/api/models/{HUB_ID}"
    site.status[at] = 403
    background_downloads.start(model)
    wait_until(lambda: state_of(model).kind == "absent", "the end")
    assert state_of(model).fault.startswith("GPT-2 could not be downloaded: the hub refused it")
    del site.status[at]
    process = start_to_the_middle(model)
    assert state_of(model).fault == ""
    assert process.stdin is not None
    process.stdin.close()  # as the system does when the server that started it is killed
    assert process.wait(60) == -signal.SIGTERM
    said = "The download of GPT-2 ended unexpectedly; try again, and it goes on."
    assert state_of(model).fault == said


def test_a_download_of_another_process_is_seen_and_not_ended(model: PretrainedModel) -> None:
    part = part_folder(model.folder)
    part.mkdir(parents=True)
    said = {"phase": "fetching", "done": 10, "total": 110, "speed": 20.0}
    write_json(part / background_downloads.STATE_FILE, said)
    with Lock(part / "lock") as lock:
        assert lock.acquire()
        state = state_of(model)
        progress = DownloadProgress("fetching", 10, 110, 20.0)
        assert state == DownloadState("running", progress, is_ours=False)
        assert state.seconds_left == 5
        background_downloads.start(model)
        background_downloads.cancel(model)
        assert state_of(model).kind == "running"
        for damaged in ("", "[]", '{"phase": 3, "done": "x"}'):
            (part / background_downloads.STATE_FILE).write_text(damaged)
            assert state_of(model).progress == DownloadProgress("asking", 0, model.download)
