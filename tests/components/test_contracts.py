"""What holds for every view: keys, words, themes, narrow windows, hostile tokens, rounding."""

import re
from collections.abc import Callable
from typing import Any

import torch
from playwright.sync_api import Locator, expect

from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from tests.browser.axe import RULES, findings
from tests.browser.map_places import Drawn
from tests.browser.visiting import BEGIN, Visitor
from tests.components.conftest import OpenDemo, painted, texts_on
from tests.components.samples import NEARLY, STRANGE, attention
from tests.served import wait_until
from tests.text.test_number_format import TIES
from tests.whole_numbers import UNSEEN

TAKES_KEYS = {
    "board": ".board .stage",
    "cells": ".cells canvas",
    "chips": ".chips .chip",
    "circuit_map": ".circuit-map canvas",
    "film": ".film .place",
    "grid": ".grid canvas",
    "inspect": ".inspect .chip",
    "lines": ".lines .stage",
    "matrix": ".matrix canvas",
    "miniature": ".miniature button",
    "pass_map": ".pass-map canvas",
    "player": ".player .on",
    "ranked": ".ranked .stage button",
    "stage_list": ".stage_list .stage button",
    "tree": ".tree .node",
}
"""What takes the keys in each view of the page that has them all, by its key."""
PAINTED = ("cells", "circuit_map", "film", "grid", "lines", "matrix", "miniature", "pass_map")
LEAST_SAID = 15
"""Letters of a title and a number."""
MOST_STOPS = 200
TAKES_FOCUS = """selectors => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return selectors.filter(selector => at?.matches(selector));
}"""
SAYS = """canvas => {
  const by = canvas.getAttribute("aria-describedby");
  const text = by ? canvas.getRootNode().getElementById(by).textContent : "";
  return [canvas.getAttribute("aria-label") ?? "", text];
}"""
"""The name of a picture, and what it says of its largest values."""
IN_DIRECTION = """tokens => tokens.map(token => getComputedStyle(token).unicodeBidi)"""
WIDEST = "views => Math.max(...views.map(view => view.getBoundingClientRect().right)) - innerWidth"
HEBREW = 3


