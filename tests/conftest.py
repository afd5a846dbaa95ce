"""What every test starts from: torch keeps to one thread, and the core's shapes are checked."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch
from playwright.sync_api import Browser, sync_playwright

from tests.browser import chromium
from tests.side_by_side import FIGURE, held, tidy

if not os.environ.get("EXPLORER_MEASURING"):
    # Every shape written in a signature of `models` can be checked on every call. A
    # benchmark runs in a process of its own without this (tests/benchmarks/conftest.py).
    from jaxtyping import install_import_hook
    from streamlit.components.v2 import manifest_scanner

    from tests import checking

    install_import_hook("models", f"{checking.__name__}.check")

    # Every AppTest looks for components in all installed packages, which stay the same.
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)

torch.set_num_threads(1)

CORE, RUNS = (Path(__file__).parent / name for name in ("models", "runs"))

# On a busy machine any example may wait a moment: pytest's own time limit is the limit.
hypothesis.settings.register_profile("any pace", deadline=None)
hypothesis.settings.load_profile("any pace")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Of the process that started the others, when all of them have ended."""
    others = config.pluginmanager.get_plugin("dsession")
    manager = getattr(others, "nodemanager", None)
    if manager is not None:
        tidy(manager.testrunuid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the benchmarks measured; here, for the process that started the others collects none."""
    reports = terminalreporter.getreports("passed")
    figures = [
        str(value)
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == FIGURE and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line.strip().lstrip("."))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A benchmark has the machine alone; its waiting is outside of every time limit."""
    with held("machine", alone=item.get_closest_marker("bench") is not None):
        return (yield)


@pytest.fixture(autouse=True)
def _shapes_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the core's own tests: a check takes longer than the small passes of all others."""
    jaxtyping.config.update("jaxtyping_disable", not request.path.is_relative_to(CORE))
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _no_processes_that_train(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is drawn in a test's own process starts none; a server's does."""
    draws_no_page = request.path.is_relative_to(CORE) or request.node.get_closest_marker("bench")
    if not (draws_no_page or request.path.is_relative_to(RUNS)):
        monkeypatch.setattr("explorer.runs.cluster.Cluster.start", lambda cluster: None)


@pytest.fixture(scope="session")
def _small_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.shelf import shelf  # knows `models`, whose shapes are to be checked

    return shelf(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def small_models(_small_models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The app has small untrained models, one of each kind, and no run; nobody may change them."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(_small_models))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return _small_models


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole session; fails in one sentence where there is none."""
    try:
        with held("chromium", alone=True):
            path = chromium.ensure()
    except chromium.NoChromium as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield browser
        browser.close()
