"""What the pages of the section Look show, and the page Masks, claim by claim."""

import math
import re
from dataclasses import replace

import torch
from playwright.sync_api import expect
from torch import Tensor
from torch.nn.functional import linear

from models import trace
from models.trace import CHEAP_SITES
from tests.browser.truth import flowing
from tests.browser.truth.core import SHAKESPEARE, TRANSLATION, Case, scores_in
from tests.browser.truth.screen import (
    Claim,
    bars,
    board,
    cells,
    claims,
    grid,
    listed,
    painted,
    pointed_at,
    said,
    step_of,
)
from tests.browser.visiting import Visitor

NUMBER = 3
"""Of the query's vector, which the page shows as a sum."""


def chances(visitor: Visitor, case: Case = SHAKESPEARE) -> list[Claim]:
    """The bars of the next token or of the classes, the likeliest first."""
    shown = bars(visitor)[:8]
    best = case.chances.topk(len(shown))
    if case is SHAKESPEARE:
        assert [label for label, _ in shown] == [case.label(int(each)) for each in best.indices]
    return [
        Claim(f"chance of {label}", value, float(true))
        for (label, value), true in zip(shown, best.values, strict=True)
    ]


def start(visitor: Visitor) -> list[Claim]:
    head = cells(visitor, "start_head", SHAKESPEARE.weights, (7, 6), (7, 0), (3, 2))
    return [*head, *chances(visitor), *flowing.picture(SHAKESPEARE, visitor)]


def tokens(visitor: Visitor) -> list[Claim]:
    made = []
    table = grid(visitor, "bytes of the characters")
    for line, true in zip(table, SHAKESPEARE.ids[0].tolist(), strict=True):
        assert line[1] == SHAKESPEARE.label(true)
        made.append(Claim(f"number of {line[1]}", line[2], true))
    return made


def attention(case: Case, visitor: Visitor) -> list[Claim]:
    """Cells of the head; of a classifier also how sure it is."""
    made = cells(visitor, "attention_head", case.weights, (case.query, case.key), (4, 0))
    return made if case.logits.dim() > 1 else made + chances(visitor, case)


def lines(visitor: Visitor) -> list[Claim]:
    """The strongest line of a query, and of a key: the chosen head alone is drawn."""
    visitor.drawn("attention_lines")
    view, weights = visitor.widget("attention_lines"), SHAKESPEARE.weights
    sentence, made = view.locator(".sentence"), []
    labels = [SHAKESPEARE.label(number) for number in SHAKESPEARE.ids[0].tolist()]
    for turn, at, held in [("ArrowLeft", 7, weights[7]), ("ArrowRight", 2, weights[:, 2])]:
        view.locator(".stage").focus()
        for press in ["Escape", turn, *["ArrowDown"] * at]:
            visitor.page.keyboard.press(press)
        painted(visitor)
        expect(sentence).to_contain_text(labels[at])
        strongest, _, head = sentence.inner_text().rpartition(":")[2].partition(", head ")
        assert int(head) == SHAKESPEARE.head
        other = labels[int(held.argmax())]
        assert other in sentence.inner_text()
        made.append(Claim(f"{turn} {at}: {other}", strongest, float(held.max()), step_of(weights)))
        visitor.page.keyboard.press("Escape")
    return made


def two_way(visitor: Visitor) -> list[Claim]:
    """What a token attends to most and what attends to it most, with places and weights."""
    visitor.drawn("attention_tokens")
    view, weights, at = visitor.widget("attention_tokens"), SHAKESPEARE.weights, SHAKESPEARE.key
    view.locator(f'.chip[data-side="0"][data-at="{at}"]').hover()
    expect(view.locator(".sentence")).to_contain_text(f"is token {at} of {len(weights)}")
    made = []
    for half, values in [("above", weights[at]), ("below", weights[:, at])]:
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


def stages(case: Case, visitor: Visitor) -> list[Claim]:
    """The pinned cell in every step, and where the colours of the others end."""
    visitor.drawn("stages")
    view = visitor.widget("stages")
    sentence = view.locator(".sentence").first
    expect(sentence).to_contain_text("pinned")
    q, k, v = (case.of_head(name) for name in "qkv")
    held = {
        "dots": q @ k.mT,
        "scaled": case.scores,
        "added": torch.zeros(len(q), len(k)),
        "logits": case.scores,
        "weights": case.weights,
    }
    weight = sentence.inner_text().rpartition(":")[2]
    made = [Claim("the sentence", weight, float(case.weights[case.query, case.key]))]
    for of, values in held.items():
        now = view.locator(f'.panel[data-of="{of}"] .now').inner_text()
        made.append(Claim(f"{of}, held", now, float(values[case.query, case.key])))
    for of, values in {"q": q, "k": k, "v": v, "out": case.weights @ v, "dots": q @ k.mT}.items():
        end = view.locator(f'.panel[data-of="{of}"] .legend span').last.inner_text()
        made.append(Claim(f"{of}, the largest", end, float(values.abs().max())))
    return made


