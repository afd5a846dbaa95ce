"""What readers left is removed again and again, whatever fails."""

import asyncio
import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.app import streamlit_patches
from explorer.catalog import uploads
from explorer.catalog.folders import UPLOAD
from explorer.server import sweeping
from explorer.system.data_folders import uploads_root
from tests.calls import run_in_thread


def test_uploads_are_forgotten_on_a_server_that_nobody_visits(
    small_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_UPLOADS_DAYS", "0")
    monkeypatch.setattr(sweeping, "EVERY", 0)
    sweep, looks = uploads.sweep, list[Path]()

    def fail_at_first(root: Path) -> None:
        looks.append(root)
        assert len(looks) > 1
        sweep(root)

    monkeypatch.setattr(uploads, "sweep", fail_at_first)
    monkeypatch.setattr(streamlit_patches, "forget_who_left", Mock(side_effect=ValueError))
    upload = uploads_root() / f"{UPLOAD}{'0' * 24}"
    upload.mkdir(parents=True)
    an_hour_ago = time.time() - 3600
    os.utime(upload, (an_hour_ago, an_hour_ago))

    async def until_it_is_gone() -> None:
        task = asyncio.create_task(sweeping.sweep_again_and_again())
        while upload.exists():
            await asyncio.sleep(0.01)
        task.cancel()

    run_in_thread(until_it_is_gone())
    assert len(looks) > 1
