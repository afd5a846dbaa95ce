"""What every test starts from, how thorough the run is, and what each folder of tests took."""

import gc
import logging
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
import torch
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.testing.v1 import app_test, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from tests import budget, checking, grids
from tests.browser import chromium
from tests.source import ROOT

# Keep bytecode, also where the machine is set to keep none: otherwise each process and each server
# compiles the same files, and rewrites the assertions of 250.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Every shape written in a signature of `models` can be checked on every call.
checking.install()

# Every AppTest would search all installed packages for components, though they do not change.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# It would also compile the page in each run, and hash messages that nobody is sent again.
local_script_runner.ScriptCache = app_test.ScriptCache = cache(ScriptCache)  # type: ignore
script_run_context.populate_hash_if_needed = lambda msg: None
# And imitate the whole runtime, of which a page asks for its browser alone: none is connected.
app_test.MagicMock = lambda spec: SimpleNamespace(get_client=lambda session: None)  # type: ignore


# And ask a thousand times a second whether the page is drawn, which takes time from the page.
def _wait_for_the_page(runner: LocalScriptRunner, timeout: float = 3) -> None:
    assert runner._script_thread is not None
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        runner.request_stop()
        raise RuntimeError(f"The page was not drawn within {timeout:g} s.")


local_script_runner.require_widgets_deltas = _wait_for_the_page

# Streamlit prints a line for each value that a test sets before the page is drawn.
logging.getLogger(script_run_context.__name__).setLevel(logging.ERROR)

torch.set_num_threads(int(os.environ.get("EXPLORER_TEST_THREADS", "1")))

# No downloaded model and no run that comes with the app is in a test's list, unless it says so.
os.environ["EXPLORER_EXAMPLES"] = os.devnull
os.environ["EXPLORER_RECORDED"] = os.devnull

TESTS = Path(__file__).parent
CORE, RUNS = TESTS / "models", TESTS / "runs"
LONGEST = ("browser", "components", "runs", "server", "pages", "views", "parity", "tests", "models")
"""Folders that begin first, in this order: what is left for the end is short."""

SLOWEST = 10
"""How many tests the summary names."""

# No deadline: an example may wait on a busy machine. The quick run draws the same examples
# every time, so what passes once passes again; the thorough one looks for new ones.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=1_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="whole grids instead of pairs, and a thousand examples instead of twenty",
    )


def pytest_configure(config: pytest.Config) -> None:
    grids.is_thorough = config.getoption("--thorough")
    hypothesis.settings.load_profile("thorough" if grids.is_thorough else "quick")
    if budget.LEDGER not in os.environ:  # in the process that starts the others
        descriptor, os.environ[budget.LEDGER] = tempfile.mkstemp(prefix="explorer-tests-")
        os.close(descriptor)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        Path(os.environ.pop(budget.LEDGER)).unlink(missing_ok=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files begin first; what only the thorough run needs is left out of others."""
    config.stash[budget.BROWSER_CASES] = Counter(
        budget.folder_of(item.nodeid)
        for item in items
        if item.get_closest_marker("browser") and not item.get_closest_marker("thorough")
    )
    left_out = {item for item in items if item.get_closest_marker("thorough")}
    if left_out and not config.getoption("--thorough"):
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    cases = Counter(item.path for item in items)
    turns = {folder: turn for turn, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: (turns.get(item.path.parent.name, len(turns)), -cases[item.path]))


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds by folder, summed over all processes; the slowest tests; what the budget lost."""
    seconds: dict[str, float] = defaultdict(float)
    slowest: dict[str, float] = defaultdict(float)
    cases: dict[str, int] = defaultdict(int)
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        if isinstance(report, pytest.SubtestReport):  # its seconds are in those of its test
            continue
        folder = Path(report.nodeid.partition("::")[0]).parent.as_posix()
        seconds[folder] += report.duration
        slowest[report.nodeid] += report.duration
        cases[folder] += report.when == "call"
    if not seconds:
        return
    terminalreporter.section("seconds by folder")
    for folder in sorted(seconds, key=lambda folder: -seconds[folder]):
        terminalreporter.line(f"{seconds[folder]:8.1f} s {cases[folder]:6,} cases  {folder}")
    terminalreporter.line(f"{sum(seconds.values()):8.1f} s {sum(cases.values()):6,} cases")
    terminalreporter.section("slowest tests")
    for test in sorted(slowest, key=lambda test: -slowest[test])[:SLOWEST]:
        terminalreporter.line(f"{slowest[test]:8.1f} s  {test}")
    allowed = budget.budget()
    for (folder, kind), count in sorted(budget.used().items()):
        terminalreporter.line(f"{count:4} of {allowed[folder][kind]:4} {kind}s in tests/{folder}")


@pytest.fixture(autouse=True)
def _shapes_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """In the core's own tests: a check takes longer than the small passes of all others."""
    checking.is_on = request.path.is_relative_to(CORE)
    yield
    checking.is_on = False


@pytest.fixture(autouse=True)
def _no_processes_that_train(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is drawn in a test's own process starts none; a server's does."""
    if not (request.path.is_relative_to(CORE) or request.path.is_relative_to(RUNS)):
        monkeypatch.setattr("explorer.runs.cluster.Cluster.start", lambda cluster: None)


@pytest.fixture(scope="session")
def _small_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.tiny import save_small_models  # knows `models`, whose shapes are to be checked

    return save_small_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def small_models(_small_models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The app has small untrained models, one of each kind, and no run; nobody may change them."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(_small_models))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return _small_models


@pytest.fixture
def letters(small_models: Path) -> Any:
    from explorer.catalog.opened_model import open_checkpoint

    return open_checkpoint(small_models / "letters", "letters")


@pytest.fixture
def at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader runs the server, and is shown the runs with plain names."""
    monkeypatch.setattr("explorer.app.reader.is_local", lambda: True)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models as the reference library saves them; nobody may change them."""
    from tests import tiny

    return tiny.save_reference_models(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def published_models(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are offered beside those of the app."""
    monkeypatch.setenv("EXPLORER_MODELS", str(published))


@pytest.fixture
def shipped_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(ROOT / "models/checkpoints"))


@pytest.fixture
def own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the models of the app, in which there is none."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for each process; fails in one sentence where there is none."""
    shared = tmp_path_factory.getbasetemp().parent  # of all processes of this run
    try:
        with FileLock(shared / "chromium.lock"):  # one process installs it, the others wait
            path = chromium.ensure()
    except chromium.NoChromium as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def shapes_unchecked() -> None:
    """For tests about words and files, and for long loops whose shapes another test checks."""
    checking.is_on = False
