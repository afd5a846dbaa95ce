"""The picture of the whole pass in a real browser: its walks, words, keys, and what it holds."""

import base64
import re
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from torch import Tensor

from explorer.analysis.information_flow import InformationFlow, Route, route
from explorer.components import mounting, wire
from explorer.components.pass_map import PAGE_LINKS, PassMap, encode
from explorer.text.number_format import three
from tests.browser.map_places import Drawn
from tests.browser.visiting import Visitor, box_of
from tests.components.conftest import OpenDemo, painted, told
from tests.components.flows import KINDS, made_up, numbered, of_kind, picture
from tests.components.samples import WORDS
from tests.served import wait_until

USUAL, SELF = 0.005, "decoder.self_attn"
FLOW = made_up(2, 6)
WALKS = f"""async ([message, walks, least]) => {{
  {mounting.script("shared.js")}
  {mounting.script("pass_map/flow.js")}
  const data = await unpack(Uint8Array.from(atob(message), each => each.charCodeAt(0)));
  const flow = flowOf(data);
  return walks.map(([from, at]) => {{
    if (from < 0) backwards(flow, at); else forwards(flow, from, at);
    return {{
      stacks: flow.stacks.map(stack => ({{
        streams: [...stack.streams], through: [...stack.through],
        parts: stack.parts.map(part => [[...part.begins], [...part.key], [...part.value]]),
      }})),
      drawn: carrying(flow, least).edges.length,
      every: data.edges,
    }};
  }});
}}"""
"""The view's own walks over a message, each from an answer (-1, at) or a token (its stack, at)."""
LEAST = 0.01


def others(part: str, values: Tensor) -> Tensor:
    """What stands between two tokens, (layers, q, k)."""
    own = torch.eye(values.shape[-1]).bool() if part.endswith("self_attn") else False
    return values.masked_fill(torch.as_tensor(own), 0)


def every_share(flow: InformationFlow) -> int:
    """How many keys have a share in another token."""
    every = [block.attentions for blocks in flow.stacks.values() for block in blocks]
    parts = [others(part, found.keys) for each in every for part, found in each.items()]
    return sum(int((shares > 0).sum()) for shares in parts)


def percent(value: Tensor | float) -> str:
    return f"{three(100 * float(value))} %"


def see(visitor: Visitor, key: str) -> Drawn:
    """One of the pictures on the page, in sight and with nothing pointed at."""
    drawn = Drawn(visitor, key)
    drawn.canvas.scroll_into_view_if_needed()
    visitor.away()
    painted(visitor)
    return drawn


def chosen(drawn: Drawn, *value: object) -> None:
    """Wait until the page was told that this is held, and no layer and no edge."""
    told(drawn.visitor, f"('chosen', {[*value, -1, -1, *[-1] * 5]})")


def counted(drawn: Drawn, true: Route, flow: InformationFlow, least: float) -> None:
    """The picture says how many edges of these it draws."""
    shown, every = drawn_from(true, least), every_share(flow)
    said = f"{shown} of {every} lines between two tokens are drawn (importance ≥ {percent(least)})."
    assert drawn.notes() == said


def walked(page: Page, shown: PassMap, walks: list[tuple[int, int]]) -> list[dict[str, Any]]:
    message = base64.b64encode(encode(shown, "pass_map", "demo", 0)).decode()
    found: list[dict[str, Any]] = page.evaluate(WALKS, [message, walks, LEAST])
    return found


def dense(part: list[list[float]], layers: int, queries: int, keys: int) -> Tensor:
    """Edges of rows as (layers, queries, keys)."""
    begins, key, value = part
    found = torch.zeros(layers * queries, keys, dtype=torch.float64)
    for row in range(layers * queries):
        for at in range(int(begins[row]), int(begins[row + 1])):
            found[row, int(key[at])] = value[at]
    return found.unflatten(0, (layers, queries))


def assert_same(seen: dict[str, Any], flow: InformationFlow, true: Route) -> None:
    """What the browser walked is this."""
    counts = {name: len(true.streams[name][0]) for name in flow.stacks}
    for (name, blocks), stack in zip(flow.stacks.items(), seen["stacks"], strict=True):
        close(torch.tensor(stack["streams"], dtype=torch.float64), true.streams[name].flatten())
        close(torch.tensor(stack["through"], dtype=torch.float64), true.mlp[name].flatten())
        for part, sent in zip(blocks[0].attentions, stack["parts"], strict=True):
            keys = counts["encoder" if part.endswith("cross_attn") else name]
            close(dense(sent, len(blocks), counts[name], keys), true.edges[part])


