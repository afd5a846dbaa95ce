"""Every page shows the numbers of the model: read in the browser, made again from the core."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from tokenizers.pre_tokenizers import ByteLevel

from explorer import learnt
from models import load_checkpoint
from models.interventions import Scale
from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth import core
from tests.browser.truth.screen import Claim, bars, cell, grid, rows, said
from tests.browser.visiting import Visitor
from tests.source import ROOT

QUERY, KEY = 7, 6
OFF = Scale(f"{core.SITE}.head_out", 0.0, core.HEAD)


def a_cell(visitor: Visitor, key: str, values: torch.Tensor, query: int, at: int) -> Claim:
    shown = cell(visitor, key, query, at)
    return Claim(f"{key}: row {query}, column {at}", shown, float(values[query, at]))


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
        Claim("÷ √32", steps["÷ √32"], float(scores[KEY])),
        Claim("e^", steps["e^(this − largest)"], float(exps[KEY])),
        Claim("sum", steps["÷ the same, summed over 8 keys"], float(exps.sum())),
        Claim("weight", steps["weight"], float(weights[KEY])),
    ]
    for name, logit, weight in grid(visitor):
        place = int(name.partition(" ")[0])
        made.append(Claim(f"logit of {name}", logit, float(scores[place])))
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
    made = [a_cell(visitor, "walk_values", core.weights(), QUERY, KEY)]
    values = {
        f"{core.SITE}.q": core.seen()[f"{core.SITE}.q"][0, core.HEAD],
        "decoder.0.resid_post": core.seen()["decoder.0.resid_post"][0],
    }
    for stage, value in values.items():
        visitor.open(f"/walk?{core.ADDRESS}&stage={stage}")
        made += [a_cell(visitor, "walk_values", value, row, at) for row, at in [(2, 3), (5, 1)]]
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


def edits(visitor: Visitor) -> list[Claim]:
    visitor.page.get_by_role("button", name="Ablate layer 1, head 2").click()
    expect(visitor.page.get_by_text("Nothing is changed yet")).to_have_count(0)
    visitor.rest()
    facts = dict(grid(visitor, 0))
    before, after = core.logits(), core.logits(OFF)
    best = int(before[-1].argmax())
    everywhere = [core.kl(p, q) for p, q in zip(before, after, strict=True)]
    return [
        Claim("KL here", facts["KL here"], everywhere[-1]),
        Claim("mean KL", facts["mean KL over positions"], sum(everywhere) / len(everywhere)),
        Claim("loss before", facts["loss before"], core.loss(before)),
        Claim("loss after", facts["loss after"], core.loss(after)),
        Claim("logit before", facts["watched logit before"], float(before[-1, best])),
        Claim("logit after", facts["watched logit after"], float(after[-1, best])),
    ]


def compare(visitor: Visitor) -> list[Claim]:
    first, second = core.weights(), core.weights(1, 3)
    bits = said(visitor, r"Their rows are ([\d.]+) bits apart")[0]
    return [
        Claim("bits apart", bits, core.apart(first, second)),
        a_cell(visitor, "map_second", second, 5, 2),
        a_cell(visitor, "map_difference", second - first, 7, 6),
    ]


def museum(visitor: Visitor) -> list[Claim]:
    """The doubled exponent at the document's own width of 512."""
    shown = next(line for line in rows(visitor, 2) if line[0].startswith("PE(1)"))
    right = [core.sinusoid(1, d, 512) for d in range(4)]
    wrong = [
        f(1 / 10_000 ** (2 * (i + odd) / 512))
        for i in (0, 2)
        for odd, f in ((0, math.sin), (1, math.cos))
    ]
    return [
        Claim(f"PE(1)[{at}]", each, true)
        for numbers, truth in ((shown[1], wrong), (shown[2], right))
        for at, (each, true) in enumerate(zip(numbers.split(), truth, strict=True))
    ]


