"""The package that pip, pipx and uv install: what is in it, and what its command does."""

import argparse
import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from explorer.__main__ import _parser
from explorer.app import open_app
from explorer.catalog import folders
from tests.package import COMMAND, built_wheel, installed
from tests.source import ROOT, files
from tests.test_requirements import required

INSIDE = {"app.py", "explorer", "models", "pages", ".streamlit", "README.md"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_holds_what_the_app_needs_below_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        (about,) = (name for name in opened.namelist() if name.endswith("/METADATA"))
        said = email.message_from_bytes(opened.read(about))
    needed = {path for path in files() if path.parts[0] in INSIDE}
    assert names == {f"attention_explorer/{path.as_posix()}" for path in needed}
    pins = {f"{name}=={pin}" for name, pin in required("requirements.txt").items()}
    assert {each.lower() for each in said.get_all("Requires-Dist", [])} == pins
    assert wheel.stat().st_size < 10_000_000


def test_its_command_runs_the_others_from_any_folder(tmp_path: Path) -> None:
    """As an installed one, it keeps what it makes in the user's folder, not among the packages."""
    packages = installed(tmp_path)
    kept = {name: each for name, each in os.environ.items() if not name.startswith("EXPLORER_")}
    homes = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA")}
    ran = subprocess.run(
        [*COMMAND, "train", "reverse", *"--layers 1 --heads 1 --d-model 8 --steps 1".split()],
        env=kept | homes | {"PYTHONPATH": str(packages)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "It opens in the app as reverse-1." in ran.stdout
    (run,) = tmp_path.rglob("reverse-1")
    assert run.is_relative_to(tmp_path)
    assert not run.is_relative_to(packages)


def test_a_checkout_keeps_what_it_makes_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_RUNS", raising=False)
    assert folders.runs_root() == ROOT / "runs"


def test_its_options_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("streamlit.web.cli.main", lambda **_: started.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["attention-explorer"])
    monkeypatch.setenv("EXPLORER_MODELS", "before")
    asked = "--port 8600 --address 0.0.0.0 --models a --models b --no-browser --theme.base dark"
    assert open_app.main(asked.split()) == 0
    ((run, script, *options),) = started
    assert (run, Path(script)) == ("run", ROOT / "app.py")
    assert options == [
        *("--server.port", "8600", "--server.address", "0.0.0.0"),
        *("--server.headless", "true", "--theme.base", "dark"),
    ]
    assert os.environ["EXPLORER_MODELS"] == os.pathsep.join(["before", "a", "b"])


def test_the_commands_that_its_help_names_are_there() -> None:
    (named,) = re.findall(r"\((.+) and others\)", str(open_app.parser().epilog))
    (there,) = (
        {*action.choices}
        for action in _parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert {*named.split(", ")} <= there
