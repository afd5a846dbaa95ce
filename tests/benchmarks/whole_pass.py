"""The picture of the whole pass: its first paint, message, shares, motion and memory; programs.

Speed is measured on SmolLM2-135M-Instruct, a pretrained model: 30 layers of 9 heads. Where
only the arithmetic counts, a model of random weights and the same sizes does.
"""

import asyncio
import random
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import expect

from explorer.analysis.head_programs import measure_programs, read_lines
from explorer.analysis.information_flow import information_flow, route
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.pretrained_models import FIRST
from explorer.components import pass_map as drawing
from explorer.components.pass_map import PassMap
from explorer.inference.forward_pass import run_batch_uncached
from explorer.inference.results_cache import forget
from explorer.tasks.bundled_text import PLAYS
from explorer.views.overview.map_choices import LEAST, LEAST_USUAL
from explorer.views.overview.pass_picture import picture_of
from models import Transformer, trace
from tests.benchmarks import drawings, driver, peers
from tests.benchmarks.measuring import (
    Row,
    at_most,
    by_turns,
    compared,
    milliseconds,
    quantile,
    timed,
    within,
)
from tests.benchmarks.pictures import ROUNDS, hover, last_paint, see
from tests.benchmarks.published import LLAMA, a_pass, ids
from tests.browser.visiting import Visitor, box_of
from tests.served import Server

LAYERS, TOKENS, KEY = 30, 32, "pass_map"
SENTENCES, SEEN = 20, 4
SENTENCE = (
    "When Mary and John went to the store, John gave a drink to Mary, and when the two of them "
    "came home she said that she was tired of it"
)
"""Of 32 tokens."""
WORDS = (
    "the a one this his her my our your their man woman boy girl dog cat house river book door "
    "king city day night year hand head world school street saw heard found took gave held made "
    "left knew wanted and but when because while after before old young small large white black"
).split()
"""Each is one token of SmolLM2 where a space stands before it."""


def sentences(count: int, tokens: int = TOKENS) -> list[str]:
    """Different ones of so many tokens of SmolLM2."""
    chosen = random.Random(0)
    return [" ".join(chosen.choices(WORDS, k=tokens)) for _ in range(count)]


smollm2_open = partial(driver.visiting, driver.an_app_with_smollm2)


@cache
def opened() -> OpenModel:
    return open_checkpoint(driver.models_with_smollm2() / FIRST, FIRST)


ARRIVED = Path(__file__).with_name("map_arrived.js").read_text("utf-8")

UNTIL_ARRIVED = """() => new Promise(come => {
  const look = () => window.arrived ? come(window.arrived) : setTimeout(look, 20);
  look();
})"""


def first_paint() -> Iterator[Row]:
    with (
        driver.a_browser() as browser,
        driver.an_app() as ours,
        driver.a_page_of(driver.BARE) as bare,
        driver.a_visitor(browser, ours) as reader,
        driver.a_visitor(browser, bare) as other,
    ):
        for each in (reader, other):
            each.context.add_init_script(ARRIVED)
        (found,) = by_turns(partial(arrives, reader), partial(arrives, other), ROUNDS)
    what = "first paint of the map, toy model, server warm: from the navigation"
    beside = f"{milliseconds(found.reference)} of a bare Streamlit page"
    yield at_most(what, milliseconds(found.ours), beside, found.times, 1.5)


def arrives(visitor: Visitor) -> list[float]:
    return [visitor.load("/").evaluate(UNTIL_ARRIVED) / 1000]


def message() -> Iterator[Row]:
    (forward,) = run_batch_uncached(opened(), (SENTENCE,))
    assert len(forward.tokens) == TOKENS
    picture = picture_of(opened(), forward)
    data = drawing.encode(picture, KEY, SENTENCE, TOKENS - 1)
    limit, size = 150_000, len(data)
    what = f"the map of SmolLM2 at {TOKENS} tokens"
    yield Row(f"{what}: bytes of its message", f"{size:,}", goal="≤ 150 kB", met=size <= limit)
    for least in (LEAST_USUAL, LEAST[0]):
        edges = carrying(picture, least)
        with tempfile.TemporaryDirectory() as folder:
            choice = [TOKENS - 1, -1, -1, least, -1, -1, *[-1] * 5]
            view = drawing._VIEW.offline(KEY, data, 620, choice)
            ours = drawings.written(view, Path(folder), "map")
            theirs = drawings.plotly_edges(peers.scripts()["plotly.min.js"], edges, Path(folder))
            see(ours)
            see(theirs)
            whole, handed = by_turns(partial(last_paint, ours), partial(last_paint, theirs), ROUNDS)
        mine = f"{milliseconds(handed.ours)} ({whole.times:.2f} × from the navigation on)"
        beside = f"{milliseconds(handed.reference)} of Plotly's SVG of the same edges"
        at = f"{what}, its {len(edges)} edges from {least:.1%}: message to last paint"
        yield at_most(at, mine, beside, handed.times, 0.1)


