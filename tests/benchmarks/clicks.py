"""A click in the running app: from the browser's own time stamp of it until the answer is painted.

A real browser, the models that ship with the app, whole pages: the click goes to the server,
the page's script runs there, and the browser draws what comes back; another head of a small pass
is drawn by the browser alone. The same is done by a bare Streamlit page of as many elements,
whose clicks tell how fast the machine is.
"""

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

from playwright.sync_api import FilePayload, expect

from explorer.analysis.forward_pass.stages import stages_of
from explorer.catalog import opened_model
from explorer.catalog.pretrained_models import FIRST
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from explorer.views.shared.tokenizer_source import FILE
from models import Transformer, save_checkpoint
from tests.benchmarks import driver
from tests.benchmarks.learning import MERGES, made_up
from tests.benchmarks.measuring import Row, at_most, milliseconds, quantile, spread, within
from tests.benchmarks.published import LLAMA
from tests.benchmarks.readers import READERS
from tests.browser.visiting import Visitor
from tests.served import Server
from tests.tiny import reading

SERVED_GOALS, DRAWN_HERE_GOALS = {"p50": 0.150, "p95": 0.400}, {"p50": 0.040, "p95": 0.080}
"""p50 and p95 of an answer by the server, and of one by the browser alone."""
LARGE = "large"
CLICKS = 24
"""For each model; its heads are clicked in turn, so the first time on each counts too."""
WALKED, BACK = "translation", 8
"""Forward by the space bar through every stage of both stacks, each for the first time, and
so many back by clicks."""
STEPS = 10
"""Of the first merges, and as many of the last."""

Clicks = Callable[[Visitor], Iterable[float]]


def another_head() -> Iterator[Row]:
    ways = [partial(on_heads, model) for model in ("shakespeare", "translation", LARGE)]
    what = "another head, of toy models and of SmolLM2's sizes at 32 tokens, click to paint"
    with models_with_a_large_one() as folder_of_models:
        env = {"EXPLORER_EXAMPLES": str(folder_of_models)}
        yield beside_a_bare_page(what, *ways, goals=DRAWN_HERE_GOALS, env=env)
        what += f", while {READERS} others change heads once a second"
        yield beside_a_bare_page(what, *ways, goals=DRAWN_HERE_GOALS, others=READERS, env=env)


def one_stage() -> Iterator[Row]:
    ways = [partial(on_stages, stack) for stack in ("encoder", "decoder")]
    yield beside_a_bare_page("one step through the forward pass, key or click to paint", *ways)


def one_merge() -> Iterator[Row]:
    what = f"one of {MERGES:,} merges trained on 1 MB, key to rest"
    yield beside_a_bare_page(what, on_merges, goals={})


def beside_a_bare_page(
    what: str,
    *ways: Clicks,
    goals: Mapping[str, float] = SERVED_GOALS,
    others: int = 0,
    env: Mapping[str, str] | None = None,
) -> Row:
    taken: list[float] = []
    with driver.a_browser() as browser, driver.an_app(env=env) as server:
        with others_at(server, others):
            for way in ways:
                with driver.a_visitor(browser, server) as visitor:
                    taken += way(visitor)
        with driver.a_page_of(driver.BARE) as bare, driver.a_visitor(browser, bare) as visitor:
            reference = quantile(list(on_a_bare_page(visitor)), 0.5)
    beside = f"p50 {milliseconds(reference)} of a bare Streamlit page"
    return within(what, taken, beside, quantile(taken, 0.5) / reference, **goals)


def head_of_smollm2() -> Iterator[Row]:
    """A click in each model by turns, in two browsers of one server."""
    with (
        driver.an_app_with_smollm2() as server,
        driver.a_browser() as browser,
        driver.a_visitor(browser, server) as visitor,
        driver.a_visitor(browser, server) as other,
    ):
        pairs = zip(on_heads(FIRST, visitor), on_heads("shakespeare", other), strict=True)
        ours, toy = map(list, zip(*pairs, strict=True))
    p50, reference = quantile(ours, 0.5), quantile(toy, 0.5)
    what = f"another head of SmolLM2, {CLICKS} clicks to paint"
    beside = f"p50 {milliseconds(reference)} of a toy with 2 × 4 heads"
    yield at_most(what, spread(ours), beside, p50 / reference, 1.0)


@contextmanager
def models_with_a_large_one() -> Iterator[Path]:
    """A model of random weights with SmolLM2's layers, heads and widths, which reads letters."""
    letters = character_tokenizer("ab ", DECODER)
    run = {"title": LARGE, "example": "ab" * 15 + " "}  # 32 tokens with that which begins it
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        model, path = Transformer(reading(letters, LLAMA)), Path(folder) / LARGE
        save_checkpoint(path, model, tokenizer=letters.to_json(), run=run)
        yield path.parent


