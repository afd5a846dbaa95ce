"""The recipes of `.github`: least rights, fixed versions, and what the project says it runs on."""

import re
import tomllib
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.source import ROOT, files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


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
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    (recipe,) = recipes()
    assert recipe["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    commands = [step["run"] for step in steps(recipe) if "run" in step]
    last = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1]
    assert last.replace(".venv/bin/", "") in commands
    assert "pytest" in commands
