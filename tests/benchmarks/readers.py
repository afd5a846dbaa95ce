"""What readers without a browser cost the server: the time of an answer, crowds, memory."""

import asyncio
import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from explorer.runs.run import Run, create
from explorer.runs.spec import DONE, RunSpec, Status
from explorer.system.atomic_files import write_json
from explorer.system.data_folders import shipped_root
from explorer.tasks import TASKS
from explorer.tasks.bundled_text import PLAYS
from tests import proxy
from tests.benchmarks.driver import (
    BARE,
    Acts,
    a_page_of,
    an_app,
    another_head,
    ask,
    core_seconds,
    crowd_of,
    megabytes_of,
    readers_of,
    whole_page,
)
from tests.benchmarks.measuring import (
    NotMeasured,
    Row,
    at_most,
    by_turns,
    compared,
    milliseconds,
    quantile,
    spread,
    within,
)
from tests.proxy import Replicas
from tests.reader import Reader
from tests.served import Server

READERS, P95, FULL_P50 = 50, 0.150, 0.014
AT_REPLICAS, REPLICAS_P95 = 100, 0.250
CONNECTED, ACTIVE, MOST_MEGABYTES = 200, 20, 350
FURTHER = 20
WALKERS, WALK_SECONDS, MOST_WALKED = 10, 480, 700
WALKED = (
    *("overview", "tokens", "embedding_space", "positions", "attention", "head_circuits"),
    *("query_key", "forward_pass", "logit_lens", "generation", "circuits", "interventions"),
    *("compare", "training", "museum"),
)
"""Pages, all but those that only list what is there."""
MANY, FEW = 10_000, 10
LINES, OTHERS = "range(21)", 3
"""Of the bare page: its lines of text, and its other elements."""
IMPORTS_TORCH = """
import streamlit as st
import torch

st.title(torch.__version__)
"""


def one_answer() -> Iterator[Row]:
    """Core time on both sides, by turns."""
    with an_app() as ours, a_bare_page_like(ours) as bare:
        mine, theirs = partial(core_seconds, ours, "attention"), partial(core_seconds, bare, "")
        (found,) = by_turns(mine, theirs, rounds=5)
    reference = "of a bare Streamlit page of as many elements"
    yield compared("server time of one answer, another head", found, reference, 2.0)


@contextmanager
def a_bare_page_like(server: Server) -> Iterator[Server]:
    """It has as many elements as Attention maps, with the navigation and the bar."""

    async def elements() -> int:
        async with readers_of(server.url, "attention", 1) as (reader,):
            return len((await ask(reader)).elements)

    with a_page_of(BARE.replace(LINES, f"range({asyncio.run(elements()) - OTHERS})")) as bare:
        yield bare


def many_runs() -> Iterator[Row]:
    """The same where many runs were trained, beside where few were."""
    with an_app() as much, an_app() as little:
        put(much.runs, MANY)
        put(little.runs, FEW)
        mine, theirs = (partial(core_seconds, each, "attention") for each in (much, little))
        (found,) = by_turns(mine, theirs, rounds=5)
    yield compared(f"server time of one answer with {MANY:,} runs", found, f"with {FEW}", 1.1)


def put(root: Path, count: int) -> None:
    """So many finished runs, each a folder of its own, all with the shipped model's weights."""
    task = TASKS["reverse"]
    first = create(root, RunSpec("reverse", task.model, task.training))
    write_json(first.folder / "status.json", Status(DONE, 400, 400).to_dict())
    for number in range(1, count + 1):
        run = Run(root / f"reverse-{number}")
        if number > 1:
            run.folder.mkdir()
            for name in ("spec.json", "status.json"):
                (run.folder / name).hardlink_to(first.folder / name)
        (run.folder / "checkpoint").symlink_to(shipped_root() / "reverse")


def fifty() -> Iterator[Row]:
    """Each changes the head once a second; beside one who does the same alone."""

    alone, together = asyncio.run(crowds("attention", another_head))
    p95, reference = quantile(together, 0.95), quantile(alone, 0.95)
    what = f"{READERS} readers changing heads once a second"
    beside, goal = f"p95 {milliseconds(reference)} of one reader", f"p95 ≤ {milliseconds(P95)}"
    yield Row(what, spread(together), beside, p95 / reference, goal, p95 <= P95)


def whole_pages() -> Iterator[Row]:
    """Each types, turns to another page and back, once a second."""
    alone, together = asyncio.run(crowds("", whole_page))
    what = "a full run of the start page and another, once a second"
    yield within(f"{what}, one reader", alone, p50=FULL_P50)
    yield within(f"{what}, {READERS} readers", together, p95=REPLICAS_P95)


