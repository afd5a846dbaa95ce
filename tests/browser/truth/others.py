"""What pages show of an encoder-decoder and of a classifier, each made again by plain torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from explorer.library import opened_from
from models import load_checkpoint, trace
from models.trace import Trace
from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, bars, grid, rows
from tests.browser.visiting import Visitor
from tests.source import ROOT

QUERY, KEY = 1, 2


@dataclass(frozen=True)
class Case:
    """A model of ours, the text it reads, and the attention that is looked at in layer 0."""

    name: str
    text: str
    part: str
    site: str
    head: int = 1

    @property
    def address(self) -> str:
        text = self.text.replace(" ", "+")
        return f"model={self.name}&text={text}&part={self.part}&layer=0&head={self.head}"

    @property
    def stack(self) -> str:
        return self.site.partition(".")[0]

    @property
    def attention(self) -> Any:
        return getattr(model(self.name).last_stack.blocks[0], self.site.rpartition(".")[2])


CROSS = Case("translation", "the black cat sees the white house", "Cross", "decoder.0.cross_attn")
CLASSES = Case("negation", "the film is not good", "Encoder", "encoder.0.self_attn")


@cache
def model(name: str) -> Any:
    return load_checkpoint(ROOT / "models" / "checkpoints" / name).model


@cache
def seen(case: Case) -> Trace:
    """The pass over the text, and over the answer where one is written."""
    source, reader = ids(case), model(case.name)
    if reader.config.kind != "encoder-decoder":
        return trace(reader, source)
    written = reader.generate(source, max_length=reader.config.max_len, greedy=True)
    return trace(reader, source, written[:, :-1])


def ids(case: Case) -> Tensor:
    """What the model reads of the text, (1, t)."""
    tokenizer = opened_from(ROOT / "models" / "checkpoints" / case.name, case.name).tokenizer
    return torch.tensor([[token.id for token in tokenizer.encode(case.text)]])


def met(case: Case) -> tuple[Tensor, Tensor]:
    """The queries and keys of the head."""
    q, k = (seen(case)[f"{case.site}.{name}"][0, case.head].double() for name in "qk")
    return q, k


def scores(case: Case) -> Tensor:
    return core.scores_of(seen(case), case.site, case.head)


def weights(case: Case) -> Tensor:
    """Nothing is forbidden: neither a source nor an encoder knows a mask."""
    return scores(case).softmax(-1)


def logits(case: Case) -> Tensor:
    """Of the first token that is written, or of the class."""
    given = seen(case).output[0].double()
    return given[0] if given.dim() > 1 else given


def named(case: Case, number: int) -> str:
    folder = ROOT / "models" / "checkpoints" / case.name
    return opened_from(folder, case.name).tokenizer.label(number)


def attention(case: Case, visitor: Visitor) -> list[Claim]:
    """Cells of the head; of a classifier also how sure it is."""
    made = [a_cell(visitor, "attention_head", weights(case), *at) for at in [(1, 2), (4, 0)]]
    if case is CROSS:
        return made
    sure = logits(case).softmax(-1).sort(descending=True).values
    return [
        *made,
        *(
            Claim(f"chance of {label}", shown, float(true))
            for (label, shown), true in zip(bars(visitor), sure, strict=True)
        ),
    ]


def pairs(case: Case, visitor: Visitor) -> list[Claim]:
    """The ledger of one pair, its row of keys, and the way into the stream."""
    steps, onward = dict(rows(visitor, 0)), dict(rows(visitor, 1))
    (q, k), row, shares = met(case), scores(case)[QUERY], weights(case)[QUERY]
    width, keys = q.shape[-1], len(k)
    exps = (row - row.max()).exp()
    made = [
        Claim("q·k", steps[f"q·k, the sum of {width} products"], float(q[QUERY] @ k[KEY])),
        Claim("÷ √d", steps[f"÷ √{width}: the score"], float(row[KEY])),
        Claim("e^", steps["e^(this − largest)"], float(exps[KEY])),
        Claim("sum", steps[f"÷ the same, summed over {keys} keys"], float(exps.sum())),
        Claim("weight", steps["weight"], float(shares[KEY])),
    ]
    for name, score, weight in grid(visitor):
        place = int(name.partition(" ")[0])
        made.append(Claim(f"score of {name}", score, float(row[place])))
        made.append(Claim(f"weight of {name}", weight, float(shares[place])))
    number = int(visitor.widget("number").locator("input").input_value())
    given = seen(case)[f"{case.site}.head_out"][0, case.head, QUERY].double()
    to_stream = case.attention.o_proj.weight[number, case.head * width :][:width].detach().double()
    around = ("resid_mid", "resid_cross") if case is CROSS else ("resid_pre", "resid_mid")
    before, after = (float(seen(case)[f"{case.stack}.0.{at}"][0, QUERY, number]) for at in around)
    return [
        *made,
        Claim("head writes", onward["all keys: what this head writes"], float(to_stream @ given)),
        Claim("the stream before", onward["the stream before"], before),
        Claim("the stream after", onward["the stream after"], after),
    ]


def stages(case: Case, visitor: Visitor) -> list[Claim]:
    """The held cell in every stage, and in the sentence over them."""
    visitor.drawn("stages")
    view, q_k = visitor.widget("stages"), met(case)
    true = {
        "dots": float(q_k[0][QUERY] @ q_k[1][KEY]),
        "scaled": float(scores(case)[QUERY, KEY]),
        "logits": float(scores(case)[QUERY, KEY]),
        "weights": float(weights(case)[QUERY, KEY]),
    }
    shown = {of: view.locator(f'.panel[data-of="{of}"] .now').inner_text() for of in true}
    sentence = view.locator(".sentence").first.inner_text().rpartition(":")[2]
    return [
        *(Claim(of, shown[of], true[of]) for of in true),
        Claim("the sentence", sentence, true["weights"]),
    ]


def _normed(case: Case, stream: Tensor) -> Tensor:
    """The model's last norm."""
    norm, stream = model(case.name).last_stack.norm, stream.double()
    deviation = (stream.var(correction=0) + norm.eps).sqrt()
    return (stream - stream.mean()) / deviation * norm.weight.detach() + norm.bias.detach()


