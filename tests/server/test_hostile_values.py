"""A stranger says anything of the widgets of a page, or links to a hostile model: no error."""

import asyncio
from pathlib import Path

import psutil
import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from explorer.app.reader import new_key, owner_of
from explorer.catalog.available_models import brought_model
from explorer.catalog.uploads import Uploader, keep_upload
from explorer.runs.run import create
from explorer.runs.worker import train_to_end
from explorer.system.data_folders import uploads_root
from tests.calls import run_in_thread
from tests.reader import BIDI, Answer, Reader
from tests.served import Server
from tests.server.conftest import TOKEN
from tests.server.hostile_values import for_a_view, for_a_widget, for_events
from tests.server.test_head_alone import texts
from tests.source import python_files
from tests.tiny import million_positions, tiny_spec
from tests.views.test_damaged_runs import damage

PAGES = sorted(path.stem for path in python_files("pages"))
EVENTS_OF = "$$STREAMLIT_INTERNAL_KEY_{}__events"
"""What Streamlit calls that which happened in a view."""


def named(state: WidgetState, name: str) -> WidgetState:
    found = WidgetState()
    found.CopyFrom(state)
    found.id = name
    return found


def messages(page: Answer) -> list[list[WidgetState]]:
    """Each gives every widget of the page another value; together they give it all values."""
    elements = [(each.WhichOneof("type"), each) for each in page.elements]
    bodies = [(kind, getattr(each, kind)) for kind, each in elements if kind]
    names = {(kind, body.id) for kind, body in bodies if getattr(body, "id", "").startswith("$$")}
    views = sorted(name for kind, name in names if kind == BIDI)
    others = sorted({name for _, name in names}.difference(views))
    events = [EVENTS_OF.format(name) for name in views]
    values = [*for_a_widget()], [*for_a_view()], [*for_events()]
    pairs = [*zip((others, views, events), values, strict=True)]
    assert views or others, "the page has no widget"
    return [
        [named(of[(turn + at) % len(of)], name) for ids, of in pairs for at, name in enumerate(ids)]
        for turn in range(max(map(len, values)))
    ]


async def errors(url: str, runs: Path, every: int) -> list[str]:
    """The errors that the pages answer; a page gets one of so many messages: `every`."""
    drawn = {}
    for page in [*PAGES, "training", "inside_training"]:
        key, query = new_key(), ""
        run = create(runs, tiny_spec(), "", owner_of(key))
        if page in drawn:  # once more, with a run whose files are those of two runs
            train_to_end(run.folder)
            damage(run.folder / "spec.json", run.folder, "another task")
            query = f"run={run.name}&model={run.name}"
        reader = Reader(url, page="" if page == "overview" else page, query=query)
        reader.key = key
        await reader.open()
        drawn[page + query] = reader, await reader.act()
    reader, _ = drawn["administration"]
    token = WidgetState(id=reader.widgets["admin_token"].id, string_value=TOKEN)
    drawn["administration"] = reader, await reader.act(token)
    table = next(name for name in drawn["runs"][0].widgets if name.startswith("runs_"))
    assert {"admin_which", table} <= drawn["runs"][0].widgets.keys() | reader.widgets
    chosen = (slice(at % every, None, every) for at in range(len(drawn)))
    said = await asyncio.gather(*map(answers, drawn, drawn.values(), chosen))
    return [each for of_page in said for each in of_page]


async def answers(page: str, visited: tuple[Reader, Answer], chosen: slice) -> list[str]:
    """The errors of one page."""
    said, (reader, drawn) = [], visited
    for number, message in list(enumerate(messages(drawn)))[chosen]:
        reader.states = {}
        answer = await reader.act(*message)
        said += [f"{page}, message {number}: {each}" for each in answer.failures]
    await reader.close()
    return said


def test_values_that_no_browser_sends_end_in_no_error(
    app: Server, pytestconfig: pytest.Config
) -> None:
    """The quick run sends a tenth of the messages to each page, the thorough one all."""
    every = 1 if pytestconfig.getoption("--thorough") else 10
    assert run_in_thread(errors(app.url, app.runs, every)) == []
    assert app.tracebacks == []


LETTERS = "a" * 300
BYTES = 300_000_000
"""Less than what one pass over all tokens would take: eight billion."""


def uploaded(reader: Reader, folder: Path) -> str:
    """The name in links of a reader's model."""
    files = {f"model/{path.name}": path for path in folder.iterdir()}
    streams = {name: path.open("rb") for name, path in files.items()}
    sizes = {name: path.stat().st_size for name, path in files.items()}
    whose = Uploader("", owner_of(reader.key))
    kept = keep_upload(streams, sizes, uploads_root(), whose, lambda at: brought_model(at).fault)
    return brought_model(kept.folder).name


def test_row_1_one_link_to_a_long_text_ends_in_a_sentence(
    app: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13 KB and 300 letters were 27,000 tokens, 8 GB in 34 seconds, and the end of the server."""
    monkeypatch.setenv("EXPLORER_RUNS", str(app.runs))
    million_positions(tmp_path / "model")

    async def visit(page: str) -> Answer:
        reader = Reader(app.url, page=page)
        name = uploaded(reader, tmp_path / "model")
        reader.query = f"model={name}&text={LETTERS}"
        await reader.open()
        try:
            return await reader.act()
        finally:
            await reader.close()

    held = psutil.Process(app.pid).memory_info().rss
    for page in ("", "generation"):
        answer = run_in_thread(visit(page))
        assert "has 27,000 tokens; the limit is 4,096 tokens" in "\n".join(texts(answer)), page
        assert answer.failures == []
    assert psutil.Process(app.pid).memory_info().rss - held <= BYTES
    assert app.tracebacks == []