async def crowds(page: str, act: Acts) -> tuple[list[float], list[float]]:
    """Seconds of one reader alone, and of all together."""
    with an_app() as server:
        async with readers_of(server.url, page, READERS) as readers:
            return await crowd_of(readers[:1], act), await crowd_of(readers, act)


def replicas() -> Iterator[Row]:
    """A hundred readers, each of whom changes the head once a second."""

    async def crowd() -> list[float]:
        async with readers_of(both.url, "attention", AT_REPLICAS) as readers:
            return await crowd_of(readers)

    try:
        proxy.ensure()
    except proxy.NoNginx as error:
        raise NotMeasured(str(error)) from error
    with two_replicas() as both:
        seconds = asyncio.run(crowd())
    what = f"{AT_REPLICAS} readers changing heads once a second, two replicas behind nginx"
    yield within(what, seconds, p95=REPLICAS_P95)


@contextmanager
def two_replicas() -> Iterator[Replicas]:
    """They share a folder of runs, which is gone afterwards; no run of a page may fail."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        servers = [Server(folder / "runs", env=proxy.SHARED) for _ in range(2)]
        for server in servers:
            stack.enter_context(server)
        yield stack.enter_context(proxy.before(servers, folder / "proxy"))
        for server in servers:
            assert not server.tracebacks, server.tracebacks[0]


def connected() -> Iterator[Row]:
    """Two hundred have the page open, and twenty of them change the head once a second."""

    async def crowd() -> tuple[list[float], float]:
        async with readers_of(server.url, "attention", CONNECTED) as readers:
            return await crowd_of(readers[:ACTIVE]), await megabytes_of(server)

    with an_app() as server:
        seconds, held = asyncio.run(crowd())
    who = f"{CONNECTED} readers connected, {ACTIVE} of them changing heads once a second"
    yield within(who, seconds, p95=P95)
    goal, met = f"≤ {MOST_MEGABYTES} MB", held <= MOST_MEGABYTES
    yield Row("the same: server memory", f"{held:.0f} MB", goal=goal, met=met)


def memory() -> Iterator[Row]:
    """Beside a bare Streamlit app that imports torch; then what each further reader adds."""
    with a_page_of(IMPORTS_TORCH) as server:
        bare, _ = asyncio.run(one_and_further(server, "", 0))
    with an_app() as server:
        one, many = asyncio.run(one_and_further(server, "attention", FURTHER))
    reference = f"{bare:.0f} MB of a bare Streamlit app that imports torch"
    yield at_most("server memory with one reader", f"{one:.0f} MB", reference, one / bare, 1.5)
    each, what = (many - one) / FURTHER, f"server memory of each further reader, {FURTHER} of them"
    beside = f"{one:.0f} MB with one reader"
    yield Row(what, f"{each:.2f} MB", beside, each / one, "≤ 2 MB", each <= 2)


def walking() -> Iterator[Row]:
    """Ten readers who turn pages for eight minutes, each with another model and sentence."""
    with an_app() as server:
        held, pages = asyncio.run(walked(server))
    what = f"server memory after {WALKERS} readers × {WALK_SECONDS // 60} min × {len(WALKED)} pages"
    goal, met = f"≤ {MOST_WALKED} MB", held <= MOST_WALKED
    yield Row(what, f"{held:.0f} MB", f"{pages:,} pages", goal=goal, met=met)


async def walked(server: Server) -> tuple[float, int]:
    """Megabytes afterwards, and the number of pages that all readers have seen."""
    end = asyncio.get_running_loop().time() + WALK_SECONDS
    walks = [walk(server.url, random.Random(seed), end) for seed in range(WALKERS)]
    pages = sum(await asyncio.gather(*walks))
    return await megabytes_of(server), pages


async def walk(url: str, choice: random.Random, end: float) -> int:
    models, words = [folder.name for folder in shipped_root().iterdir()], PLAYS.text.split()
    pages = 0
    async with readers_of(url, choice.choice(WALKED), 1) as (reader,):
        while asyncio.get_running_loop().time() < end:
            text = " ".join(choice.choices(words, k=choice.randint(4, 40)))
            reader.query = urlencode({"model": choice.choice(models), "text": text})
            assert not (await reader.turn_to(choice.choice(WALKED))).failures
            pages += 1
    return pages


async def one_and_further(server: Server, page: str, further: int) -> tuple[float, float]:
    """Megabytes with one reader, and with further ones beside it."""
    async with readers_of(server.url, page, 1) as first:
        one = await looked_around(server, first)
        async with readers_of(server.url, page, further) as others:
            return one, await looked_around(server, others)


async def looked_around(server: Server, readers: list[Reader]) -> float:
    """Megabytes that the server process holds once these readers have seen both heads twice."""
    for reader in readers:
        for head in (1, 0, 1, 0) if reader.page else ():
            await reader.pick_head(head)
    return await megabytes_of(server)
