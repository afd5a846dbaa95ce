"""The limits of uploads and downloads, met."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from explorer.app import limits
from explorer.catalog import ModelError, disk_space, hub, uploads
from tests.apart import run_apart
from tests.server.uploading import Answer, bound, open_world


def put_twice(monkeypatch: pytest.MonkeyPatch, *, size: int = 0, **most: int) -> Answer:
    """What the second of two uploads is answered, and the page says too."""
    bound(monkeypatch, **most)
    world = open_world(monkeypatch)
    world.connected |= {"a": ""}

    async def put() -> Answer:
        await world.put("a", size)
        return await world.put("a", size)

    answer = run_apart(put())
    assert world.received.take_note("a") == answer.text
    return answer


def one_upload(monkeypatch: pytest.MonkeyPatch) -> str:
    answer = put_twice(monkeypatch, size=1_200_000, upload_bytes=100_000)
    assert answer.status == 413
    return answer.text


def a_slow_upload(monkeypatch: pytest.MonkeyPatch) -> str:
    return put_twice(monkeypatch, upload_seconds=0).text


def all_uploads(monkeypatch: pytest.MonkeyPatch) -> str:
    answer = put_twice(monkeypatch, uploads_receiving=700_000)
    assert answer.status == 503
    return answer.text


def uploads_of_a_reader(monkeypatch: pytest.MonkeyPatch) -> str:
    answer = put_twice(monkeypatch, uploads_receiving_of_reader=700_000)
    assert answer.status == 413
    return answer.text


def a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    free = SimpleNamespace(free=limits.DISK_LEFT.most + 9)
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda _: free)
    files = {"config.json": b"{}", "model.safetensors": bytes(8)}
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    sizes = {name: len(data) for name, data in files.items()}
    with pytest.raises(ModelError) as refused:
        uploads.keep_upload(streams, sizes, tmp_path, uploads.NOBODY, lambda _: None)
    assert list(tmp_path.iterdir()) == []
    return str(refused.value)


def a_large_download(monkeypatch: pytest.MonkeyPatch) -> str:
    plan = SimpleNamespace(size=limits.DOWNLOAD_BYTES.most + 1)
    monkeypatch.setattr(hub, "_plan", lambda _: plan)
    with pytest.raises(ModelError) as refused:
        hub.fetch_from_hub("someone/large")
    return str(refused.value)


MEETINGS: dict[str, Callable[..., str]] = {
    "upload_bytes": one_upload,
    "upload_seconds": a_slow_upload,
    "uploads_receiving": all_uploads,
    "uploads_receiving_of_reader": uploads_of_a_reader,
    "disk_left": a_full_disk,
    "download_bytes": a_large_download,
}
