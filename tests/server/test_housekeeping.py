"""What is imported when, and what readers left is removed whatever fails."""

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import plotly.graph_objects as go
import pytest

from explorer.app import streamlit_patches
from explorer.catalog import uploads
from explorer.catalog.folders import UPLOAD
from explorer.server import housekeeping
from explorer.server.housekeeping import PANDAS
from explorer.system.data_folders import uploads_root
from tests.calls import run_in_thread
from tests.source import ROOT, imports

PLAYED = """
from halves import first, second
first.set()
second.wait()
class Timestamp: ...
class DataFrame: ...
class Series: ...
class Index: ...
"""
"""Pandas as plotly asks for it, which says when its first half is imported and waits there."""


def draw_chart() -> None:
    go.Figure(go.Scatter(x=[1, 2], y=[3, 4])).to_json()


def test_a_chart_waits_for_whole_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread imports it, and nobody has before."""
    draw_chart()  # what it imports itself is there
    (tmp_path / f"{PANDAS}.py").write_text(PLAYED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    halves: Any = SimpleNamespace(first=Event(), second=Event())
    monkeypatch.setitem(sys.modules, "halves", halves)
    monkeypatch.setitem(sys.modules, PANDAS, None)  # it is put back as it was
    del sys.modules[PANDAS]

    def go_on(name: str) -> ModuleType:
        halves.second.set()  # somebody waits
        return import_module(name)

    monkeypatch.setattr(housekeeping, "import_module", go_on)
    housekeeping.wait_for_pandas()
    with ThreadPoolExecutor() as threads:
        table = threads.submit(import_module, PANDAS)
        table.add_done_callback(lambda _: halves.first.set())  # also where it fails
        halves.first.wait()
        try:
            threads.submit(draw_chart).result()
        finally:
            halves.second.set()
        assert table.result().Series


BEFORE_THE_FIRST_PAGE = ("app.py", "explorer/app/shell.py", "pages/overview/overview.py")
LATER = {
    *("altair", "cryptography", "dask", "distributed", "gguf", "httpx2", "huggingface_hub"),
    *("jinja2", "matplotlib", "pandas", "platformdirs", "sentencepiece", "tensorboardX"),
    *("vl_convert", "yaml"),
}


def test_the_first_page_waits_for_no_library_of_others() -> None:
    """What its files import, and what they do, in a process of its own."""
    named = {each for path in BEFORE_THE_FIRST_PAGE for each in imports(Path(path))}
    ours = sorted(each for each in named if each.startswith("explorer."))
    assert len(ours) > 20
    code = (
        "import importlib, importlib.util, sys\n"
        f"for name in {ours}:\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error: assert error.name == name\n"  # names no module
        "print(*sys.modules)"
    )
    ran = {*subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split()}
    assert {"torch", "streamlit", "explorer.app.bar"} <= ran
    assert LATER & ran == set()


def test_uploads_go_without_any_visit(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_UPLOADS_DAYS", "0")
    monkeypatch.setattr(housekeeping, "CLEANUP_INTERVAL", 0)
    sweep, looks = uploads.sweep, list[Path]()

    def fail_at_first(root: Path) -> None:
        looks.append(root)
        assert len(looks) > 1
        sweep(root)

    monkeypatch.setattr(uploads, "sweep", fail_at_first)
    monkeypatch.setattr(streamlit_patches, "end_left_sessions", Mock(side_effect=ValueError))
    upload = uploads_root() / f"{UPLOAD}{'0' * 24}"
    upload.mkdir(parents=True)
    an_hour_ago = time.time() - 3600
    os.utime(upload, (an_hour_ago, an_hour_ago))

    async def until_it_is_gone() -> None:
        task = asyncio.create_task(housekeeping.clean_up_forever())
        while upload.exists():
            await asyncio.sleep(0.01)
        task.cancel()

    run_in_thread(until_it_is_gone())
    assert len(looks) > 1