def carrying(picture: PassMap, least: float) -> list[tuple[int, int, int, float]]:
    """Layer, query, key and importance of the edges that the map draws from this importance on."""
    traced = route(picture.flow, picture.flow.starts[-1]).edges["decoder.self_attn"]
    found = (traced >= least).nonzero().tolist()
    return [(at, q, k, float(traced[at, q, k])) for at, q, k in found if q != k]


def shares() -> Iterator[Row]:
    """Of random weights of the same sizes: the arithmetic is the same."""
    model, text = Transformer(LLAMA.replace(max_len=TOKENS)).eval(), ids(TOKENS) % LLAMA.vocab_size
    passed = partial(a_pass, model, text)
    found = timed(partial(information_flow, passed()), passed)
    what = f"all shares of {LAYERS} layers at {TOKENS} tokens, the pass kept"
    yield compared(what, found, "of that pass", 0.5)


def typing() -> Iterator[Row]:
    """From the Enter key behind a new sentence until its picture is painted."""
    with smollm2_open() as (visitor, _):
        taken = list(new_sentences(visitor))
    what = f"another sentence of {TOKENS} tokens to SmolLM2's map, key to paint"
    yield within(what, taken, p50=0.5)


def new_sentences(visitor: Visitor) -> Iterator[float]:
    first, *others = sentences(SENTENCES + 1)
    page = visitor.open(driver.address(first))
    visitor.drawn(KEY)
    page.evaluate(driver.LISTEN)
    field = page.get_by_label("Your sentence", exact=True)
    for text in others:
        view = visitor.widget(KEY).locator("[data-painted]").first
        field.fill(text)
        yield driver.seconds_of(partial(field.press, "Enter"), view, driver.PAINTED)
        says = f"{opened().title}: the forward pass over “{text}”"
        expect(visitor.widget(KEY).locator("canvas")).to_have_attribute("aria-label", says)
        visitor.rest()


PLAYED = Path(__file__).with_name("map_played.js").read_text("utf-8")


def frames() -> Iterator[Row]:
    """Every frame of the page while the pass plays once, in software."""
    with smollm2_open() as (visitor, _):
        visitor.page.emulate_media(reduced_motion="no-preference")
        visitor.open(driver.address(SENTENCE))
        visitor.drawn(KEY)
        times = visitor.widget(KEY).locator(".play").evaluate(PLAYED)
    between = [later - sooner for sooner, later in pairwise(times)]
    rate = 1000 * len(between) / sum(between)
    longest = f"longest {quantile(between, 1):.0f} ms"
    what, ours = f"frames while SmolLM2's map at {TOKENS} tokens plays", f"{rate:.0f} a second"
    beside, goal = "60 a second", "≥ 50 a second"
    yield Row(what, f"{ours}, {longest}", beside, rate / 60, goal, rate >= 50)


def hovering() -> Iterator[Row]:
    """The script of a pointer on another token, and that of the frame that lights its paths."""
    with smollm2_open() as (visitor, _):
        visitor.open(driver.address(SENTENCE))
        visitor.drawn(KEY)
        asked: list[object] = []
        visitor.socket.on("framesent", lambda message: asked.append(message))
        view = visitor.widget(KEY)
        box = box_of(view.locator(".stage"))
        columns = [30 + (box["width"] - 60) * (at + 0.5) / TOKENS for at in range(TOKENS)]
        what = f"a token of SmolLM2's map at {TOKENS} tokens pointed at: script to the light"
        found = hover(what, view, ((x, box["height"] - 12) for x in columns))
    assert not asked, "a message was sent"
    yield found


def programs() -> Iterator[Row]:
    """The programs of all heads of SmolLM2, its passes included, beside these passes alone."""
    model, texts = opened(), [" ".join(PLAYS.text[at:][:360].split()) for at in range(0, 6000, 500)]
    lines = read_lines(model, texts)

    def described() -> None:
        forget(model)
        assert len(measure_programs(model, lines)) == 270

    def passes() -> None:
        trace(model.model, lines.ids.clamp(min=0), keep=lines.keep, sites=(), read_at=slice(0, 1))

    what = f"programs of 270 heads, SmolLM2, {len(lines.tokens)} lines of up to 64 tokens"
    yield compared(what, timed(described, passes, 3), "of the passes alone", 3)


def memory() -> Iterator[Row]:
    """Of the server: what the map of SmolLM2 takes beyond the map of a toy."""
    texts = [SENTENCE, *sentences(SEEN)]
    with driver.an_app() as server:
        toy = asyncio.run(held(server, ["model=translation"] * len(texts)))
    with driver.an_app_with_smollm2() as server:
        queries = [driver.address(text).removeprefix("/?") for text in texts]
        ours = asyncio.run(held(server, queries))
    size = next(opened().model.parameters()).element_size()
    weights = opened().bytes * 4 / size / driver.MEGABYTE
    more = ours - toy
    beside = f"{weights:.0f} MB of its weights in float32"
    what = "server memory with SmolLM2's map open, beyond that of the app with a toy"
    yield at_most(what, f"{more:.0f} MB", beside, more / weights, 1.3)


async def held(server: Server, queries: list[str]) -> float:
    """Megabytes of the server once a reader has seen these maps."""
    for query in queries:
        async with driver.readers_of(server.url, "", 1, query):
            pass
    return await driver.megabytes_of(server)
