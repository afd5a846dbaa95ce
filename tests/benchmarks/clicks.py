"""A click in the running app: from the browser's own time stamp of it until the answer is painted.

A real browser, the models that ship with the app, whole pages: the click goes to the server,
the page's script runs there, and the browser draws what comes back. The same is done by a bare
Streamlit page of as many elements, whose clicks tell how fast the machine is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from urllib.parse import urlencode

from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

from explorer import library
from explorer.analysis.walk import stages_of
from explorer.bench.learning_source import FILE
from tests.benchmarks.learning import RULES, made_up
from tests.benchmarks.places import BARE, a_browser, a_page_of, a_visitor, an_app
from tests.benchmarks.rows import Row, milliseconds, quantile, spread
from tests.served import Server

P50_GOAL, P95_GOAL = 0.150, 0.400
MODELS = ("shakespeare", "translation")
CLICKS = 24
"""For each model; its heads are clicked in turn, so the first time on each counts too."""
WALKED, STACKS, BACK = "translation", ("encoder", "decoder"), 8
"""Forward by the space bar through every stage of both stacks, each for the first time, and
so many back by clicks."""
STEPS = 10
"""Of the first rules, and as many of the last."""

LISTEN = """() => {
  window.begun = 0;
  const note = event => { window.begun = event.timeStamp; };
  for (const kind of ["click", "keydown"]) addEventListener(kind, note, {capture: true});
}"""
ANSWERED = """element => {
  window.answered = new Promise(done => new MutationObserver((_, watching) => {
    if (element.dataset.testScriptState && element.dataset.testScriptState !== "notRunning") return;
    watching.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - window.begun)));
  }).observe(element, OBSERVED));
}"""
"""From the event's own time stamp to the first task after the frame that has the answer."""
PAINTED = ANSWERED.replace("OBSERVED", '{attributes: true, attributeFilter: ["data-painted"]}')
CHANGED = ANSWERED.replace("OBSERVED", "{childList: true, characterData: true, subtree: true}")
RESTED = ANSWERED.replace(
    "OBSERVED", '{attributes: true, attributeFilter: ["data-test-script-state"]}'
)


def seconds_of(act: Callable[[], object], shown: Locator, answered: str) -> float:
    shown.evaluate(answered)
    act()
    taken: float = shown.page.evaluate("window.answered")
    return taken / 1000


def another_head() -> Iterator[Row]:
    what = "another head in the running app, click to paint"
    with a_browser() as browser, an_app() as server:
        yield beside_a_bare_page(
            what, [s for model in MODELS for s in clicks_on_heads(browser, server, model)], browser
        )


def one_stage() -> Iterator[Row]:
    what = "one step through the whole pass, key or click to paint"
    with a_browser() as browser, an_app() as server:
        yield beside_a_bare_page(
            what, [s for stack in STACKS for s in steps_of_stages(browser, server, stack)], browser
        )


def one_rule() -> Iterator[Row]:
    what = f"one of {RULES:,} rules learnt from 1 MB, key to rest"
    with a_browser() as browser, an_app() as server:
        yield beside_a_bare_page(what, steps_of_rules(browser, server), browser, goal=False)


def beside_a_bare_page(what: str, taken: list[float], browser: Browser, goal: bool = True) -> Row:
    with a_page_of(BARE) as nothing:
        bare = clicks_on_a_bare_page(browser, nothing)
    p50, p95, reference = quantile(taken, 0.5), quantile(taken, 0.95), quantile(bare, 0.5)
    return Row(
        what,
        spread(taken),
        f"p50 {milliseconds(reference)} of a bare Streamlit page",
        p50 / reference,
        f"p50 ≤ {milliseconds(P50_GOAL)}, p95 ≤ {milliseconds(P95_GOAL)}"
        if goal
        else "none: reported",
        p50 <= P50_GOAL and p95 <= P95_GOAL if goal else None,
    )