def close(seen: Tensor, true: Tensor) -> None:
    torch.testing.assert_close(seen.double(), true.double(), rtol=1e-9, atol=1e-12)


def drawn_from(true: Route, least: float) -> int:
    """How many edges between two tokens have importance ≥ so much."""
    return sum(int((others(*each) >= least).sum()) for each in true.edges.items())


def forwards(flow: InformationFlow, stack: str, token: int) -> Route:
    """How much of every stream is traced to this token: one product for each sub-layer."""
    streams, edges, mlps = dict[str, Tensor](), dict[str, Tensor](), dict[str, Tensor]()
    for name, blocks in flow.stacks.items():
        count = len(blocks[0].attentions[f"{name}.self_attn"].residual)
        here = torch.zeros(count, dtype=torch.float64)
        here[token if name == stack else slice(0, 0)] = 1
        levels, parts, through = [here], dict[str, list[Tensor]](), []
        for block in blocks:
            entered = here
            for part, found in block.attentions.items():
                source = streams["encoder"][-1] if part.endswith("cross_attn") else here
                passed_on = found.keys.double().nan_to_num(0) * source
                here = found.residual.double().nan_to_num(1) * here + passed_on.sum(1)
                parts.setdefault(part, []).append(passed_on)
            share = torch.zeros(count) if block.mlp is None else block.mlp.nan_to_num(0)
            read = entered if block.parallel else here
            through.append(share.double() * read)
            if block.parallel:
                here = share.double() * entered + (1 - share.double()) * here
            levels.append(here)
        streams[name], mlps[name] = torch.stack(levels), torch.stack(through)
        edges |= {part: torch.stack(each) for part, each in parts.items()}
    return Route(streams, edges, mlps)


def test_an_answer_is_traced_and_a_token_is_followed_as_in_torch(browser: Browser) -> None:
    """Of a model of every kind."""
    page = browser.new_page()
    for kind in KINDS:
        shown = of_kind(kind)
        flow = shown.flow
        answers = {(-1, at): route(flow, start) for at, start in enumerate(flow.starts)}
        places = product(enumerate(flow.stacks), (0, 3))
        tokens = {(at, token): forwards(flow, name, token) for (at, name), token in places}
        true = answers | tokens
        for (start, walk), seen in zip(true.items(), walked(page, shown, [*true]), strict=True):
            assert_same(seen, flow, walk)
            drawn = drawn_from(walk, LEAST)
            assert (seen["drawn"], seen["every"]) == (drawn, every_share(flow)), (kind, start)
    page.close()


def test_both_walks_say_how_much_of_an_answer_is_a_token_s() -> None:
    for kind in KINDS:
        flow = of_kind(kind).flow
        for stack in flow.stacks:
            last = forwards(flow, stack, 2).streams[list(flow.stacks)[-1]][-1]
            for start in flow.starts:
                traced = route(flow, start).streams[stack][0, 2]
                assert float(start.double() @ last) == pytest.approx(float(traced), abs=1e-6)


def options(view: Locator) -> list[tuple[str, str]]:
    """The options beside the picture and their probabilities."""
    names = view.locator(".option .token").all_inner_texts()
    return list(zip(names, view.locator(".option .value").all_inner_texts(), strict=True))


