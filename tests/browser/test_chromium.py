"""The finder of a Chromium, on machines that have one, could have one, or cannot."""

import os
from pathlib import Path

import pytest

from tests.browser import chromium


def put(program: Path, exit_code: int = 0) -> str:
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Chromium, where none can be installed: the folder of its path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("EXPLORER_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "BUNDLES", ())
    monkeypatch.setattr(chromium, "playwrights_own", lambda: str(tmp_path / "own" / "chrome"))
    monkeypatch.setattr(chromium, "run", lambda command: False)
    return tmp_path


def test_the_chosen_one_is_first_and_no_stub(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(chromium.NoChromium, match=r"install Chromium or Google Chrome"):
        chromium.ensure()
    put(bare / "chromium", exit_code=1)
    systems = put(bare / "google-chrome")
    assert chromium.ensure() == systems
    chosen = put(bare / "elsewhere" / "my-chrome")
    monkeypatch.setenv("EXPLORER_CHROMIUM", chosen)
    assert chromium.ensure() == chosen


@pytest.mark.parametrize("is_root", [True, False])
def test_the_systems_package_is_installed_or_without_rights_playwrights_own(
    bare: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    """The package without windows is not everywhere: the whole one is next."""
    put(bare / "apt-get")
    asked: list[str] = []

    def install(command: list[str]) -> bool:
        asked.append(command[-1])
        if "install" not in command:
            return True
        if command[-1] == "chromium":
            put(bare / "chromium" if "apt-get" in command else bare / "own" / "chrome")
        return command[-1] == "chromium"

    monkeypatch.setattr(chromium, "run", install)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    assert chromium.ensure() == str(bare / "chromium" if is_root else bare / "own" / "chrome")
    assert asked == (["update", chromium.SHELL, "chromium"] if is_root else ["chromium"])