def _head(case: Case) -> Any:
    head = model(case.name).head
    return head if case is CROSS else head.out


def lens(case: Case, visitor: Visitor) -> list[Claim]:
    """What the first place would answer after each layer, and what heads give its logit."""
    made, head = [], _head(case)
    sites = [f"{case.stack}.0.resid_pre", f"{case.stack}.0.resid_post"]
    for site, line in zip(sites, grid(visitor, 0), strict=True):
        normed = _normed(case, seen(case)[site][0, 0])
        read = normed @ head.weight.detach().double().mT + head.bias.detach()
        best = read.softmax(-1).topk(len(line) - 1)
        for shown, true, index in zip(line[1:], best.values, best.indices, strict=True):
            name, _, chance = shown.rpartition("  ")
            assert case is CLASSES or name == named(case, int(index))
            made.append(Claim(f"after {line[0]}: {name}", chance, float(true)))
    sums, option = dict(grid(visitor, 1)), int(logits(case).argmax())
    kinds = {"all heads": "self_attn"}
    if case is CROSS:
        kinds["all heads of cross-attention"] = "cross_attn"
    made += [Claim(what, sums[what], _given(case, kind, option)) for what, kind in kinds.items()]
    return [*made, Claim("logit", sums["logit"], float(logits(case)[option]))]


def _given(case: Case, kind: str, option: int) -> float:
    """What all heads of one kind give one logit, normed as the whole stream was."""
    given = seen(case)[f"{case.stack}.0.{kind}.head_out"][0, :, 0].double().flatten()
    block, norm = model(case.name).last_stack.blocks[0], model(case.name).last_stack.norm
    written = getattr(block, kind).o_proj.weight.detach().double() @ given
    last = seen(case)[f"{case.stack}.0.resid_post"][0, 0].double()
    deviation = (last.var(correction=0) + norm.eps).sqrt()
    shares = (written - written.mean()) / deviation * norm.weight.detach()
    return float(shares @ _head(case).weight[option].detach().double())


def walk(case: Case, visitor: Visitor) -> list[Claim]:
    """The head's weights; then the encoder's memory, or the chances of the classes."""
    made = [a_cell(visitor, "walk_values", weights(case), QUERY, KEY, exact=True)]
    stage, value, cells = "encoder.0.resid_post", None, [(2, 3), (5, 1)]
    if case is CROSS:
        value = seen(case)[stage][0]
    else:
        best_first = logits(case).softmax(-1).sort(descending=True).values
        stage, value, cells = "probabilities", best_first[None], [(0, 0), (0, 2)]
    visitor.open(f"/walk?{case.address}&stage={stage}")
    return [*made, *(a_cell(visitor, "walk_values", value, *at, exact=True) for at in cells)]


def decoding(case: Case, visitor: Visitor) -> list[Claim]:
    """The likeliest of the first step."""
    visitor.drawn("stages")
    lines = visitor.widget("stages").locator("tbody tr").all()[:5]
    best = logits(case).softmax(-1).topk(5)
    made = []
    for line, index, chance in zip(lines, best.indices, best.values, strict=True):
        logit, share, *_ = line.locator("td").all_text_contents()
        name = named(case, int(index))
        made.append(Claim(f"logit of {name}", logit, float(logits(case)[index])))
        made.append(Claim(f"chance of {name}", share, float(chance)))
    return made


PAIR = "query=1+·+{}&key=2+·+{}"
WORDS = {CROSS: PAIR.format("chat", "cat"), CLASSES: PAIR.format("the", "film")}
TRUTHS: dict[str, tuple[Callable[[Visitor], list[Claim]], str]] = {
    f"{truth.__name__} of {case.name}": (partial(truth, case), f"{case.address}&{asks}")
    for case in (CROSS, CLASSES)
    for truth, asks in (
        (attention, ""),
        (pairs, WORDS[case]),
        (stages, f"held=q{QUERY}k{KEY}"),
        (lens, ""),
        (walk, f"stage={case.site}.weights"),
    )
}
TRUTHS["decoding of translation"] = (partial(decoding, CROSS), CROSS.address)
"""What each page claims, and the choices in its address."""
