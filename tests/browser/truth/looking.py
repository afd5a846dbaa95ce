"""What the pages of the section Look show, claim by claim."""

from __future__ import annotations

import math
import re

import torch
from playwright.sync_api import expect

from models import trace
from models.trace import CHEAP_SITES
from tests.browser.truth import core
from tests.browser.truth.screen import (
    Claim,
    bars,
    cell,
    grid,
    painted,
    rows,
    said,
    step_of,
    walked_to,
)
from tests.browser.visiting import Visitor

QUERY, KEY, NUMBER = 7, 6, 3
CHOOSES = ("likeness", "heads_off", "head_statistics")
"""Pictures in which a click chooses a cell."""
N = r"\(?(−?[\d.]+)\)?"
PRODUCT = rf"\\underbrace\{{{N} \\cdot {N}\}}_\{{y_\{{(\d+)\}} w_\{{\d+\}}\}}"
SUM = (
    rf"{N} = {PRODUCT} \+ {PRODUCT} \+ \\underbrace\{{{N}\}}_\{{([\d,]+)\\text\{{ more\}}\}}"
    rf" \+ \\underbrace\{{{N}\}}_\{{b\}}"
)
"""A number as a sum in LaTeX: two products, the others added up, and the bias."""


def a_cell(
    visitor: Visitor, key: str, values: torch.Tensor, query: int, at: int, exact: bool = False
) -> Claim:
    """A cell of the picture of these values; `exact` where no codes are sent."""
    step = 0.0 if exact else step_of(values)
    shown = cell(visitor, key, query, at, chooses=key in CHOOSES)
    return Claim(f"{key}: row {query}, column {at}", shown, float(values[query, at]), step)


def chances(visitor: Visitor) -> list[Claim]:
    """The bars of the next token, the likeliest first."""
    best = core.chances().topk(8)
    named = [core.label(int(index)) for index in best.indices]
    shown = bars(visitor)[:8]
    assert [label for label, _ in shown] == named
    return [
        Claim(f"chance of {label}", value, float(true))
        for (label, value), true in zip(shown, best.values, strict=True)
    ]


def start(visitor: Visitor) -> list[Claim]:
    cells = [(7, 6), (7, 0), (3, 2)]
    made = [a_cell(visitor, "start_head", core.weights(), *at) for at in cells]
    return [*made, *chances(visitor)]


def tokens(visitor: Visitor) -> list[Claim]:
    shown = grid(visitor)
    assert [line[1] for line in shown] == core.labels()
    return [
        Claim(f"number of {line[1]}", line[2], true)
        for line, true in zip(shown, core.ids()[0].tolist(), strict=True)
    ]


def attention(visitor: Visitor) -> list[Claim]:
    return [a_cell(visitor, "attention_head", core.weights(), *at) for at in [(7, 6), (4, 1)]]


def lines(visitor: Visitor) -> list[Claim]:
    """The strongest line of a query, and of a key: the chosen head alone is drawn."""
    visitor.drawn("attention_lines")
    view, weights = visitor.widget("attention_lines"), core.weights()
    made = []
    for turn, at, held in [("ArrowLeft", QUERY, weights[QUERY]), ("ArrowRight", 2, weights[:, 2])]:
        view.locator(".stage").focus()
        for press in ["Escape", turn, *["ArrowDown"] * at]:
            visitor.page.keyboard.press(press)
        painted(visitor)
        sentence = view.locator(".sentence")
        expect(sentence).to_contain_text(core.labels()[at])
        strongest, _, head = sentence.inner_text().rpartition(":")[2].partition(", head ")
        assert int(head) == core.HEAD
        other = core.labels()[int(held.argmax())]
        assert other in sentence.inner_text()
        made.append(Claim(f"{turn} {at}: {other}", strongest, float(held.max()), step_of(weights)))
        visitor.page.keyboard.press("Escape")
    return made


def two_way(visitor: Visitor) -> list[Claim]:
    """Whom a token looks at most and who looks at it most, each with its place and its weight."""
    visitor.drawn("attention_tokens")
    view, weights = visitor.widget("attention_tokens"), core.weights()
    view.locator(f'.chip[data-side="0"][data-at="{KEY}"]').hover()
    expect(view.locator(".sentence")).to_contain_text(f"is token {KEY} of {len(weights)}")
    made = []
    for half, values in [("above", weights[KEY]), ("below", weights[:, KEY])]:
        partners = view.locator(f".{half} .said .partner")
        places = [int(place) for place in partners.locator(".place").all_inner_texts()]
        shown = partners.locator(".value").all_inner_texts()
        assert places == values.argsort(descending=True).tolist()[: len(places)]
        made += [
            Claim(f"{half}: {place}", value, float(values[place]), step_of(weights))
            for place, value in zip(places, shown, strict=True)
        ]
    assert len(made) > 3
    return made


