"""The picture of the whole pass in a real browser: its walks, its words, what it holds."""

import base64
from dataclasses import replace
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from explorer.analysis.information_flow import BlockShares, InformationFlow, Route, route
from explorer.components import mounting
from explorer.components.pass_map import DOORS, PassMap, encode
from explorer.text.number_format import three
from tests.browser.visiting import Visitor
from tests.components.conftest import OpenDemo
from tests.components.drawn_maps import (
    FLOW,
    SELF,
    USUAL,
    every_share,
    opened,
    others,
    percent,
    told,
)
from tests.components.flows import KINDS, of_kind
from tests.components.samples import WORDS

HERE = mounting.HERE / "pass_map"
WALKS = f"""async ([message, from, at, least]) => {{
  {mounting._shared()}
  {mounting.slim_js(mounting.read(HERE / "flow.js"))}
  const data = await unpack(Uint8Array.from(atob(message), each => each.charCodeAt(0)));
  const flow = flowOf(data);
  if (from < 0) backwards(flow, at); else forwards(flow, from, at);
  return {{
    stacks: flow.stacks.map(stack => ({{
      streams: [...stack.streams], through: [...stack.through],
      parts: stack.parts.map(part => [[...part.begins], [...part.key], [...part.value]]),
    }})),
    drawn: carrying(flow, least).edges.length,
    every: data.edges,
  }};
}}"""
"""The view's own walks over a message, from an answer or from a token of a stack."""
LEAST = 0.01


def walked(visitor: Visitor, shown: PassMap, from_: int, at: int) -> dict[str, Any]:
    message = base64.b64encode(encode(shown, "pass_map", "demo", 0)).decode()
    found: dict[str, Any] = visitor.page.evaluate(WALKS, [message, from_, at, LEAST])
    return found


def as_sent(flow: InformationFlow) -> InformationFlow:
    """Shares in single precision, as the browser has them."""

    def sent(block: BlockShares) -> BlockShares:
        attended = {
            part: replace(each, keys=each.keys.float(), residual=each.residual.float())
            for part, each in block.attended.items()
        }
        return replace(
            block, attended=attended, mlp=None if block.mlp is None else block.mlp.float()
        )

    stacks = {name: tuple(map(sent, blocks)) for name, blocks in flow.stacks.items()}
    return InformationFlow(stacks, flow.starts.float())


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
        for part, sent in zip(blocks[0].attended, stack["parts"], strict=True):
            keys = counts["encoder" if part.endswith("cross_attn") else name]
            close(dense(sent, len(blocks), counts[name], keys), true.edges[part])


def close(seen: Tensor, true: Tensor) -> None:
    torch.testing.assert_close(seen.double(), true.double(), rtol=1e-9, atol=1e-12)


def drawn_from(true: Route, least: float) -> int:
    """How many edges between two tokens have importance ≥ so much."""
    return sum(int((others(*each) >= least).sum()) for each in true.edges.items())


# ---- walks ------------------------------------------------------------------------------------


def test_an_answer_of_a_model_of_every_kind_is_traced_as_in_python(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "one")
    for kind in KINDS:
        shown = of_kind(kind)
        flow = as_sent(shown.flow)
        for at, start in enumerate(flow.starts):
            true = route(flow, start)
            seen = walked(visitor, shown, -1, at)
            assert_same(seen, flow, true)
            assert (seen["drawn"], seen["every"]) == (drawn_from(true, LEAST), every_share(flow))


def forwards(flow: InformationFlow, stack: str, token: int) -> Route:
    """How much of every stream is traced to this token: one product for each sub-layer."""
    streams, edges, mlps = dict[str, Tensor](), dict[str, Tensor](), dict[str, Tensor]()
    for name, blocks in flow.stacks.items():
        count = len(blocks[0].attended[f"{name}.self_attn"].residual)
        here = torch.zeros(count, dtype=torch.float64)
        here[token if name == stack else slice(0, 0)] = 1
        levels, parts, through = [here], dict[str, list[Tensor]](), []
        for block in blocks:
            entered = here
            for part, found in block.attended.items():
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


def test_a_token_of_a_model_of_every_kind_is_followed_as_in_torch(open_demo: OpenDemo) -> None:
    visitor = open_demo("flow", "one")
    for kind in KINDS:
        shown = of_kind(kind)
        flow = as_sent(shown.flow)
        for at, stack in enumerate(flow.stacks):
            for token in (0, 3):
                seen = walked(visitor, shown, at, token)
                assert_same(seen, flow, forwards(flow, stack, token))


def test_both_walks_say_how_much_of_an_answer_is_a_token_s() -> None:
    for kind in KINDS:
        flow = as_sent(of_kind(kind).flow)
        for stack in flow.stacks:
            last = forwards(flow, stack, 2).streams[list(flow.stacks)[-1]][-1]
            for start in flow.starts:
                traced = route(flow, start).streams[stack][0, 2]
                assert float(start.double() @ last) == pytest.approx(float(traced), abs=1e-6)


# ---- words ------------------------------------------------------------------------------------