@contextmanager
def others_at(server: Server, count: int) -> Iterator[None]:
    """Meanwhile so many change heads once a second."""
    here, ended = Event(), Event()

    async def change() -> None:
        async with driver.readers_of(server.url, "attention", count) as readers:
            here.set()
            while not ended.is_set():
                await driver.crowd_of(readers)

    thread = Thread(target=lambda: asyncio.run(change()))
    if count:
        thread.start()
        here.wait(120)
    try:
        yield
    finally:
        ended.set()
        if count:
            thread.join()


def on_a_bare_page(visitor: Visitor) -> Iterator[float]:
    """Every click changes one word of a page that does nothing else."""
    page, shown = visitor.open("/"), visitor.widget("shown")
    page.evaluate(driver.LISTEN)
    for turn in range(CLICKS):
        head = str(1 - turn % 2)
        button = page.get_by_role("radio", name=head, exact=True)
        yield driver.seconds_of(button.click, shown, driver.CHANGED)
        expect(shown).to_have_text(f"head {head}")
        visitor.rest()


def on_heads(model: str, visitor: Visitor) -> Iterator[float]:
    """Every click is on the overview, each in another layer than the one before."""
    page = visitor.open(f"/attention?model={model}&layer=0&head=0&view=Matrix")
    visitor.drawn("overview")
    visitor.drawn("attention_head")
    view = visitor.widget("attention_head").locator("[data-painted]").first
    page.evaluate(driver.LISTEN)
    name = str(page.locator(".view.grid canvas").get_attribute("aria-label"))
    layers, heads = map(int, re.findall(r"\d+", name)[-2:])
    for at in islice(count(1), CLICKS):
        layer, head = at % layers, at // layers % heads
        before = visitor.picture("attention_head")
        pick = partial(visitor.pick, "overview", layer=layer, head=head)
        yield driver.seconds_of(pick, view, driver.ANOTHER)
        assert visitor.picture("attention_head") != before, "no other head was painted"
        expect(page.get_by_text(re.compile(rf"Layer {layer}, head {head}\b")).first).to_be_visible()
        visitor.rest()


def on_stages(stack: str, visitor: Visitor) -> Iterator[float]:
    """Every step through one stack, from its embedding to its end, and some back."""
    names = [stage.name for stage in stages_of(opened_model.open_model(WALKED).config)]
    first = names.index(f"{stack}.embed")
    last = (names.index("decoder.tokens") if stack == "encoder" else len(names)) - 1
    page = visitor.open(f"/forward_pass?model={WALKED}&stage={stack}.embed")
    visitor.drawn("stage_values")
    stages = visitor.widget("stage_list")
    on = partial(page.keyboard.press, " ")
    back = stages.get_by_role("button", name="Back", exact=True).click
    page.evaluate(driver.LISTEN)
    way: list[tuple[Callable[[], object], int]]
    way = [(on, at) for at in range(first + 1, last + 1)]
    way += [(back, at) for at in range(last - 1, last - 1 - BACK, -1)]
    for act, at in way:
        view = visitor.widget("stage_values").locator("[data-painted]").first
        yield driver.seconds_of(act, view, driver.PAINTED)
        expect(stages.locator(".where")).to_have_text(f"{at + 1} of {len(names)}")
        visitor.rest()


def on_merges(visitor: Visitor) -> Iterator[float]:
    """The first merges of a megabyte of text, then back from the last."""
    asked = {"learn_from": FILE, "learn_rules": MERGES, "learn_step": 0}
    page = visitor.open(f"/tokenizer_training?{urlencode(asked)}")
    mine = FilePayload(name="mine.txt", mimeType="text/plain", buffer=made_up().encode())
    page.locator("input[type=file]").set_input_files(mine)
    page.evaluate(driver.LISTEN)
    app = page.get_by_test_id("stApp")
    visitor.drawn("learn_step_steps")
    for begin, key, by in ((0, "ArrowRight", 1), (MERGES, "ArrowLeft", -1)):
        if begin:
            visitor.widget("learn_step_steps").get_by_role("slider").press("End")
        expect(page.get_by_text(f"Merges: {begin:,} of {MERGES:,}")).to_be_visible()
        visitor.rest()
        page.get_by_role("heading", level=1).click()
        for step in range(1, STEPS + 1):
            yield driver.seconds_of(partial(page.keyboard.press, key), app, driver.RESTED)
            expect(page.get_by_text(f"Merges: {begin + by * step:,} of {MERGES:,}")).to_be_visible()
            visitor.rest()