def test_answers_tokens_and_nodes_say_themselves_and_keys_walk(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "words,late")
    drawn = see(visitor, "words")
    assert drawn.said() == "What led to a5: p = 0.450"
    for at in (5, 2, 0):
        assert drawn.point(drawn.answer(at)) == f"What led to a{at}: p = {three(0.5 - at / 100)}"
        counted(drawn, route(FLOW, FLOW.starts[at]), FLOW, USUAL)
        named = [(f"a{at}", three(0.5 - at / 100)), (f"b{at}", "0.250"), (f"c{at}", "0.125")]
        assert options(drawn.view) == named
        expect(drawn.view.locator(".asked")).to_have_text(f"After {WORDS[at]}")
    said = drawn.point(drawn.token(0, 1))
    assert said.startswith("Where the goes: the wider a line, the larger its part of that column.")
    counted(drawn, forwards(FLOW, "decoder", 1), FLOW, USUAL)
    for layer in (0, 1):
        for token in (0, 4):
            block = FLOW.stacks["decoder"][layer]
            assert block.mlp is not None
            assert drawn.point(drawn.node(0, layer, token)) == (
                f"{WORDS[token]} in layer {layer}: "
                f"attention wrote {percent(1 - block.attentions[SELF].residual[token])}, "
                f"feed-forward {percent(block.mlp[token])}, each a share of the vector right after "
                f"it. The lens reads w{layer}-{token} {three((layer + 1) / 100)}"
            )
    visitor.away()
    expect(drawn.sentence).to_have_text("What led to a5: p = 0.450")
    drawn = see(visitor, "late")  # its answers come behind the picture
    assert drawn.point(drawn.answer(1)) == "What led to a1: p = 0.490"
    assert drawn.point(drawn.answer(0)) == "What led to a0: p = no value"
    assert options(drawn.view) == [("a0", "no value")]

    drawn, keys = see(visitor, "words"), visitor.page.keyboard
    expect(drawn.view.locator(".play")).to_be_hidden()  # who asks for less motion only steps
    expect(drawn.view.locator(".write")).to_be_hidden()
    before = visitor.picture("words")
    enter, most = "The tokens enter", " (0–1), strongest line: "
    steps = (enter, f"Layer 0{most}", f"Layer 1{most}", "The answer: a5, p = 0.450")
    for said in steps:
        drawn.view.locator(".controls .on").click()
        expect(drawn.sentence).to_contain_text(said)
        expect(drawn.view.locator(".options")).to_be_visible(visible=said == steps[-1])
    drawn.view.locator(".controls .back").click()
    visitor.changed("words", before)
    drawn.canvas.focus()
    for press, said in (
        ("Escape", "What led to a5"),
        ("ArrowLeft", "What led to a4"),
        ("ArrowUp", enter),
        ("ArrowUp", "Layer 0 (0–1)"),
        ("ArrowDown", enter),
        ("ArrowDown", "What led to a4"),
        ("ArrowDown", "The answer: a4"),
        ("ArrowUp", "What led to a4"),
        (" ", enter),
        ("Escape", "What led to a4"),
    ):
        keys.press(press)
        expect(drawn.sentence).to_contain_text(said)
    chosen(drawn, 4, -1, -1, USUAL)


def strongest(true: Route, part: str, layer: int, query: int) -> int:
    """The key from which most comes into this query, of other tokens."""
    edges = true.edges[part][layer, query].clone()
    if part.endswith("self_attn"):
        edges[query] = 0
    return int(edges.argmax())


def last_edge(shown: PassMap, part: str) -> tuple[int, int, int]:
    """Layer, query and key of what is the strongest edge on its level: the last query's."""
    stack = part.partition(".")[0]
    true = route(shown.flow, shown.flow.starts[-1])
    layer = len(shown.flow.stacks[stack]) - 1
    query = len(true.streams[stack][0]) - 1
    return layer, query, strongest(true, part, layer, query)


def test_models_of_every_kind_say_what_they_have(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "decoder,both,beside,no feed-forward,no head,mean")
    for kind in ("decoder", "both", "beside"):
        drawn, shown = see(visitor, kind), of_kind(kind)
        flow = shown.flow
        true, at = route(flow, flow.starts[-1]), len(flow.stacks) - 1
        blocks = list(flow.stacks.values())[at]
        for part, found in blocks[-1].attentions.items():  # at the top only the answer's queries
            layer, query, key = last_edge(shown, part)
            source = 0 if part.endswith("cross_attn") else at
            said = drawn.point(drawn.edge(part.partition(".")[2], at, layer, query, (source, key)))
            reads, value = f"t{query} ({query}) reads", true.edges[part][layer, query, key]
            if part.endswith("cross_attn"):
                reads = f"writing w{query} ({query}, after t{query}), the decoder reads"
            assert said == (
                f"Layer {layer}: {reads} t{key} ({key}). {percent(value)} of the answer came along "
                f"this line (its width), most by head {found.heads[query, key]}"
            )
    drawn, block = see(visitor, "both"), of_kind("both").flow.stacks["decoder"][1]
    residual = [1 - each.residual[2] for each in block.attentions.values()]
    assert block.mlp is not None
    assert drawn.point(drawn.node(1, 1, 2)).startswith(
        f"t2 (next: w2) in layer 1: attention wrote {percent(residual[0])}, "
        f"cross-attention {percent(residual[1])}, feed-forward {percent(block.mlp[2])}"
    )
    assert "lens" not in drawn.point(drawn.node(0, 0, 2)), "the encoder has none"
    drawn = see(visitor, "no_feed-forward")
    assert "feed-forward" not in drawn.point(drawn.node(0, 0, 2))
    drawn = see(visitor, "no_head")
    expect(drawn.view.get_by_label("Words inside")).to_be_hidden()
    assert options(drawn.view) == []
    drawn.point(drawn.answer(2))
    assert drawn.said() == "What each position is made of."
    drawn = see(visitor, "mean")
    assert drawn.said() == "What led to a0: p = 0.500"
    expect(drawn.view.locator(".asked")).to_have_text("Class of the text")
    assert len(options(drawn.view)) == 3