def options(view: Locator) -> list[tuple[str, str]]:
    """The options beside the picture and their probabilities."""
    names = view.locator(".option .token").all_inner_texts()
    return list(zip(names, view.locator(".option .value").all_inner_texts(), strict=True))


def test_an_answer_pointed_at_says_itself_and_draws_its_edges(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words")
    assert drawn.said() == "What led to a5: p = 0.450"
    for at in (5, 2, 0):
        assert drawn.point(drawn.answer(at)) == f"What led to a{at}: p = {three(0.5 - at / 100)}"
        shown, every = drawn_from(route(FLOW, FLOW.starts[at]), USUAL), every_share(FLOW)
        assert drawn.notes() == (
            f"{shown} of {every} edges between two tokens have importance ≥ 0.500 %."
        )
        assert options(drawn.view) == [
            (f"a{at}", three(0.5 - at / 100)),
            (f"b{at}", "0.250"),
            (f"c{at}", "0.125"),
        ]
        expect(drawn.view.locator(".asked")).to_have_text(f"After {WORDS[at]}")
    drawn.visitor.away()
    expect(drawn.sentence).to_have_text("What led to a5: p = 0.450")


def test_answers_that_come_behind_the_picture_are_said_when_they_are_there(
    open_demo: OpenDemo,
) -> None:
    drawn = opened(open_demo, "late")
    assert drawn.point(drawn.answer(1)) == "What led to a1: p = 0.490"
    assert drawn.point(drawn.answer(0)) == "What led to a0: p = no value"
    assert options(drawn.view) == [("a0", "no value")]


def test_a_token_pointed_at_says_that_its_ways_are_drawn(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words")
    said = drawn.point(drawn.token(0, 1))
    assert said.startswith("Where the goes: lines are the share of each residual stream")
    shown = drawn_from(forwards(FLOW, "decoder", 1), USUAL)
    assert drawn.notes().startswith(f"{shown} of ")


def test_a_node_says_what_attention_and_feed_forward_wrote_and_what_the_lens_reads(
    open_demo: OpenDemo,
) -> None:
    drawn = opened(open_demo, "words")
    for layer in (0, 1):
        for token in (0, 4):
            block = FLOW.stacks["decoder"][layer]
            assert block.mlp is not None
            assert drawn.point(drawn.node(0, layer, token)) == (
                f"{WORDS[token]} in layer {layer}: "
                f"attention {percent(1 - block.attended[SELF].residual[token])}, "
                f"feed-forward {percent(block.mlp[token])}. "
                f"The lens reads w{layer}-{token} {three((layer + 1) / 100)}"
            )


def test_a_node_of_cross_attention_names_both_attentions(open_demo: OpenDemo) -> None:
    drawn, flow = opened(open_demo, "both"), of_kind("both").flow
    block = flow.stacks["decoder"][1]
    assert block.mlp is not None
    residual = [1 - each.residual[2] for each in block.attended.values()]
    said = drawn.point(drawn.node(1, 1, 2))
    assert said.startswith(
        f"t2 in layer 1: attention {percent(residual[0])}, "
        f"cross-attention {percent(residual[1])}, feed-forward {percent(block.mlp[2])}"
    )
    assert "lens" not in drawn.point(drawn.node(0, 0, 2)), "the encoder has none"
    assert "feed-forward" not in opened(open_demo, "no feed-forward").point(drawn.node(0, 0, 2))


def strongest(true: Route, part: str, layer: int, query: int) -> int:
    """The key from which most comes into this query, of other tokens."""
    edges = true.edges[part][layer, query].clone()
    if part.endswith("self_attn"):
        edges[query] = 0
    return int(edges.argmax())


def last_edge(shown: PassMap, part: str) -> tuple[int, int, int]:
    """Layer, query and key of what is the strongest edge on its level: the last query's."""
    stack = part.partition(".")[0]
    true = route(as_sent(shown.flow), as_sent(shown.flow).starts[-1])
    layer = len(shown.flow.stacks[stack]) - 1
    query = len(true.streams[stack][0]) - 1
    return layer, query, strongest(true, part, layer, query)


@pytest.mark.parametrize("kind", ["decoder", "both", "beside"])
def test_an_edge_says_its_head_its_share_and_what_it_carries(
    open_demo: OpenDemo, kind: str
) -> None:
    """At the top only the queries of the answer itself have importance."""
    drawn, shown = opened(open_demo, kind), of_kind(kind)
    flow = as_sent(shown.flow)
    true = route(flow, flow.starts[-1])
    for stack, blocks in flow.stacks.items():
        for part in blocks[0].attended:
            if stack != list(flow.stacks)[-1]:
                continue
            layer, query, key = last_edge(shown, part)
            at = list(flow.stacks).index(stack)
            source = 0 if part.endswith("cross_attn") else at
            said = drawn.point(drawn.edge(part.partition(".")[2], at, layer, query, (source, key)))
            found = blocks[layer].attended[part]
            assert said == (
                f"Layer {layer}, mostly head {found.heads[query, key]}: t{key} → t{query}: "
                f"share {percent(found.keys[query, key])}, "
                f"importance {percent(true.edges[part][layer, query, key])}"
            )


def test_where_there_is_no_head_or_a_class_the_sentence_says_so(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "no head")
    assert drawn.said() == "What each position is made of."
    assert options(drawn.view) == []
    drawn.point(drawn.answer(2))
    assert drawn.said() == "What each position is made of."
    drawn = opened(open_demo, "mean")
    assert drawn.said() == "What led to a0: p = 0.500"
    expect(drawn.view.locator(".asked")).to_have_text("Class of the text")
    assert len(options(drawn.view)) == 3


# ---- what is held -----------------------------------------------------------------------------


def test_what_is_clicked_is_held_and_told(open_demo: OpenDemo) -> None:
    drawn, nothing = opened(open_demo, "words"), [-1] * 5
    drawn.click(drawn.answer(2))
    told(drawn, [2, -1, -1, USUAL, -1, -1, *nothing])
    drawn.visitor.away()
    expect(drawn.sentence).to_have_text("What led to a2: p = 0.480")
    drawn.click(drawn.token(0, 1))
    told(drawn, [2, 0, 1, USUAL, -1, -1, *nothing])
    drawn.visitor.away()
    expect(drawn.sentence).to_contain_text("Where the goes")
    drawn.click(drawn.token(0, 1))
    told(drawn, [2, -1, -1, USUAL, -1, -1, *nothing])
    drawn.click(drawn.node(0, 0, 4))
    told(drawn, [4, -1, -1, USUAL, -1, -1, *nothing])


def test_an_edge_that_is_clicked_opens_its_card_and_its_doors(open_demo: OpenDemo) -> None:
    drawn, shown = opened(open_demo, "decoder"), of_kind("decoder")
    flow = as_sent(shown.flow)
    layer, query, key = last_edge(shown, SELF)
    found = flow.stacks["decoder"][layer].attended[SELF]
    head, at = int(found.heads[query, key]), drawn.edge("self_attn", 0, layer, query, (0, key))
    drawn.click(at)
    told(drawn, [5, -1, -1, USUAL, -1, -1, 0, layer, query, key, head])
    card = drawn.view.locator(".card")
    expect(card.locator(".title")).to_have_text(f"Layer {layer}, head {head}")
    expect(card.locator(".amount")).to_have_text(f"share {percent(found.keys[query, key])}")
    expect(card.get_by_role("button")).to_have_text(list(DOORS.values()))
    for page, name in DOORS.items():
        card.get_by_role("button", name=name, exact=True).click()
        where = {
            "page": page,
            "part": SELF,
            "layer": layer,
            "head": head,
            "query": query,
            "key": key,
        }
        expect(drawn.visitor.page.get_by_text(f"told ('go', {where})")).to_be_visible()
    drawn.click(at)
    expect(card).to_be_empty()


def test_what_the_page_holds_is_drawn(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words held")
    assert drawn.said().startswith("Where <s> goes")
    assert drawn.view.locator(".least output").inner_text() == "5.00 %"
    expect(drawn.view.locator(".card .title")).to_have_text("Layer 1, head 2")
    shown = drawn_from(forwards(FLOW, "decoder", 0), 0.05)
    assert drawn.notes().startswith(f"{shown} of ")


def test_the_threshold_says_how_many_edges_are_drawn_of_how_many(open_demo: OpenDemo) -> None:
    drawn, true = opened(open_demo, "words"), route(FLOW, FLOW.starts[5])
    slider = drawn.view.get_by_role("slider")
    counts = []
    for press, least in (("Home", 0.001), ("ArrowRight", 0.002), ("End", 0.5), ("ArrowLeft", 0.2)):
        slider.press(press)
        expect(drawn.view.locator(".least output")).to_have_text(percent(least))
        shown, every = drawn_from(true, least), every_share(FLOW)
        assert drawn.notes() == (
            f"{shown} of {every} edges between two tokens have importance ≥ {percent(least)}."
        )
        counts.append(shown)
    assert counts[0] > counts[1] > counts[3] >= counts[2]
    told(drawn, [5, -1, -1, 0.2, -1, -1, *[-1] * 5])


def test_the_first_token_s_edges_can_be_left_out(open_demo: OpenDemo) -> None:
    drawn, true = opened(open_demo, "words"), route(FLOW, FLOW.starts[5])
    before = drawn.visitor.picture("pass_map")
    drawn.view.get_by_label("From the first token").uncheck()
    drawn.visitor.changed("pass_map", before)
    edges = true.edges[SELF].clone()
    edges[:, :, 0] = 0
    shown = drawn_from(replace(true, edges={SELF: edges}), USUAL)
    expect(drawn.view.locator(".notes")).to_contain_text(f"{shown} of ")


def test_the_logit_lens_can_be_left_out(open_demo: OpenDemo) -> None:
    drawn = opened(open_demo, "words")
    before = drawn.visitor.picture("pass_map")
    lens = drawn.view.get_by_label("Logit lens")
    lens.uncheck()
    drawn.visitor.changed("pass_map", before)
    lens.check()
    drawn.visitor.shows("pass_map", before)
    expect(opened(open_demo, "no head").view.get_by_label("Logit lens")).to_be_hidden()