def stages(visitor: Visitor) -> list[Claim]:
    """The held cell in every stage, and where the colours of the others end."""
    visitor.drawn("stages")
    view = visitor.widget("stages")
    sentence = view.locator(".sentence").first
    expect(sentence).to_contain_text("attends to")
    q, k, v = (core.seen()[f"{core.SITE}.{name}"][0, core.HEAD].double() for name in "qkv")
    held = {
        "dots": q @ k.mT,
        "scaled": core.scores(),
        "logits": core.scores(),
        "weights": core.weights(),
        "added": torch.zeros(len(q), len(k)),
    }
    made = [Claim("the sentence", sentence.inner_text().rpartition(":")[2], _held(held["weights"]))]
    for of, values in held.items():
        now = view.locator(f'.panel[data-of="{of}"] .now').inner_text()
        made.append(Claim(f"{of}, held", now, _held(values)))
    ends = {"q": q, "k": k, "v": v, "out": core.weights() @ v, "dots": q @ k.mT}
    for of, values in ends.items():
        end = view.locator(f'.panel[data-of="{of}"] .legend span').last.inner_text()
        made.append(Claim(f"{of}, the largest", end, float(values.abs().max())))
    return made


def _held(values: torch.Tensor) -> float:
    return float(values[QUERY, KEY])


def pairs(visitor: Visitor) -> list[Claim]:
    steps = dict(rows(visitor, 0))
    q, k = (core.seen()[f"{core.SITE}.{name}"][0, core.HEAD].double() for name in "qk")
    scores, weights = core.scores()[QUERY], core.weights()[QUERY]
    exps = (scores - scores.max()).exp()
    made = [
        Claim("q·k", steps["q·k, the sum of 32 products"], float(q[QUERY] @ k[KEY])),
        Claim("÷ √32", steps["÷ √32: the score"], float(scores[KEY])),
        Claim("e^", steps["e^(this − largest)"], float(exps[KEY])),
        Claim("sum", steps["÷ the same, summed over 8 keys"], float(exps.sum())),
        Claim("weight", steps["weight"], float(weights[KEY])),
    ]
    for name, score, weight in grid(visitor):
        place = int(name.partition(" ")[0])
        made.append(Claim(f"score of {name}", score, float(scores[place])))
        made.append(Claim(f"weight of {name}", weight, float(weights[place])))
    onward = dict(rows(visitor, 1))
    number = int(visitor.widget("number").locator("input").input_value())
    block = core.model().last_stack.blocks[core.LAYER].self_attn
    given = core.seen()[f"{core.SITE}.head_out"][0, core.HEAD, QUERY].double()
    to_stream = block.o_proj.weight[number, core.HEAD * 32 :][:32].detach().double()
    before = core.seen()[f"decoder.{core.LAYER}.resid_pre"][0, QUERY, number]
    after = core.seen()[f"decoder.{core.LAYER}.resid_mid"][0, QUERY, number]
    return [
        *made,
        Claim("head writes", onward["all keys: what this head writes"], float(to_stream @ given)),
        Claim("the stream before", onward["the stream before"], float(before)),
        Claim("the stream after", onward["the stream after"], float(after)),
    ]


def lens(visitor: Visitor) -> list[Claim]:
    made = []
    for layer, line in enumerate(grid(visitor, 0)):
        best = core.after(layer).softmax(-1).topk(5)
        for shown, true, index in zip(line[1:], best.values, best.indices, strict=True):
            name, _, chance = shown.rpartition("  ")
            assert name == core.label(int(index))
            made.append(Claim(f"after {line[0]}: {name}", chance, float(true)))
    sums = dict(grid(visitor, 1))
    option = int(core.logits()[-1].argmax())
    made.append(Claim("logit", sums["logit"], float(core.logits()[-1, option])))
    made.append(Claim("all heads", sums["all heads"], core.heads_in_logit(option)))
    return made