def pairs(case: Case, visitor: Visitor) -> list[Claim]:
    """The ledger of one pair, its row of keys, and the way into the stream."""
    q, k = case.of_head("q")[case.query], case.of_head("k")
    scores, weights, width = case.scores[case.query], case.weights[case.query], len(q)
    exps = (scores - scores.max()).exp()
    keys = int((weights > 0).sum())
    true = {
        f"q·k, the sum of {width} products": q @ k[case.key],
        f"÷ √{width}: the score": scores[case.key],
        "e^(score − largest)": exps[case.key],
        f"÷ sum of these over {keys} keys": exps[weights > 0].sum(),
        "weight": weights[case.key],
    }
    made = listed(visitor, true)
    for name, score, weight in grid(visitor, "key", "weight"):
        place = int(name.partition(" ")[0])
        made.append(Claim(f"score of {name}", score, float(scores[place])))
        made.append(Claim(f"weight of {name}", weight, float(weights[place])))
    number = int(visitor.widget("number").locator("input").input_value())
    mine = slice(case.head * width, (case.head + 1) * width)
    to_stream = case.attention.o_proj.weight[number, mine].detach().double()
    around = "resid_mid resid_cross" if case is TRANSLATION else "resid_pre resid_mid"
    before, after = (
        case.seen[f"{case.stack}.{case.layer}.{site}"][0, case.query, number]
        for site in around.split()
    )
    true = {
        "all keys: output of this head": to_stream @ case.of_head("head_out")[case.query],
        "residual stream before": before,
        "residual stream after": after,
    }
    return made + listed(visitor, true)


def lens(case: Case, visitor: Visitor) -> list[Claim]:
    """What would be answered after each layer, and what all heads give the likeliest's logit."""
    made = []
    for layer, line in enumerate(grid(visitor, "after")):
        best = case.after(layer).softmax(-1).topk(len(line) - 1)
        for shown, true, index in zip(line[1:], best.values, best.indices, strict=True):
            name, _, chance = shown.rpartition("  ")
            assert case.logits.dim() == 1 or name == case.label(int(index))
            made.append(Claim(f"after {line[0]}: {name}", chance, float(true)))
    sums, option = dict(grid(visitor, "what", "logits")), int(case.answer.argmax())
    kinds = {"all heads": "self_attn"}
    if case is TRANSLATION:
        kinds["all heads of cross-attention"] = "cross_attn"
    for name, kind in kinds.items():
        made.append(Claim(name, sums[name], case.heads_in_logit(option, kind)))
    return [*made, Claim("logit", sums["logit"], float(case.answer[option]))]


def generation(visitor: Visitor) -> list[Claim]:
    """The likeliest words of a translation's first step."""
    best = TRANSLATION.chances.topk(5)
    made = []
    for (name, logit, chance, *_), index, true in zip(
        board(visitor, "stages"), best.indices, best.values, strict=False
    ):
        assert name == TRANSLATION.label(int(index))
        made.append(Claim(f"logit of {name}", logit, float(TRANSLATION.answer[index])))
        made.append(Claim(f"chance of {name}", chance, float(true)))
    return made


def forward_pass(case: Case, visitor: Visitor) -> list[Claim]:
    """The head's weights; its query; a residual stream, or the probabilities of the classes."""
    made = cells(visitor, "stage_values", case.weights, (case.query, case.key), step=0.0)
    projected = f"{case.site}.q_proj" if _turns(case) else f"{case.site}.q"
    stages = {
        "decoder": sorted({projected, f"{case.site}.q", "decoder.0.resid_post"}),
        "encoder-decoder": ["encoder.0.resid_post"],
        "encoder": ["probabilities"],
    }
    for stage in stages[case.model.config.kind]:
        asks = f"stage={stage}&decoder_token={case.query}&number={NUMBER}"
        visitor.open(f"/forward_pass?{case.address}&{asks}")
        if stage == "probabilities":
            values, places = case.chances.sort(descending=True).values[None], [(0, 0), (0, 2)]
        elif stage == projected:
            made += _as_a_sum(case, visitor)
            values, places = _projected(case)[0], [(2, 3), (5, 1)]
        elif stage.endswith(".q"):
            values, places = case.of_head("q"), [(2, 3), (5, 1)]
        else:
            values, places = case.seen[stage][0], [(2, 3), (5, 1)]
        made += cells(visitor, "stage_values", values, *places, step=0.0)
    return made