def train(visitor: Visitor) -> list[Claim]:
    folder = ROOT / "models" / "checkpoints" / "reverse"
    model = load_checkpoint(folder).model
    visitor.drawn("watched")
    head, score = said(visitor, r"Layer 0, head (\d) · ([\d.]+) on the pattern")
    assert 0 <= int(head) < model.config.n_heads
    return [Claim("score on the pattern", score, core.reversing(folder, "reverse", int(head)))]


def checkpoints(visitor: Visitor) -> list[Claim]:
    made = []
    for name in ("translation", "shakespeare", "reviews", "negation"):
        model = load_checkpoint(ROOT / "models" / "checkpoints" / name).model
        shown = said(visitor, rf"{name}\s+[^\n]+\s+ours\s+([\d,]+)")[0]
        made.append(Claim(f"parameters of {name}", shown, parameters(model)))
    ledger = {line[0]: line for line in rows(visitor)[1:]}
    model = core.model()
    made.append(Claim("all parameters", ledger["all parameters"][-1], parameters(model)))
    attention = model.last_stack.blocks[0].self_attn
    made.append(Claim("self-attention", ledger["self-attention"][-1], parameters(attention)))
    visitor.choose("Ledger of", "web tutorial, encoder")
    preset = Transformer(PRESETS["web tutorial, encoder"]())
    shown = said(visitor, r"(520,\d+) parameters")[0]
    return [*made, Claim("web tutorial's encoder", shown, parameters(preset))]


def parameters(module: torch.nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


TRUTHS: dict[str, tuple[Callable[[Visitor], list[Claim]], str]] = {
    "start": (start, ""),
    "tokens": (tokens, ""),
    "learning": (learning, "&learn_rules=50&learn_step=0"),
    "positions": (positions, "&scheme=Sinusoidal"),
    "attention": (attention, ""),
    "heads": (heads, "&metric=Previous"),
    "stages": (stages, ""),
    "pairs": (pairs, "&query=7+·+␣be&key=6+·+␣to"),
    "lens": (lens, ""),
    "walk": (walk, f"&stage={core.SITE}.weights"),
    "writing": (writing, ""),
    "decoding": (decoding, ""),
    "masks": (masks, "&example=Your+sentence"),
    "edits": (edits, ""),
    "compare": (compare, ""),
    "museum": (museum, ""),
    "train": (train, ""),
    "checkpoints": (checkpoints, ""),
}


def open_page(visitor: Visitor, page: str) -> None:
    name = "" if page == "start" else page
    visitor.open(f"/{name}?{core.ADDRESS}{TRUTHS[page][1]}")
    visitor.no_traceback()


@pytest.mark.parametrize("page", TRUTHS)
def test_every_number_is_the_model_s(visitor: Visitor, page: str) -> None:
    open_page(visitor, page)
    claims = TRUTHS[page][0](visitor)
    assert claims
    assert [claim.fault() for claim in claims if claim.fault()] == []


def test_no_page_is_left_out() -> None:
    assert {path.stem for path in Path(ROOT / "pages").glob("*/*.py")} == set(TRUTHS)


PLANT = """([from, to]) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let found = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.textContent.trim() === from) { node.textContent = to; found += 1; }
  }
  return found;
}"""


@pytest.mark.parametrize(
    ("page", "right", "wrong"),
    [
        ("pairs", lambda: f"{float(core.scores()[QUERY, KEY]):.3f}", "0.319"),
        ("tokens", lambda: str(int(core.ids()[0, 4])), "530"),
    ],
    ids=["a score", "a token"],
)
def test_a_planted_false_number_is_seen(
    visitor: Visitor, page: str, right: Callable[[], str], wrong: str
) -> None:
    open_page(visitor, page)
    assert not [claim.fault() for claim in TRUTHS[page][0](visitor) if claim.fault()]
    assert visitor.page.evaluate(PLANT, [right(), wrong]) >= 1
    faults = [claim.fault() for claim in TRUTHS[page][0](visitor) if claim.fault()]
    assert any(wrong in fault for fault in faults)
