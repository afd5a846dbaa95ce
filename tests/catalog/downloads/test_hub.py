"""The hub of models: what is fetched, what its cache gives offline, and how it fails."""

import errno
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled

from explorer.catalog import ModelError, available_models, folders, hub, typed_model_path
from explorer.catalog.opened_model import open_entry
from tests import tiny
from tests.catalog.downloads.conftest import HUB_ID as ID
from tests.catalog.downloads.conftest import put_in
from tests.catalog.downloads.serving import COMMIT, Site


def test_only_what_may_be_an_id_is_asked_for() -> None:
    for text in ["gpt2", "openai-community/gpt2", "a/b.c-d_e", "x" * 96]:
        assert folders.is_hub_id(text), text
    for text in [
        *["", ".", "..", "../x", "a..b", "-x", "x--y", "a/b/c", "x.git", "a b", "a/", "/a"],
        *["x" * 97, "a/b\n", "ü/ü", "a\0", "https://x.org/y", "a/b@main", "a?b", "%2e%2e/x"],
    ]:
        assert not folders.is_hub_id(text), text


@pytest.mark.usefixtures("site")
def test_offline_the_cache_gives_a_model_that_opens(
    published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv(typed_model_path.ALLOW_PATHS, "1")
    cache = Path(constants.HF_HUB_CACHE)
    kept = put_in(cache, {each.name: each.read_bytes() for each in (published / "gpt2").iterdir()})
    assert hub.fetch_from_hub(ID) == typed_model_path.find_model(ID) == kept
    entry = available_models.brought_model(kept)
    assert (entry.fault, entry.title) == (None, ID)
    assert open_entry(entry).family == "gpt2"
    put_in(cache, {}, "someone/empty")
    put_in(cache, {"README.md": b""}, "someone/else")
    for missing in ("someone/new", "someone/empty", "someone/else"):
        with pytest.raises(ModelError, match=rf"^There is no folder {missing}, the hub is .*\.$"):
            hub.fetch_from_hub(missing)


@pytest.mark.usefixtures("hub_model")
def test_what_opens_a_model_is_fetched_once(site: Site, published: Path) -> None:
    folder = hub.fetch_from_hub(ID)
    names = {each.name for each in (published / "gpt2").iterdir()}
    assert {each.name for each in folder.iterdir()} == names
    assert available_models.brought_model(folder).fault is None
    weights = f"/{ID}/resolve/{COMMIT}/model.safetensors"
    before = site.ranges_of(weights)
    hub.fetch_from_hub(ID)
    assert site.ranges_of(weights) == before, "what is there is not fetched again"


def test_of_many_shards_those_of_the_index_are_fetched(site: Site, tmp_path: Path) -> None:
    tiny.reference_gpt2(tmp_path / "made", shards=True)
    files = {each.name: each.read_bytes() for each in (tmp_path / "made").iterdir()}
    site.put_model(ID, files | {"model-00001-of-00099.safetensors": b"", "x.safetensors": b""})
    folder = hub.fetch_from_hub(ID)
    assert {each.name for each in folder.iterdir()} == files.keys()
    assert available_models.brought_model(folder).fault is None


def test_what_opens_nothing_is_not_fetched(site: Site, subtests: pytest.Subtests) -> None:
    adapter = ["adapter_config.json", "adapter_model.safetensors"]
    for names, why in [
        (["model.ckpt"], "holds pickled weights"),
        (["a.safetensors", "b.safetensors"], "holds several safetensors files"),
        (adapter, "is a LoRA adapter without its model"),
        ([], "has no model.safetensors"),
    ]:
        with subtests.test(names=names):
            site.put_model(ID, dict.fromkeys(["config.json", *names], b"{}"))
            with pytest.raises(ModelError, match=why):
                hub.fetch_from_hub(ID)
    site.put_model(ID, dict.fromkeys(["config.json", "model.safetensors"], b"{}"))
    for at, page in site.pages.items():
        site.pages[at] = re.sub(rb'"size": \d+, "blobId"', b'"blobId"', page)
    with pytest.raises(ModelError, match="has files of which the hub names no size"):
        hub.fetch_from_hub(ID)


def test_failures(site: Site, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    at = f"/api/models/{ID}"
    unknown = {"X-Error-Code": "RepoNotFound"}  # or one that not everybody may see
    for status, headers, sentence in (
        (404, unknown, rf"^There is no folder {ID}, and the hub has no public model of that name"),
        (403, {}, "the hub refused it with HTTP status 403, and its cache"),
    ):
        site.status[at], site.headers[at] = status, headers
        with pytest.raises(ModelError, match=sentence):
            hub.fetch_from_hub(ID)
    for error, sentence in (
        (ValueError("no route"), r"^There is no folder .*, the hub cannot be reached, .*\.$"),
        (OfflineModeIsEnabled("no"), "the hub is switched off here by HF_HUB_OFFLINE"),
        (OSError(errno.ENOSPC, "full"), "^There is not enough disk space"),
    ):
        monkeypatch.setattr(hub, "plan_download", Mock(side_effect=error))
        with subtests.test(error=error), pytest.raises(ModelError, match=sentence):
            hub.fetch_from_hub(ID)