def test_what_is_clicked_is_held_and_told_and_an_edge_opens_its_doors(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "words,decoder")
    drawn, true = see(visitor, "words"), route(FLOW, FLOW.starts[5])
    before = visitor.picture("words")
    for name, usual in (("From the first token", True), ("Words inside", False)):
        drawn.view.get_by_label(name).set_checked(not usual)
        visitor.changed("words", before)
        if name == "From the first token":
            edges = true.edges[SELF].clone()
            edges[:, :, 0] = 0
            counted(drawn, replace(true, edges={SELF: edges}), FLOW, USUAL)
        drawn.view.get_by_label(name).set_checked(usual)
        visitor.shows("words", before)
    drawn.click(drawn.answer(2))
    chosen(drawn, 2, -1, -1, USUAL)
    visitor.away()
    expect(drawn.sentence).to_have_text("What led to a2: p = 0.480")
    drawn.click(drawn.token(0, 1))
    chosen(drawn, 2, 0, 1, USUAL)
    visitor.away()
    expect(drawn.sentence).to_contain_text("Where the goes")
    drawn.click(drawn.token(0, 1))
    chosen(drawn, 2, -1, -1, USUAL)
    drawn.click(drawn.node(0, 0, 4))
    chosen(drawn, 4, -1, -1, USUAL)
    slider, true = drawn.view.get_by_role("slider"), route(FLOW, FLOW.starts[4])
    for press, least in (("Home", 0.001), ("ArrowRight", 0.002), ("End", 0.5), ("ArrowLeft", 0.2)):
        slider.press(press)
        expect(drawn.view.locator(".least output")).to_have_text(percent(least))
        counted(drawn, true, FLOW, least)
    chosen(drawn, 4, -1, -1, 0.2)

    drawn = see(visitor, "held")  # what the page holds is drawn, and Escape lets it go
    assert drawn.said().startswith("Where <s> goes")
    assert drawn.view.locator(".least output").inner_text() == "5.00 %"
    card = drawn.view.locator(".card")
    expect(card.locator(".title")).to_have_text("Layer 1, head 2")
    counted(drawn, forwards(FLOW, "decoder", 0), FLOW, 0.05)
    drawn.canvas.focus()
    visitor.page.keyboard.press("Escape")
    expect(drawn.sentence).to_contain_text("What led to a1")
    expect(card).to_be_empty()
    chosen(drawn, 1, -1, -1, 0.05)

    drawn, shown = see(visitor, "decoder"), of_kind("decoder")
    layer, query, key = last_edge(shown, SELF)
    found = shown.flow.stacks["decoder"][layer].attentions[SELF]
    head, at = int(found.heads[query, key]), drawn.edge("self_attn", 0, layer, query, (0, key))
    drawn.click(at)
    edge = [0, layer, query, key, head]
    told(visitor, f"('chosen', {[5, -1, -1, USUAL, -1, -1, *edge]})")
    card = drawn.view.locator(".card")
    expect(card.locator(".title")).to_have_text(f"Layer {layer}, head {head}")
    expect(card.locator(".what")).to_have_text(f"t{query} ({query}) reads t{key} ({key})")
    expect(card.locator(".amount")).to_contain_text(f"{percent(found.keys[query, key])} of the")
    expect(card.get_by_role("button")).to_have_text(list(PAGE_LINKS.values()))
    where = {"part": SELF, "layer": layer, "head": head, "query": query, "key": key}
    for page, name in PAGE_LINKS.items():
        card.get_by_role("button", name=name, exact=True).click()
        told(drawn.visitor, f"('go', { ({'page': page} | where) })")
    drawn.click(at)
    expect(card).to_be_empty()


