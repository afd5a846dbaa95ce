"""A page that nobody clicks on asks for nothing, whatever state the runs on it are in."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from explorer.app import session
from explorer.app.session import MOST_REDRAWS, Session
from explorer.components.fragment import SHORTEST
from explorer.runs.run import Run
from explorer.runs.spec import TRAINING, WAITING, RunNotes
from tests import apps
from tests.tiny import tiny_run, trained_run
from tests.views.drawing import PAGES, path_of, run_parts
from tests.views.fake_cluster import FakeCluster

RACE = RunNotes(sweep="0123456789ab", sweep_title="a race")
STATES = ("waiting", "queued", "interrupted", "damaged", "gone", "done")
QUICK = [
    *(("training/training", state) for state in STATES),
    *((f"training/{page}", "queued") for page in ("runs", "training_history", "inside_training")),
]
ALL = [(path_of(page), state) for page in PAGES for state in STATES]
REST = [each for each in ALL if each not in QUICK]
VISITS = [*QUICK, *(pytest.param(*each, marks=pytest.mark.thorough) for each in REST)]


@pytest.fixture
def reruns(at_the_machine: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a page asks to be drawn again; it asks for no clock of less than a second."""
    reruns, again, part = list[str](), st.rerun, st.fragment

    def rerun(scope: str = "app") -> None:
        reruns.append(scope)
        again(scope)

    def fragment(draw: Any, run_every: float | None = None, **how: Any) -> Any:
        assert run_every is None or run_every >= SHORTEST
        return part(draw, run_every=run_every, **how)

    monkeypatch.setattr(st, "rerun", rerun)
    monkeypatch.setattr(st, "fragment", fragment)
    return reruns


def in_state(state: str, root: Path) -> Run:
    run = trained_run(root)
    run.note(RACE)
    if state in ("waiting", "queued"):
        run.mark(WAITING)
    elif state == "interrupted":
        run.mark(TRAINING)
    elif state == "damaged":
        (run.folder / "status.json").write_text('{"state":')
    elif state == "gone":
        tiny_run(root).note(RACE)
        shutil.rmtree(run.folder)
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run in each state, which no test may change."""
    root = tmp_path_factory.mktemp("runs")
    return {state: in_state(state, root) for state in STATES}


@pytest.mark.parametrize(("path", "state"), VISITS)
def test_a_page_that_nothing_happens_to_is_drawn_once(
    path: str,
    state: str,
    runs: dict[str, Run],
    cluster: FakeCluster,
    reruns: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside runs in the other states; the page of all runs shows them at once."""
    monkeypatch.setenv("EXPLORER_RUNS", str(runs[state].folder.parent))
    cluster.sent.append(runs["queued"].name)
    name, all_names = runs[state].name, [run.name for run in runs.values()]
    address: dict[str, Any] = {"run": name, "model": name, "runs": all_names}
    for view in ("All runs", "Races and sweeps") if path == "training/runs" else ("",):
        at = apps.page(path, **address, **({"runs_view": view} if view else {}))
        if path == "training/training" and state in ("waiting", "interrupted"):
            assert "interrupted" in apps.said(at)
            assert not at.button(key="resume").disabled
        reruns.clear()
        run_parts(apps.run(at))
        assert reruns == []


def test_a_chosen_run_that_another_tab_deletes_leaves_the_table_in_peace(
    cluster: FakeCluster, reruns: list[str], tmp_path: Path
) -> None:
    kept, gone = tiny_run(tmp_path), tiny_run(tmp_path)
    at = apps.page("training/runs", runs=[kept.name, gone.name])
    shutil.rmtree(gone.folder)
    apps.run(at)
    assert reruns == []


def test_a_page_follows_what_changes_and_only_that(reruns: list[str]) -> None:
    at = AppTest.from_function(followed_page).run()
    run_parts(at)
    assert reruns == []
    at.session_state["news"] = 2
    run_parts(at)
    assert reruns == ["app"]


def followed_page() -> None:
    import streamlit as st

    from explorer.components.fragment import watch

    news = st.session_state
    watch(lambda: news.get("news"), every=0.01)


def test_a_page_that_always_asks_again_is_drawn_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, times = Session(page="runs"), []
    monkeypatch.setattr(session, "session", lambda: reader)
    monkeypatch.setattr(st, "rerun", lambda: times.append(1))
    for _ in range(10 * MOST_REDRAWS):
        session.redraw()
    assert len(times) == MOST_REDRAWS
