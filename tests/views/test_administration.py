"""The Administration page: who is let in, what it says of readers, and what can be done there."""

import io
import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from cachetools import TTLCache
from streamlit.testing.v1 import AppTest

from explorer.app import admin_token
from explorer.app.session import Session
from explorer.catalog import uploads
from explorer.runs.run import Run, create
from explorer.system.data_folders import uploads_root
from explorer.system.limits import MB
from explorer.views.administration import server_activity
from tests import apps
from tests.apps import said
from tests.tiny import tiny_spec
from tests.views.drawing import press
from tests.views.fake_cluster import FakeCluster

TOKEN = "correct horse battery"
SECRET = "a diary that somebody pasted"
ONE, OTHER = "1" * 32, "2" * 32


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time stands still, and nobody has typed a wrong token."""
    now = [0.0]
    wrong = TTLCache[str, int](maxsize=9, ttl=admin_token.WAIT, timer=lambda: now[0])
    monkeypatch.setattr(admin_token, "_wrong", wrong)
    return now


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_models: Path) -> dict[str, Run]:
    """One of the operator, and one each of two readers."""
    root = tmp_path / "runs"
    monkeypatch.setenv("EXPLORER_RUNS", str(root))
    monkeypatch.setenv("EXPLORER_ADMIN_TOKEN", TOKEN)
    owners = {"one": ONE, "other": OTHER, "host": ""}
    cluster, runs = FakeCluster(), dict[str, Run]()
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: cluster)
    for name, owner in owners.items():
        runs[name] = create(root, tiny_spec(), SECRET, owner)
        cluster.submit(runs[name])
    return runs


def opened(token: str = TOKEN) -> AppTest:
    """The page, after this token was typed."""
    at = apps.page("server/administration")
    return apps.run(at.text_input(key="admin_token").set_value(token))


def test_without_a_token_nobody_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_ADMIN_TOKEN")
    at = apps.page("server/administration")
    assert server_activity.CLOSED in said(at)
    assert not at.text_input
    assert not at.dataframe
    assert not admin_token.is_right("", "")


def test_after_wrong_tokens_one_waits(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_activity, "network", lambda: "a network")
    for wrong in (TOKEN[:-1], TOKEN.upper(), "é" * 16, *["wrong"] * (admin_token.TRIES - 3)):
        at = opened(wrong)
        assert server_activity.NOT_ADMIN in said(at)
        assert not at.dataframe
        assert at.text_input(key="admin_token").value == ""
    for token in ("wrong", TOKEN):
        at = opened(token)
        assert server_activity.TOO_MANY in said(at)
        assert not at.dataframe
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(server_activity, "network", lambda: "another network")
        assert opened().dataframe
    clock[0] += admin_token.WAIT
    assert opened().dataframe
    assert server_activity.NOT_ADMIN in said(opened("wrong"))


def test_a_token_to_guess_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert admin_token.fault() is None
    monkeypatch.setenv("EXPLORER_ADMIN_TOKEN", "password")
    assert "needs 16 characters or more" in str(admin_token.fault())


def test_a_server_without_runs_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "none"))
    assert "0 runs by 0 readers" in said(opened())


def test_readers_are_numbers_and_nothing_of_theirs_is_shown(runs: dict[str, Run]) -> None:
    at = opened()
    assert "3 runs by 3 readers" in said(at)
    assert "kB on disk · 3 training or queued" in said(at)
    rows = at.dataframe[0].value.to_dict("records")
    assert {row["owner"] for row in rows} == {"reader 1", "reader 2", "operator"}
    assert {row["run"] for row in rows} == {"reverse-1"}
    assert all(row["size"].endswith(" kB") for row in rows)
    everything = f"{rows} {said(at)}"
    assert not any(word in everything for word in (SECRET, ONE, OTHER, runs["one"].name))
    assert "Memory" in {metric.label for metric in at.metric}
    links = {link.proto.page for link in at.get("page_link")}
    assert links
    assert not any("administration" in link for link in links), "it is in no navigation"


def chosen(at: AppTest, whose: str) -> AppTest:
    """After the box of this one's run was clicked."""
    table = at.dataframe[0]
    row = [each["owner"] for each in table.value.to_dict("records")].index(whose)
    at.session_state[str(table.key)] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return at.run()


def test_the_chosen_runs_are_stopped_and_deleted(runs: dict[str, Run]) -> None:
    at = chosen(opened(), "reader 2")
    press(at, "admin_stop")
    assert [run.last_command() for run in runs.values()] == ["train", "stop", "train"]
    states = {row["owner"]: row["state"] for row in at.dataframe[0].value.to_dict("records")}
    assert (states["reader 1"], states["reader 2"]) == ("waiting for its turn", "stopping")
    press(chosen(at, "reader 2"), "admin_delete_runs")
    assert [run.folder.exists() for run in runs.values()] == [True, False, True]
    assert at.button(key="admin_stop").disabled, "another table, in which nothing is chosen"


def test_only_who_is_let_in_commands(runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_activity, "session", Session)
    names = [run.name for run in runs.values()]
    server_activity.stop_runs(names)
    server_activity.delete_runs(names)
    theirs, work = uploaded(ONE, "a", 0), Mock(number=7)
    monkeypatch.setattr(server_activity, "at_work", lambda: [work])
    server_activity.delete_uploads([theirs.name])
    server_activity.stop_pages([7])
    assert theirs.exists()
    assert not work.stop.called
    assert all(run.last_command() == "train" and run.folder.exists() for run in runs.values())


def uploaded(owner: str, model: str, used: float, size: int = 9 * MB) -> Path:
    """The folder of an upload of this owner, used at this time."""
    files = {"config.json": b"{}", "model.safetensors": bytes(size)}
    streams = {f"{model}/{name}": io.BytesIO(data) for name, data in files.items()}
    sizes = {f"{model}/{name}": len(data) for name, data in files.items()}
    whose = uploads.Uploader("", owner)
    kept = uploads.keep_upload(streams, sizes, uploads_root(), whose, lambda _: None)
    os.utime(kept.folder.parent, (used, used))
    return kept.folder.parent


def test_uploads_are_listed_without_their_names_and_can_be_deleted() -> None:
    an_hour_ago = time.time() - 7_200
    theirs = uploaded(OTHER, "a model of love", an_hour_ago)
    only_uploads = uploaded("3" * 32, "another", time.time() - 3_600, 409_000)
    at = opened()
    assert "2 models, 9.41 MB on disk · 0 bytes in memory, not opened yet" in said(at)
    table = at.dataframe[-1]
    rows = table.value.to_dict("records")
    assert [row["owner"] for row in rows] == ["reader 3", "reader 2"], "runs come first"
    assert [row["size"] for row in rows] == ["409 kB", "9.00 MB"], "not what they count at least"
    assert [row["last used"] for row in rows] == ["60 min ago", "2.0 h ago"]
    assert "love" not in f"{rows} {said(at)}"
    at.session_state[str(table.key)] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    press(at.run(), "admin_delete_uploads")
    assert (theirs.exists(), only_uploads.exists()) == (False, True)


def test_active_pages_are_listed_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    work = Mock(owner=OTHER, page="heads", waits=False, began=time.monotonic(), number=7)
    work.stop = lambda: ended.append(7)
    monkeypatch.setattr(server_activity, "at_work", lambda: [work])
    at = opened()
    assert "1 running or queued" in said(at)
    (row,) = at.dataframe[0].value.to_dict("records")
    assert (row["owner"], row["page"], row["state"]) == ("reader 2", "heads", "running")
    press(at, "admin_stop_pages")
    assert ended == [7]