def _turns(case: Case) -> bool:
    """Whether positions turn the queries after their projection."""
    return bool(case.model.config.positions == "rotary")


def _projected(case: Case) -> tuple[Tensor, Tensor]:
    """The head's queries before positions turn them, and what the projection reads.

    How far they are from float64 is a matter of rounding, so the pass records as little as the
    page's. Where queries are turned it records no others: the head's own rows make them.
    """
    block = case.model.last_stack.blocks[case.layer]
    seen = trace(case.model, case.ids, sites=CHEAP_SITES)
    with torch.no_grad():
        normed = block.self_residual.norm(seen[f"{case.stack}.{case.layer}.resid_pre"])[0]
        if _turns(case):
            return linear(normed, *_of_queries(case)), normed
        return seen[f"{case.site}.q"][0, case.head], normed


def _of_queries(case: Case) -> list[Tensor]:
    """The head's rows of the projection's weight and bias."""
    width = case.model.config.head_width
    mine = slice(case.head * width, (case.head + 1) * width)
    return [each.detach()[mine] for each in case.attention.q_proj.parameters()]


def _as_a_sum(case: Case, visitor: Visitor) -> list[Claim]:
    """One number of the query as its sum, and how far the row is from the same in float64."""
    rows, read = _projected(case)
    passed, normed = rows[case.query].double(), read[case.query]
    w, b = (each.double() for each in _of_queries(case))
    products = normed.double() * w[NUMBER]
    most = products.abs().argsort(descending=True)
    apart = float((passed - (normed.double() @ w.mT + b)).abs().max() / passed.abs().max())
    (shown,) = said(visitor, r"max relative error (\S+)\.")
    made = [Claim("max relative error", shown, apart)]
    text = visitor.page.locator("annotation").last.text_content() or ""
    numbers = re.findall(r"−?\d[\d.,]*", text.replace("-", "−").replace("{,}", ","))
    largest, next_to, *others = most.tolist()
    true = {
        "the number": passed[NUMBER],
        "first": normed[largest],
        "its weight": w[NUMBER, largest],
        "its place": largest,
        "its place again": largest,
        "second": normed[next_to],
        "the second's weight": w[NUMBER, next_to],
        "the second's place": next_to,
        "the second's place again": next_to,
        "all others": products[others].sum(),
        "so many others": len(others),
        "bias": b[NUMBER],
    }
    return made + claims(true, numbers)


def masks(visitor: Visitor) -> list[Claim]:
    scores = cells(visitor, "scores", SHAKESPEARE.scores, (2, 5))
    return scores + cells(visitor, "weights", SHAKESPEARE.weights, (7, 6))


def padded(visitor: Visitor) -> list[Claim]:
    """The sentence's beginning, filled up to its length: padding is masked."""
    beginning = replace(SHAKESPEARE, text="To be, or").ids
    ids = torch.zeros_like(SHAKESPEARE.ids)
    assert SHAKESPEARE.model.config.pad_id == 0
    ids[:, : beginning.shape[1]] = beginning
    scores = scores_in(trace(SHAKESPEARE.model, ids), SHAKESPEARE.site, SHAKESPEARE.head)
    may_not = torch.ones_like(scores).triu(1).bool() | (ids == 0)
    weights = scores.masked_fill(may_not, -math.inf).softmax(-1)
    return [
        *cells(visitor, "scores", scores, (2, 6)),
        *cells(visitor, "weights", weights, (3, 1), (7, 2)),
        *_looked_at(visitor, ~may_not),
    ]


def student(visitor: Visitor) -> list[Claim]:
    """The handout's example is no pass: its five words look at themselves and back."""
    return _looked_at(visitor, torch.ones(5, 5).tril().bool())


def _looked_at(visitor: Visitor, mask: torch.Tensor) -> list[Claim]:
    """What a picture of a mask says of some cells; 1 stands for "may attend", 0 for "masked"."""
    made = []
    for row, column in [(1, 0), (2, 2), (1, 3), (4, 4), (0, 4)]:
        told = pointed_at(visitor, "mask_both", row, column)
        assert " may attend to " in told or " is masked for " in told
        may = "0" if " is masked for " in told else "1"
        made.append(Claim(f"the mask: row {row}, column {column}", may, int(mask[row, column])))
    return made