def clicks_on_a_bare_page(browser: Browser, server: Server) -> list[float]:
    """Seconds of every click that changes one word of a page that does nothing else."""
    taken = []
    with a_visitor(browser, server) as visitor:
        page, shown = visitor.open("/"), visitor.widget("shown")
        page.evaluate(LISTEN)
        for turn in range(CLICKS):
            head = str(1 - turn % 2)
            click = page.get_by_role("radio", name=head, exact=True).click
            taken.append(seconds_of(click, shown, CHANGED))
            expect(shown).to_have_text(f"head {head}")
            visitor.rest()
    return taken


def clicks_on_heads(browser: Browser, server: Server, model: str) -> list[float]:
    """Seconds of every click on the overview of a model, the first on each head among them."""
    taken = []
    with a_visitor(browser, server) as visitor:
        page = visitor.open(f"/attention?model={model}&layer=0&head=0&view=Matrix")
        visitor.drawn("overview")
        visitor.drawn("attention_head")
        view = visitor.widget("attention_head").locator("[data-painted]").first
        page.evaluate(LISTEN)
        for layer, head in islice(heads_of(page), CLICKS):
            before = visitor.picture("attention_head")
            taken.append(
                seconds_of(
                    lambda layer=layer, head=head: visitor.pick(  # type: ignore[misc]
                        "overview", layer=layer, head=head
                    ),
                    view,
                    PAINTED,
                )
            )
            assert visitor.picture("attention_head") != before, "no other head was painted"
            title = page.get_by_text(re.compile(rf"Layer {layer}, head {head}\b")).first
            expect(title).to_be_visible()
            visitor.rest()
    return taken


def heads_of(page: Page) -> Iterator[tuple[int, int]]:
    """All heads of the overview again and again, each in another layer than the one before."""
    names = str(page.locator(".view.grid canvas").get_attribute("aria-label")).split()
    layers, heads = int(names[0]), int(names[3])
    return ((at % layers, at // layers % heads) for at in count(1))


def steps_of_stages(browser: Browser, server: Server, stack: str) -> list[float]:
    """Seconds of every step through one stack, from its embedding to its end, and some back."""
    names = [stage.name for stage in stages_of(library.open_model(WALKED).config)]
    first = names.index(f"{stack}.embed")
    last = (names.index("decoder.tokens") if stack == "encoder" else len(names)) - 1
    taken: list[float] = []
    with a_visitor(browser, server) as visitor:
        page = visitor.open(f"/walk?model={WALKED}&stage={stack}.embed")
        visitor.drawn("walk_values")
        spine = visitor.widget("spine")
        back = spine.get_by_role("button", name="Back", exact=True)
        page.evaluate(LISTEN)
        for at in [*range(first + 1, last + 1), *range(last - 1, last - 1 - BACK, -1)]:
            on = len(taken) < last - first
            act = (lambda: page.keyboard.press(" ")) if on else back.click
            view = visitor.widget("walk_values").locator("[data-painted]").first
            taken.append(seconds_of(act, view, PAINTED))
            expect(spine.locator(".where")).to_have_text(f"{at + 1} of {len(names)}")
            visitor.rest()
    return taken


def steps_of_rules(browser: Browser, server: Server) -> list[float]:
    """Seconds of the first rules of a megabyte of text, then back from the last."""
    taken = []
    with a_visitor(browser, server) as visitor:
        page = visitor.open("/learning?" + urlencode({"learn_from": FILE, "learn_rules": RULES}))
        mine = FilePayload(name="mine.txt", mimeType="text/plain", buffer=made_up().encode())
        page.locator("input[type=file]").set_input_files(mine)
        page.evaluate(LISTEN)
        for begin, key, by in ((0, "ArrowRight", 1), (RULES, "ArrowLeft", -1)):
            if begin:
                page.get_by_role("slider").first.press("End")
            expect(page.get_by_text(f"Rules: {begin:,} of {RULES:,}")).to_be_visible()
            visitor.rest()
            page.get_by_role("heading", level=1).click()
            for step in range(1, STEPS + 1):
                press = lambda key=key: page.keyboard.press(key)  # noqa: E731
                taken.append(seconds_of(press, page.get_by_test_id("stApp"), RESTED))
                at = page.get_by_text(f"Rules: {begin + by * step:,} of {RULES:,}")
                expect(at).to_be_visible()
                visitor.rest()
    return taken
