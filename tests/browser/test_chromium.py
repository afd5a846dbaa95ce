"""The finder of a Chromium, on machines that have one, could have one, or cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import chromium


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A machine without any Chromium; the commands it was asked to run."""
    asked: list[list[str]] = []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("EXPLORER_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "BUNDLES", ())
    monkeypatch.setattr(chromium, "playwrights_own", lambda: str(tmp_path / "own" / "chrome"))

    def refuse(command: list[str]) -> bool:
        asked.append(command)
        return False

    monkeypatch.setattr(chromium, "run", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return asked


def put(folder: Path, name: str, exit_code: int = 0) -> str:
    """A program of this name on the bare machine's path."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(0o755)
    return str(program)


def test_the_systems_browser_is_taken(bare: list[list[str]], tmp_path: Path) -> None:
    path = put(tmp_path, "google-chrome")
    assert chromium.ensure() == path
    assert not bare


def test_one_chosen_by_hand_comes_first(
    bare: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "chromium")
    chosen = put(tmp_path / "elsewhere", "my-chrome")
    monkeypatch.setenv("EXPLORER_CHROMIUM", chosen)
    assert chromium.ensure() == chosen


def test_a_stub_that_does_not_start_is_passed_over(bare: list[list[str]], tmp_path: Path) -> None:
    put(tmp_path, "chromium", exit_code=1)
    path = put(tmp_path, "chrome")
    assert chromium.find() == path


@pytest.mark.parametrize("offered", [chromium.SHELL, "chromium"])
def test_the_systems_package_is_installed(
    offered: str, bare: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian has the one without windows too, Ubuntu the whole one only."""
    put(tmp_path, "apt-get")

    def install(command: list[str]) -> bool:
        bare.append(command)
        if "install" in command and command[-1] != offered:
            return False
        if "install" in command:
            put(tmp_path, offered)
        return True

    monkeypatch.setattr(chromium, "run", install)
    assert chromium.ensure() == str(tmp_path / offered)
    wanted = ["update", *dict.fromkeys([chromium.SHELL, offered])]
    assert [command[-1] for command in bare] == wanted
    assert all(command[2] == "apt-get" for command in bare)


def test_without_rights_playwrights_own_is_installed(
    bare: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def install(command: list[str]) -> bool:
        bare.append(command)
        if "playwright" in command:
            put(tmp_path / "own", "chrome")
        return True

    monkeypatch.setattr(chromium, "run", install)
    assert chromium.ensure() == str(tmp_path / "own" / "chrome")
    assert bare[-1][1:] == ["-m", "playwright", "install", "chromium"]
    assert not any("apt-get" in command for command in bare)


def test_where_nothing_helps_one_sentence_says_what_to_do(bare: list[list[str]]) -> None:
    with pytest.raises(chromium.NoChromium, match=r"install Chromium or Google Chrome"):
        chromium.ensure()
