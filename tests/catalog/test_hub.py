"""The hub of models: what is fetched, what its cache gives offline, and how it fails."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants
from huggingface_hub.errors import DryRunError, RepositoryNotFoundError

from explorer.catalog import ModelError, available_models, folders, hub, opened_model

ID = "someone/tiny-gpt2"
COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine that is offline."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv(folders.ALLOW_PATHS, "1")
    return tmp_path


def put_in(cache: Path, files: dict[str, bytes], hub_id: str = ID) -> Path:
    """A model as the hub's own library keeps it: links to files that are named by contents."""
    kept = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot, blobs = kept / "snapshots" / COMMIT, kept / "blobs"
    for folder in (snapshot, blobs, kept / "refs"):
        folder.mkdir(parents=True)
    (kept / "refs" / "main").write_text(COMMIT)
    for number, (name, content) in enumerate(files.items()):
        (blobs / f"{number:064}").write_bytes(content)
        (snapshot / name).symlink_to(Path("../../blobs") / f"{number:064}")
    return snapshot


def answer(
    monkeypatch: pytest.MonkeyPatch, *sizes: int | None, fails: Exception | None = None
) -> list[dict[str, Any]]:
    """The hub answers so from now on; what it will have been asked."""
    asked: list[dict[str, Any]] = []

    def fake(hub_id: str, **how: Any) -> Any:
        asked.append(how)
        if how.get("local_files_only"):
            raise FileNotFoundError("not in the cache")
        if fails is not None:
            raise fails
        planned = [SimpleNamespace(file_size=size) for size in sizes]
        return planned if how.get("dry_run") else "/cache/there"

    monkeypatch.setattr(hub, "snapshot_download", fake)
    return asked


def test_only_what_may_be_an_id_is_asked_for() -> None:
    for text in ["gpt2", "openai-community/gpt2", "a/b.c-d_e", "x" * 96]:
        assert hub.is_hub_id(text), text
    for text in [
        *["", ".", "..", "../x", "a..b", "-x", "x--y", "a/b/c", "x.git", "a b", "a/", "/a"],
        *["x" * 97, "a/b\n", "ü/ü", "a\0", "https://x.org/y", "a/b@main", "a?b", "%2e%2e/x"],
    ]:
        assert not hub.is_hub_id(text), text


def test_offline_the_cache_gives_a_model_that_opens(cache: Path, published: Path) -> None:
    made = (published / "gpt2").iterdir()
    kept = put_in(cache, {file.name: file.read_bytes() for file in made})
    assert hub.fetch_from_hub(ID) == folders.find_model(ID) == kept
    entry = available_models.brought_model(kept)
    assert (entry.fault, entry.name) == (None, ID)
    assert opened_model.open_entry(entry).family == "gpt2"
    put_in(cache, {}, "someone/empty")
    put_in(cache, {"README.md": b""}, "someone/else")
    for missing in ("someone/new", "someone/empty", "someone/else"):
        with pytest.raises(
            ModelError, match=rf"^There is no folder {missing}, the hub cannot .*\.$"
        ):
            hub.fetch_from_hub(missing)


def test_what_is_fetched_is_planned_first_and_is_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, 10, None)
    assert hub.fetch_from_hub(ID) == Path("/cache/there")
    plan, fetch = asked
    assert plan.pop("dry_run")
    assert plan == fetch
    patterns = fetch["allow_patterns"]
    for name in ("modeling.py", "pytorch_model.bin", "model.pt", "x.pkl", "tf_model.h5", "x.zip"):
        assert not any(Path(name).match(pattern) for pattern in patterns)
    for name in [
        *("model-00001-of-00002.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("special_tokens_map.json", "vocab.json", "merges.txt", "source.spm"),
    ]:
        assert any(Path(name).match(pattern) for pattern in patterns)


def test_what_is_too_large_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, 10**10, 10**10)
    with pytest.raises(ModelError, match=rf"^{ID} is 20 GB, more than the 16 GB .*\.$"):
        hub.fetch_from_hub(ID)
    assert len(asked) == 1


class Unheard(Exception):
    """An error of a library that the hub's own is built on."""


def not_found() -> RepositoryNotFoundError:
    response: Any = SimpleNamespace(headers={}, request=None, status_code=404)
    return RepositoryNotFoundError("404", response=response)


def plan_failed() -> DryRunError:
    """How the library says it since it plans first."""
    error = DryRunError("Dry run cannot be performed")
    error.__cause__ = not_found()
    return error


def test_every_failure_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for error, sentence in [
        (not_found(), "the hub has no public model of that name."),
        (plan_failed(), "the hub has no public model of that name."),
        (DryRunError("offline"), "the hub cannot be reached"),
        (ConnectionError("reset"), "the hub cannot be reached"),
        (Unheard("no route"), "the hub cannot be reached"),
        (ValueError("strange answer"), "the hub cannot be reached"),
        (OSError(errno.ENOSPC, "full"), "There is not enough disk space"),
    ]:
        with subtests.test(error=error):
            answer(monkeypatch, fails=error)
            with pytest.raises(ModelError, match=sentence) as caught:
                hub.fetch_from_hub(ID)
            assert str(caught.value).count(". ") == 0
            assert "\n" not in str(caught.value)