def test_it_plays_pauses_goes_on_and_the_text_is_gone_on_with(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "words,decoder", moves=True)
    drawn = see(visitor, "words")
    before, play = visitor.picture("words"), drawn.view.locator(".play")
    play.click()
    expect(play).to_have_text("Pause")
    play.click()
    expect(play).to_have_text("Play")
    expect(drawn.sentence).to_have_text(re.compile(r"^(The tokens enter|Layer \d \(0–1\), )"))
    assert visitor.picture("words") != before
    drawn.view.get_by_label("Speed").select_option("2 ×")
    play.click()
    expect(play).to_have_text("Pause")
    expect(play).to_have_text("Play")
    expect(drawn.sentence).to_have_text("What led to a5: p = 0.450")
    visitor.shows("words", before)  # it ends as it began
    write = drawn.view.locator(".write")
    write.click()
    expect(write).to_have_text("Stop")
    told(visitor, "('append', 0)")
    write.click()
    expect(write).to_have_text("Continue the text")
    expect(drawn.view.locator("button.option")).to_have_count(2)  # the third ends the text
    drawn.view.locator("button.option").nth(1).click()
    told(visitor, "('append', 1)")
    drawn.point(drawn.answer(1))
    expect(drawn.view.locator("button.option")).to_have_count(0)
    expect(see(visitor, "decoder").view.locator(".write")).to_be_hidden()


def test_passes_without_numbers_edges_or_room_say_so(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "emoji,unknown,one,nothing,cut")
    box = box_of(see(visitor, "emoji").view.locator(".stage"))
    assert box["width"] <= visitor.size["width"]
    drawn = see(visitor, "unknown")
    said = drawn.point(drawn.node(0, 0, 2))
    assert said.startswith("small in layer 0: attention wrote no value, feed-forward no value")
    assert "NaN" not in drawn.notes()
    none = "0 of 0 lines between two tokens are drawn (importance ≥ 0.500 %)."
    drawn = see(visitor, "one")
    assert drawn.notes() == none
    assert drawn.point(drawn.token(0, 0)).startswith("Where <s> goes")
    assert drawn.point(drawn.answer(0)) == "What led to a0: p = 0.500"
    visitor.away()
    drawn.view.locator(".controls .on").dblclick()
    expect(drawn.sentence).to_have_text("Layer 0: each token reads others.")
    drawn = see(visitor, "nothing")
    assert drawn.notes() == none
    said = drawn.point(drawn.node(0, 0, 1))
    assert said.startswith("the in layer 0: attention wrote 0 %, feed-forward 0 %")

    flow, most = made_up(10, 90), 24_000  # what is too small to be sent
    shares = torch.stack([each.attentions[SELF].keys for each in flow.stacks["decoder"]])
    least = float(shares.flatten().topk(most).values[-1])
    message = encode(picture(flow, {"decoder": numbered(90)}), "pass_map", "demo", 89, most=most)
    header, planes = wire.unpack(message)
    assert len(planes[f"{SELF}.keys"]) == 2 * most
    assert header["edges"] == every_share(flow) > most
    assert len(message) < 200_000
    sent = [
        replace(each, attentions={SELF: replace(own, keys=own.keys.where(own.keys >= least, 0))})
        for each in flow.stacks["decoder"]
        for own in [each.attentions[SELF]]
    ]
    walk = route(replace(flow, stacks={"decoder": tuple(sent)}), flow.starts[89])
    lost = percent(1 - float(walk.streams["decoder"][0].sum()))
    said = f" Shares under {percent(least)} are not followed: {lost} of the answer."
    assert see(visitor, "cut").notes().endswith(said)


def test_the_wheel_opens_many_rows_and_the_picture_follows_the_window(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "deep")
    drawn, mouse = see(visitor, "deep"), visitor.page.mouse
    before = levels(drawn)
    drawn.point(drawn.node(0, 10, 3))
    mouse.wheel(0, -400)
    wait_until(lambda: rows(drawn)[10] > 2 * (before[10] - before[11]), "a higher row 10")
    assert min(rows(drawn)) < before[10] - before[11]
    assert (levels(drawn)[0], levels(drawn)[-1]) == pytest.approx((before[0], before[-1]))
    mouse.wheel(0, 4000)
    wait_until(lambda: levels(drawn) == pytest.approx(before), "the rows as they were")
    wide = drawn.column(0, 5)
    visitor.sized(900)
    assert drawn.column(0, 5) < wide
    assert drawn.point(drawn.answer(2)).startswith("What led to a2")


def levels(drawn: Drawn) -> list[float]:
    return [drawn.level(0, level) for level in range(31)]


def rows(drawn: Drawn) -> list[float]:
    return [below - above for below, above in pairwise(levels(drawn))]
