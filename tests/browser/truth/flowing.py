"""The picture of the pass, number by number: every share, walk, answer and word made again.

With loops over what the core's pass recorded. The models of these cases have their norms before
each sub-layer, so what a sub-layer adds is what its parts add.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from torch import Tensor

from explorer.components import wire
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from tests.browser.map_places import IN_LAYER, Drawn
from tests.browser.truth.core import Case, weights_in
from tests.browser.truth.screen import UNSEEN, Claim
from tests.browser.visiting import Visitor

THRESHOLDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5)
STEP = 1e-5
"""Shares are differences of sums in single precision: so far they may be off."""
NEAR, BEND = 6.0, 0.12
"""How near to an edge one points at it, in pixels, and which share of its way it bends."""
EDGE = re.compile(
    r"Layer (\d+), mostly head (\d+): (.*) → (.*): share (\S+) %, "
    r"(importance|traced) (\S+) %"
)


class Edge(NamedTuple):
    part: str
    layer: int
    query: int
    key: int


class Attended(NamedTuple):
    """One attention: shares[query][key], heads[query][key], and the stream's own share."""

    shares: list[list[float]]
    heads: list[list[int]]
    residual: list[float]


class Layer(NamedTuple):
    attended: dict[str, Attended]
    mlp: list[float]


class Walk(NamedTuple):
    """What flows: `arrived` is the importance of each token before layer 0, by stack."""

    edges: dict[Edge, float]
    arrived: dict[str, list[float]]


def size(vector: Tensor) -> float:
    return float(vector.abs().sum())


def share(whole: Tensor, part: Tensor) -> float:
    return max(0.0, size(whole) - size(whole - part))


