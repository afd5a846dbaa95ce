"""What the pages of the section Look show, claim by claim."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import torch
from playwright.sync_api import expect
from tokenizers.pre_tokenizers import ByteLevel

from explorer import learnt
from tests.browser.truth import core
from tests.browser.truth.screen import Claim, bars, cell, grid, rows, said, step_of
from tests.browser.visiting import Visitor

QUERY, KEY = 7, 6


def a_cell(
    visitor: Visitor, key: str, values: torch.Tensor, query: int, at: int, exact: bool = False
) -> Claim:
    """A cell of the picture of these values; `exact` where no codes are sent."""
    shown, step = cell(visitor, key, query, at), 0.0 if exact else step_of(values)
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


def learning(visitor: Visitor) -> list[Claim]:
    """Neighbours in the text before anything is merged, counted byte by byte."""
    words = ByteLevel(add_prefix_space=False).pre_tokenize_str(learnt.shipped(learnt.TRANSLATION))
    counted = Counter(pair for word, _ in words for pair in pairwise(word))
    (length,) = said(visitor, r"The text is ([\d,]+) tokens long")
    made = [Claim("tokens of the text", length, sum(len(word) for word, _ in words))]
    for first, second, _, times in grid(visitor)[:8]:
        pair = first.replace("␣", "Ġ"), second.replace("␣", "Ġ")
        made.append(Claim(f"{first} {second}", times, counted[pair]))
    assert [claim.true for claim in made[1:]] == [n for _, n in counted.most_common(8)]
    return made


def positions(visitor: Visitor) -> list[Claim]:
    table = torch.tensor([[core.sinusoid(p, d, 128) for d in range(128)] for p in range(48)])
    return [
        a_cell(visitor, "positions_table", table, 3, 1),
        a_cell(visitor, "products", table @ table.mT, 3, 5),
        Claim("one turn", said(visitor, r"One turn takes ([\d.]+)")[0], 2 * math.pi),
    ]


def attention(visitor: Visitor) -> list[Claim]:
    return [a_cell(visitor, "attention_head", core.weights(), *at) for at in [(7, 6), (4, 1)]]


def heads(visitor: Visitor) -> list[Claim]:
    place, of, value = said(visitor, r"(\d+) of (\d+) by previous, highest first: ([\d.]+)")
    every = [
        float(core.weights(layer, head).diagonal(-1).mean())
        for layer in range(2)
        for head in range(4)
    ]
    mine = every[core.LAYER * 4 + core.HEAD]
    return [
        Claim("place", place, 1 + sum(other > mine for other in every)),
        Claim("heads", of, 8),
        Claim("previous", value, mine),
        a_cell(visitor, "found_head", core.weights(), 5, 4),
    ]


def stages(visitor: Visitor) -> list[Claim]:
    visitor.drawn("stages")
    sentence = visitor.widget("stages").locator(".sentence").first
    expect(sentence).to_contain_text("attends to")
    shown = sentence.inner_text().rpartition(":")[2]
    return [Claim("weight of the held cell", shown, float(core.weights()[QUERY, KEY]))]


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
        visitor.open(f"/walk?{core.ADDRESS}&stage={stage}")
        cells = [(2, 3), (5, 1)]
        made += [a_cell(visitor, "walk_values", value, *cell, exact=True) for cell in cells]
    return made


def decoding(visitor: Visitor) -> list[Claim]:
    visitor.drawn("stages")
    lines = visitor.widget("stages").locator("tbody tr").all()[:5]
    best = core.chances().topk(5)
    made = []
    for line, index, chance in zip(lines, best.indices, best.values, strict=True):
        logit, share, *_ = line.locator("td").all_text_contents()
        name = core.label(int(index))
        made.append(Claim(f"logit of {name}", logit, float(core.logits()[-1, index])))
        made.append(Claim(f"chance of {name}", share, float(chance)))
    return made


def writing(visitor: Visitor) -> list[Claim]:
    return [a_cell(visitor, "written_head", core.weights(), 7, 6), *chances(visitor)]


def masks(visitor: Visitor) -> list[Claim]:
    return [
        a_cell(visitor, "scores", core.scores(), 2, 5),
        a_cell(visitor, "weights", core.weights(), 7, 6),
    ]
