"""The finder of a Chromium, on machines that have one, could have one, or cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import chromium


def put(folder: Path, name: str, exit_code: int = 0) -> str:
    """A program of this name on the bare machine's path."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A machine without any Chromium, and what it was asked to run.

    Playwright's own can be had, the system's whole package too, not the one without windows.
    """
    own, asked = tmp_path / "own", []
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("EXPLORER_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "BUNDLES", ())
    monkeypatch.setattr(chromium, "playwrights_own", lambda: str(own / "chrome"))

    def install(command: list[str]) -> bool:
        asked.append(command)
        if command[-2:] == ["install", "chromium"]:
            put(own, "chrome")
        elif "install" in command:
            if command[-1] == chromium.SHELL:
                return False
            put(tmp_path, command[-1])
        return True

    monkeypatch.setattr(chromium, "run", install)
    return asked


def test_one_chosen_by_hand_comes_before_the_systems_and_a_stub_is_passed_over(
    asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "chromium", exit_code=1)
    path = put(tmp_path, "google-chrome")
    assert chromium.ensure() == path
    chosen = put(tmp_path / "elsewhere", "my-chrome")
    monkeypatch.setenv("EXPLORER_CHROMIUM", chosen)
    assert chromium.ensure() == chosen
    assert not asked


def test_the_systems_package_is_installed_and_without_rights_playwrights_own(
    asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert chromium.ensure() == str(tmp_path / "own" / "chrome")
    assert [command[1:] for command in asked] == [["-m", "playwright", "install", "chromium"]]
    (tmp_path / "own" / "chrome").unlink()
    asked.clear()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert chromium.ensure() == str(tmp_path / "chromium")
    assert [command[-1] for command in asked] == ["update", chromium.SHELL, "chromium"]


def test_where_nothing_helps_one_sentence_says_what_to_do(
    asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "run", lambda command: False)
    with pytest.raises(chromium.NoChromium, match=r"install Chromium or Google Chrome"):
        chromium.ensure()