@dataclass(frozen=True)
class Flow:
    """The shares of a case and the walks over them."""

    case: Case

    @cached_property
    def stacks(self) -> dict[str, list[Layer]]:
        kind, model = self.case.model.config.kind, self.case.model
        names = {"encoder-decoder": ("encoder", "decoder")}.get(kind, (kind,))
        return {
            name: [self._layer(name, at) for at in range(len(getattr(model, name).blocks))]
            for name in names
        }

    @property
    def last(self) -> str:
        return list(self.stacks)[-1]

    def _at(self, site: str) -> Tensor:
        return self.case.seen[site][0].double()

    def _layer(self, stack: str, at: int) -> Layer:
        assert self.case.model.config.norm_position == "pre"
        block, here = getattr(self.case.model, stack).blocks[at], f"{stack}.{at}"
        has_cross = f"{here}.resid_cross" in self.case.seen.values
        attended = {f"{stack}.self_attn": self._attended(block, here, "self_attn", "resid_pre")}
        if has_cross:
            cross = self._attended(block, here, "cross_attn", "resid_mid")
            attended[f"{stack}.cross_attn"] = cross
        before = self._at(f"{here}.{'resid_cross' if has_cross else 'resid_mid'}")
        after, mlp = self._at(f"{here}.resid_post"), []
        for was, is_ in zip(before, after, strict=True):
            wrote, kept = share(is_, is_ - was), share(is_, was)
            mlp.append(wrote / (wrote + kept))
        return Layer(attended, mlp)

    def _attended(self, block: Any, here: str, kind: str, before: str) -> Attended:
        attention, site = getattr(block, kind), f"{here}.{kind}"
        values, stream = self._at(f"{site}.v"), self._at(f"{here}.{before}")
        to_stream = attention.o_proj.weight.detach().double()
        bias, width = attention.o_proj.bias.detach().double(), values.shape[-1]
        weights = [weights_in(self.case.seen, site, head) for head in range(len(values))]
        found = Attended([], [], [])
        for query in range(len(stream)):
            written: list[Tensor] = []
            heads: list[int] = []
            for key in range(values.shape[1]):
                by_head = [
                    weights[head][query, key]
                    * (to_stream[:, head * width : (head + 1) * width] @ values[head, key])
                    for head in range(len(values))
                ]
                written.append(sum(by_head[1:], by_head[0]))
                lengths = [float(each.norm()) for each in by_head]
                heads.append(lengths.index(max(lengths)))
            whole = stream[query] + bias
            for each in written:
                whole = whole + each
            nearer = [share(whole, each) for each in [*written, stream[query]]]
            found.shares.append([each / sum(nearer) for each in nearer[:-1]])
            found.residual.append(nearer[-1] / sum(nearer))
            found.heads.append(heads)
        return found

    def back(self, answer: int) -> Walk:
        """From an answer to the tokens."""
        edges: dict[Edge, float] = {}
        arrived: dict[str, list[float]] = {}
        given = {stack: [0.0] * len(layers[0].mlp) for stack, layers in self.stacks.items()}
        given[self.last][answer] = 1.0
        for stack in reversed(self.stacks):
            here = given[stack]
            for at in reversed(range(len(self.stacks[stack]))):
                for part, found in reversed(self.stacks[stack][at].attended.items()):
                    before = [here[q] * found.residual[q] for q in range(len(here))]
                    to = given["encoder"] if part.endswith("cross_attn") else before
                    for query, row in enumerate(found.shares):
                        for key, value in enumerate(row):
                            edges[Edge(part, at, query, key)] = here[query] * value
                            to[key] += here[query] * value
                    here = before
            arrived[stack] = here
        return Walk(edges, arrived)

    def onwards(self, stack: str, token: int) -> Walk:
        """From a token to the answers."""
        edges: dict[Edge, float] = {}
        ends: dict[str, list[float]] = {}
        for name, layers in self.stacks.items():
            here = [float(name == stack and at == token) for at in range(len(layers[0].mlp))]
            for at, layer in enumerate(layers):
                for part, found in layer.attended.items():
                    source = ends["encoder"] if part.endswith("cross_attn") else here
                    after = []
                    for query, row in enumerate(found.shares):
                        for key, value in enumerate(row):
                            edges[Edge(part, at, query, key)] = source[key] * value
                        got = sum(source[key] * value for key, value in enumerate(row))
                        after.append(here[query] * found.residual[query] + got)
                    here = after
            ends[name] = here
        return Walk(edges, ends)

    def chances(self, layer: int) -> Tensor:
        """What the head reads at every position behind a layer, (t, options)."""
        model = self.case.model
        stream = self._at(f"{self.last}.{layer}.resid_post")
        norm = model.last_stack.norm
        apart = stream - stream.mean(-1, keepdim=True)
        scale = (apart.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        read = apart / scale * norm.weight.detach().double() + norm.bias.detach().double()
        out = self.case.out
        logits = read @ out.weight.detach().double().mT + out.bias.detach().double()
        return logits.softmax(-1)

    def tokens(self, stack: str) -> list[str]:
        ids = self.case.ids[0]
        if stack == self.last and self.case.model.config.kind == "encoder-decoder":
            ids = self.case.written[0, :-1]
        return [text_of(self.case.label(int(each))) for each in ids]


def across(walk: Walk, least: float) -> dict[Edge, float]:
    """The edges between two tokens that carry at least so much, the weakest first."""
    found = {
        edge: value
        for edge, value in walk.edges.items()
        if value >= least and (edge.part.endswith("cross_attn") or edge.query != edge.key)
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def picture(case: Case, visitor: Visitor) -> list[Claim]:
    """Every number of the picture, of its message, and of what it says where one points."""
    flow, message = Flow(case), _message(visitor)
    visitor.drawn("pass_map")
    drawn = Drawn(visitor)
    asked, every = wire.unpack(message)[0]["asked"], _every_edge(message)
    made = [*_sent(flow, message), *_nodes(flow, drawn)]
    if case.logits.dim() > 1:
        made += _answers(flow, drawn, every)
    else:
        made += _options(flow, drawn, "the class", case.chances)
    made += [*_thresholds(flow, drawn, asked, every), *_edges(flow, drawn, flow.back(asked))]
    return [*made, *_tokens(flow, drawn, every)]


def _message(visitor: Visitor) -> bytes:
    """The picture as it reached the browser, which loads it once more for that."""
    found: list[bytes] = []

    def heard(data: bytes | str) -> None:
        message = ForwardMsg.FromString(data) if isinstance(data, bytes) else ForwardMsg()
        element = message.delta.new_element
        if element.bidi_component.component_name.endswith("pass_map"):
            found.append(element.bidi_component.bytes)

    visitor.page.once("websocket", lambda socket: socket.on("framereceived", heard))
    visitor.page.reload()
    visitor.rest()
    visitor.drawn("pass_map")
    return found[-1]


def _every_edge(message: bytes) -> int:
    """How many shares in another token it has: of the tiniest, rounding says which are above 0."""
    header, planes = wire.unpack(message)
    found = 0
    for stack in header["stacks"]:
        for part in stack["parts"]:
            keys = iter(numbers(planes[f"{part}.keys"], torch.uint16))
            for row, count in enumerate(numbers(planes[f"{part}.counts"], torch.uint16)):
                of_row = [next(keys) for _ in range(int(count))]
                own = row % len(stack["tokens"]) if part.endswith("self_attn") else None
                found += sum(key != own for key in of_row)
    return found


def numbers(plane: bytes, kind: torch.dtype) -> list[float]:
    found: list[float] = torch.frombuffer(bytearray(plane), dtype=kind).tolist()
    return found


def _sent(flow: Flow, message: bytes) -> Iterator[Claim]:
    """Every share, and every head that is named, as the page would write them."""
    header, planes = wire.unpack(message)
    for stack in header["stacks"]:
        layers = flow.stacks[stack["name"]]
        of_mlp = iter(numbers(planes[f"{stack['name']}.mlp"], torch.float32))
        for at, layer in enumerate(layers):
            for token, true in enumerate(layer.mlp):
                yield _share(f"{stack['name']}.{at}.mlp of {token}", next(of_mlp), true)
        for part in stack["parts"]:
            heads = iter(numbers(planes[f"{part}.heads"], torch.uint8))
            kept = iter(numbers(planes[f"{part}.residual"], torch.float32))
            counts = iter(numbers(planes[f"{part}.counts"], torch.uint16))
            keys = iter(numbers(planes[f"{part}.keys"], torch.uint16))
            sizes = iter(numbers(planes[f"{part}.shares"], torch.float32))
            for at, layer in enumerate(layers):
                found = layer.attended[part]
                for query, row in enumerate(found.shares):
                    where = f"{part} {at}, query {query}"
                    sent = {int(next(keys)): next(sizes) for _ in range(int(next(counts)))}
                    named = dict(zip(sent, heads, strict=False))
                    yield _share(where, next(kept), found.residual[query])
                    for key, true in enumerate(row):
                        yield _share(f"{where}, key {key}", sent.get(key, 0.0), true)
                        if true > 100 * STEP:
                            head = found.heads[query][key]
                            yield Claim(f"{where}, key {key}: head", str(int(named[key])), head)


def _share(what: str, sent: float, true: float) -> Claim:
    return Claim(what, f"{three(100 * sent)} %", 100 * true, 100 * STEP)


def _nodes(flow: Flow, drawn: Drawn) -> Iterator[Claim]:
    """What each sub-layer wrote into each token, and what the lens reads there."""
    names = {"self_attn": "attention", "cross_attn": "cross-attention"}
    for at, (stack, layers) in enumerate(flow.stacks.items()):
        tokens = flow.tokens(stack)
        for layer, found in enumerate(layers):
            has_lens = stack == flow.last and flow.case.logits.dim() > 1
            chances = flow.chances(layer) if has_lens else None
            for token, label in enumerate(tokens):
                said = drawn.point(drawn.node(at, layer, token))
                where = f"{label} in layer {layer}"
                assert said.startswith(f"{where}: "), said
                for part, shares in found.attended.items():
                    name = names[part.partition(".")[2]]
                    shown = re.search(rf"[:,] {name} (\S+) %", said)
                    assert shown, said
                    true = 100 * (1 - shares.residual[token])
                    yield Claim(f"{stack}, {where}, {name}", shown[1], true, 100 * STEP)
                shown = re.search(r"feed-forward (\S+) %", said)
                assert shown, said
                true = 100 * found.mlp[token]
                yield Claim(f"{stack}, {where}, feed-forward", shown[1], true, 100 * STEP)
                if chances is None:
                    assert "lens" not in said
                    continue
                best = int(chances[token].argmax())
                word, _, shown_p = said.partition("The lens reads ")[2].rpartition(" ")
                assert word == text_of(flow.case.label(best)), said
                yield Claim(f"{where}, lens", shown_p, float(chances[token, best]))


def _answers(flow: Flow, drawn: Drawn, every: int) -> Iterator[Claim]:
    """What each position answers, and how many edges lead to it."""
    last = len(flow.stacks[flow.last]) - 1
    for token, chances in enumerate(flow.chances(last)):
        said = drawn.point(drawn.answer(token))
        label, best = text_of(flow.case.label(int(chances.argmax()))), float(chances.max())
        assert said.startswith(f"What led to {label}: p = "), said
        yield Claim(f"answer {token}", said.rpartition("= ")[2], best)
        yield from _options(flow, drawn, f"answer {token}", chances)
        yield from _count(f"answer {token}", drawn, flow.back(token), 0.005, every)


def _options(flow: Flow, drawn: Drawn, what: str, chances: Tensor) -> Iterator[Claim]:
    """The likeliest options beside the picture."""
    shown = drawn.view.locator(".option .value").all_inner_texts()
    names = drawn.view.locator(".option .token").all_inner_texts()
    best = chances.topk(min(5, len(chances)))
    for at, value, name, p in zip(best.indices, best.values, names, shown, strict=True):
        is_word = flow.case.logits.dim() > 1
        assert not is_word or name.translate(UNSEEN) == text_of(flow.case.label(int(at)))
        yield Claim(f"{what}: {name}", p, float(value))


def _count(what: str, drawn: Drawn, walk: Walk, least: float, every: int) -> Iterator[Claim]:
    """What is said of how many edges are drawn; not where one is too near to the threshold."""
    if any(abs(value - least) < STEP for value in walk.edges.values()):
        return
    shown = re.match(r"([\d,]+) of ([\d,]+) edges between two tokens .* (\S+) %\.$", drawn.notes())
    assert shown, drawn.notes()
    yield Claim(f"{what}: edges drawn", shown[1], len(across(walk, least)))
    yield Claim(f"{what}: edges in all", shown[2], every)
    yield Claim(f"{what}: threshold", shown[3], 100 * least)


def _thresholds(flow: Flow, drawn: Drawn, asked: int, every: int) -> Iterator[Claim]:
    """Ends with every edge drawn that can be."""
    drawn.visitor.away()
    slider, walk = drawn.view.get_by_role("slider"), flow.back(asked)
    slider.press("End")
    for least in reversed(THRESHOLDS):
        expect(drawn.view.locator(".least output")).to_have_text(f"{three(100 * least)} %")
        yield from _count(f"from {least}", drawn, walk, least, every)
        slider.press("ArrowLeft")


def _edges(flow: Flow, drawn: Drawn, walk: Walk) -> Iterator[Claim]:
    """What is said of each edge; where stronger ones cover all of one, its message is enough."""
    ends = {edge: _ends(flow, drawn, edge) for edge in across(walk, THRESHOLDS[0])}
    for edge in ends:
        point = next((at for at in _along(*ends[edge]) if _hit(ends, at) == edge), None)
        if point is None:
            continue
        said = drawn.point(point)
        found = EDGE.fullmatch(said)
        assert found, f"{edge}: {said}"
        stack = edge.part.partition(".")[0]
        keys = flow.tokens("encoder" if edge.part.endswith("cross_attn") else stack)
        attended = flow.stacks[stack][edge.layer].attended[edge.part]
        head = attended.heads[edge.query][edge.key]
        labels = keys[edge.key], flow.tokens(stack)[edge.query]
        assert (int(found[1]), *found.group(3, 4)) == (edge.layer, *labels), said
        true = attended.shares[edge.query][edge.key]
        yield Claim(f"{edge}: head", found[2], head)
        yield Claim(f"{edge}: share", found[5], 100 * true, 100 * STEP)
        yield Claim(f"{edge}: importance", found[7], 100 * walk.edges[edge], 100 * STEP)


Point = tuple[float, float]


def _ends(flow: Flow, drawn: Drawn, edge: Edge) -> tuple[Point, Point]:
    """Where an edge leaves its key's stream and arrives at its query's."""
    stacks, (stack, _, part) = list(flow.stacks), edge.part.partition(".")
    to = stacks.index(stack)
    start = 0 if part == "cross_attn" else to
    leaves = len(flow.stacks[stacks[0]]) if part == "cross_attn" else edge.layer
    return (
        (drawn.column(start, edge.key), drawn.level(start, leaves)),
        (drawn.column(to, edge.query), drawn.level(to, edge.layer + IN_LAYER[part])),
    )


def _bend(x0: float, x1: float) -> float:
    away = x1 - x0
    return x0 + max(6.0, BEND * abs(away)) * (-1 if away < 0 else 1)


def _along(start: Point, end: Point) -> Iterator[Point]:
    """Points of the level part of an edge."""
    bend = _bend(start[0], end[0])
    for share in range(1, 20):
        yield bend + (end[0] - bend) * share / 20, end[1]


def _hit(ends: dict[Edge, tuple[Point, Point]], at: Point) -> Edge | None:
    """The strongest edge of the nearest to a point."""
    best, least = None, NEAR
    for edge, ((x0, y0), (x1, y1)) in ends.items():
        if not min(x0, x1) - 2 <= at[0] <= max(x0, x1) + 2:
            continue
        done = min(1.0, abs(at[0] - x0) / max(1.0, abs(_bend(x0, x1) - x0)))
        away = abs(at[1] - (y0 + (y1 - y0) * (1 - (1 - done) ** 3)))
        if away <= least:
            best, least = edge, away
    return best


def _tokens(flow: Flow, drawn: Drawn, every: int) -> Iterator[Claim]:
    """How many edges lead on from each token, and what its strongest carries of it."""
    for at, stack in enumerate(flow.stacks):
        for token, label in enumerate(flow.tokens(stack)):
            said = drawn.point(drawn.token(at, token))
            assert said.startswith(f"Where {label} goes: "), said
            walk = flow.onwards(stack, token)
            yield from _count(f"from {label}", drawn, walk, THRESHOLDS[0], every)