def sentence(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator(".sentence").first


def hovered(key: str, part: str) -> Callable[[Visitor, int], Locator]:
    """What a view says where the pointer is over one of these parts."""

    def say(visitor: Visitor, at: int) -> Locator:
        visitor.widget(key).locator(part).nth(at).hover()
        return sentence(visitor, key)

    return say


def of_lines(visitor: Visitor, at: int) -> Locator:
    visitor.widget("lines").locator(".stage").hover(position={"x": 20, "y": at * 24 + 12})
    return sentence(visitor, "lines")


def of_map(visitor: Visitor, at: int) -> Locator:
    drawn = Drawn(visitor)
    drawn.canvas.scroll_into_view_if_needed()
    drawn.point(drawn.token(0, at))
    return drawn.sentence


def of_stages(visitor: Visitor, at: int) -> Locator:
    return visitor.widget("stage_list").locator(".one").nth(at)


SAID: dict[str, Callable[[Visitor, int], Locator]] = {
    "board": hovered("board", "td"),
    "cells": lambda visitor, at: visitor.point("cells", at, 0),
    "inspect": hovered("inspect", ".chip"),
    "lines": of_lines,
    "matrix": lambda visitor, at: visitor.point("matrix", at, 0),
    "pass_map": of_map,
    "stage_list": of_stages,
    "tree": hovered("tree", ".node"),
}
"""By view, what it says of a token that is pointed at."""
ALSO_SAID = {"chips": ".chip", "film": "dd", "player": ".where", "ranked": "button"}
"""What has the first token without being pointed at."""


def on_canvases(visitor: Visitor, script: str) -> dict[str, Any]:
    """What a script says of the picture of each view that has one."""
    views = {key: visitor.widget(key) for key in PAINTED}
    return {key: view.locator("canvas").first.evaluate(script) for key, view in views.items()}


def pictures(visitor: Visitor) -> dict[str, Any]:
    visitor.settled()
    return on_canvases(visitor, "canvas => canvas.toDataURL()")


def test_a_token_is_text_in_its_direction_and_the_tab_key_reaches_all(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("everything")
    page, faults = visitor.page, []
    for key, say in SAID.items():
        for at in (0, HEBREW, len(STRANGE) - 1):
            said = say(visitor, at)
            painted(visitor)
            if text_of(STRANGE[at]) not in said.inner_text().translate(UNSEEN):
                faults.append(f"{key} says {said.inner_text()!r} of {STRANGE[at]!r}")
            directions = said.locator("bdi, .token").evaluate_all(IN_DIRECTION)
            if not set(directions) <= {"isolate", "plaintext"}:
                faults.append(f"{key}: {STRANGE[at]!r} runs {directions}")
    for key, names in ALSO_SAID.items():
        if STRANGE[0] not in " ".join(visitor.widget(key).locator(names).all_inner_texts()):
            faults.append(f"{key} does not have {STRANGE[0]!r}")
    written = "canvas => (canvas.texts ?? []).map(([text]) => String(text))"
    for key, texts in on_canvases(visitor, written).items():
        for text in texts:
            if re.search("[\u0590-\u06ff]", text) and not text.startswith("\u2068"):
                faults.append(f"{key} paints {text!r} in the direction of what is around it")
    assert faults == []
    assert page.title() == "demo_everything"
    expect(page.locator(".view script, .view b, img[src=x]")).to_have_count(0)

    page.evaluate(BEGIN)
    left = set(TAKES_KEYS)
    for _ in range(MOST_STOPS):  # every view is reached with the Tab key
        page.keyboard.press("Tab")
        reached = page.evaluate(TAKES_FOCUS, list(TAKES_KEYS.values()))
        left -= {key for key, selector in TAKES_KEYS.items() if selector in reached}
        if not left:
            break
    assert left == set()


def test_every_picture_has_words_and_a_look_for_the_dark_and_a_phone(open_demo: OpenDemo) -> None:
    visitor = open_demo("everything")
    views = visitor.page.locator(".view")
    said = on_canvases(visitor, SAYS)
    assert [name for name, (label, text) in said.items() if len(label + text) < LEAST_SAID] == []
    assert [name for name, (label, _) in said.items() if not label] == []
    assert said["matrix"][1].startswith(f"{STRANGE[0]}. The largest: ")
    largest = attention(len(STRANGE)).flatten().topk(3).values
    for key in ("matrix", "cells"):
        assert re.findall(r": ([\d.]+)[; .]", said[key][1]) == [three(float(at)) for at in largest]
    light, faults = pictures(visitor), []
    for theme in ("light", "dark"):
        visitor.themed(theme)
        found = [each for each in findings(visitor.page) if each.partition(" ")[0] not in RULES]
        faults += [f"{theme}: {each}" for each in found]
    assert faults == []
    wait_until(lambda: not {*pictures(visitor).values()} & {*light.values()}, "dark pictures", 30)
    for theme, width in (("dark", 390), ("light", 1280)):
        visitor.themed(theme)
        visitor.sized(width)
        wait_until(lambda: views.evaluate_all(WIDEST) <= 0, "views within the window", 30)
    wait_until(lambda: pictures(visitor) == light, "the pictures as they were", 30)


def test_a_number_is_said_and_painted_as_the_sentences_round_it(open_demo: OpenDemo) -> None:
    visitor, faults = open_demo("rounded"), []
    for key in ("matrix", "cells"):
        for place, value in enumerate(TIES):
            said = visitor.point(key, *divmod(place, 3)).locator(".value").inner_text()
            if said.strip() != three(torch.tensor(value).item()):
                faults.append(f"{key} says {said} of {value}")
        nearly = NEARLY[key]
        written = [text for text, *_ in texts_on(visitor, f"nearly_{key}") if text.startswith("0.")]
        if not written or not all(f"{nearly:.6f}".startswith(text) for text in written):
            faults.append(f"{key} paints {written} of {nearly:.6f}")
    assert faults == []