def walk(visitor: Visitor) -> list[Claim]:
    """The held head's weights, its query, and the stream after a layer."""
    made = [a_cell(visitor, "walk_values", core.weights(), QUERY, KEY, exact=True)]
    values = {
        f"{core.SITE}.q": core.seen()[f"{core.SITE}.q"][0, core.HEAD],
        "decoder.0.resid_post": core.seen()["decoder.0.resid_post"][0],
    }
    for stage, value in values.items():
        visitor.open(f"/walk?{core.ADDRESS}&stage={stage}&decoder_token={QUERY}&number={NUMBER}")
        if stage.endswith(".q"):
            made += _as_a_sum(visitor)
        cells = [(2, 3), (5, 1)]
        made += [a_cell(visitor, "walk_values", value, *cell, exact=True) for cell in cells]
    return made


def _as_a_sum(visitor: Visitor) -> list[Claim]:
    """One number of the query as its sum, and how far the pass is from the formula.

    How far is a matter of rounding, so it is measured in a pass that shows as little as the page's.
    """
    block = core.model().last_stack.blocks[core.LAYER]
    seen = trace(core.model(), core.ids(), sites=CHEAP_SITES)
    with torch.no_grad():
        normed = block.self_residual.norm(seen[f"decoder.{core.LAYER}.resid_pre"])[0, QUERY]
    mine = slice(core.HEAD * 32, (core.HEAD + 1) * 32)
    w, b = (each.detach()[mine].double() for each in block.self_attn.q_proj.parameters())
    products = normed.double() * w[NUMBER]
    most = products.abs().argsort(descending=True)
    passed = seen[f"{core.SITE}.q"][0, core.HEAD, QUERY].double()
    apart = float((passed - (normed.double() @ w.mT + b)).abs().max() / passed.abs().max())
    (shown,) = said(visitor, r"differs by at most (\S+) of its largest number")
    made = [Claim("pass and formula apart", shown, apart)]
    text = visitor.page.locator("annotation").last.text_content() or ""
    read = re.search(SUM, text.replace("-", "−").replace("{,}", ","))
    assert read is not None, text
    value, one, by_one, first, two, by_two, second, rest, more, bias = read.groups()
    assert [int(first), int(second)] == most[:2].tolist()
    true = {
        "the number": (value, float(passed[NUMBER])),
        "first": (one, float(normed[most[0]])),
        "its weight": (by_one, float(w[NUMBER, most[0]])),
        "second": (two, float(normed[most[1]])),
        "the second's weight": (by_two, float(w[NUMBER, most[1]])),
        "all others": (rest, float(products[most[2:]].sum())),
        "so many others": (more, len(products) - 2),
        "bias": (bias, float(b[NUMBER])),
    }
    return [*made, *(Claim(f"the sum: {what}", *both) for what, both in true.items())]


def writing(visitor: Visitor) -> list[Claim]:
    return [a_cell(visitor, "written_head", core.weights(), 7, 6), *chances(visitor)]


def masks(visitor: Visitor) -> list[Claim]:
    return [
        a_cell(visitor, "scores", core.scores(), 2, 5),
        a_cell(visitor, "weights", core.weights(), 7, 6),
    ]


def padded(visitor: Visitor) -> list[Claim]:
    """The sentence's beginning, filled up to its length: nobody looks at filler."""
    beginning = core.tokenizer().encode("To be, or")
    ids = torch.zeros_like(core.ids())
    assert core.model().config.pad_id == 0
    ids[0, : len(beginning)] = torch.tensor([token.id for token in beginning])
    scores = core.scores_of(trace(core.model(), ids))
    may_not = torch.ones_like(scores).triu(1).bool() | (ids == 0)
    weights = scores.masked_fill(may_not, -math.inf).softmax(-1)
    return [
        a_cell(visitor, "scores", scores, 2, 6),
        a_cell(visitor, "weights", weights, 3, 1),
        a_cell(visitor, "weights", weights, 7, 2),
        *_looked_at(visitor, "mask_both", ~may_not),
    ]


def student(visitor: Visitor) -> list[Claim]:
    """The handout's example is no pass: its five words look at themselves and back."""
    return _looked_at(visitor, "mask_both", torch.ones(5, 5).tril().bool())


def _looked_at(visitor: Visitor, key: str, mask: torch.Tensor) -> list[Claim]:
    """What a picture of a mask says of some cells; 1 stands for "may look", 0 for "may not"."""
    made = []
    for row, column in [(1, 0), (2, 2), (1, 3), (4, 4), (0, 4)]:
        told = walked_to(visitor, key, row, column)
        expect(told).to_contain_text(" may ")
        may = "0" if " may not look at " in told.inner_text() else "1"
        made.append(Claim(f"{key}: row {row}, column {column}", may, int(mask[row, column])))
    return made
