"""Passes for the picture of the whole pass: of small shaken models of every kind, and made up."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from explorer.analysis.information_flow import (
    AttentionShares,
    BlockShares,
    InformationFlow,
    information_flow,
)
from explorer.catalog.opened_model import OpenModel
from explorer.components.pass_map import MapAnswer, MapStack, PassMap
from explorer.inference.answers import Answer
from explorer.inference.forward_pass import ForwardPass, run_batch_uncached
from explorer.text import Token
from explorer.text.token_labels import Label
from models import trace
from models.trace import CHEAP_SITES
from tests.analysis.conftest import TEXT, opened_of
from tests.analysis.kinds_of_model import KINDS_OF_MODEL
from tests.tiny import config_of, inputs_of, shaken

KINDS = {
    **{
        name: KINDS_OF_MODEL[name]
        for name in ("decoder", "masked", "mean", "last", "both", "beside", "after", "grouped")
    },
    "no feed-forward": {"d_ff": 0},
    "deep encoder": {"kind": "encoder-decoder", "n_encoder_layers": 3, "n_layers": 1},
    "no head": {"kind": "encoder", "head": "none"},
}
"""What each differs in from a decoder of two layers."""


@cache
def passed(kind: str) -> tuple[OpenModel, ForwardPass]:
    """A shaken model of this kind and its pass over a text, the same in every process."""
    with TemporaryDirectory() as folder:
        opened = opened_of(Path(folder), kind, torch.float32)
    return opened, run_batch_uncached(opened, (TEXT,))[0]


@cache
def pass_of(kind: str) -> ForwardPass:
    """What a shaken model of this kind makes of six tokens, in the precision that is sent."""
    config = config_of(**KINDS[kind])
    inputs = inputs_of(config, batch=1)
    seen = trace(shaken(config, torch.float32), *inputs, sites=CHEAP_SITES)
    sides = [tuple(Token(i, f"t{i}", 0, 1) for i in ids[0].tolist()) for ids in inputs]
    source = () if config.kind == "decoder" else sides[0]
    target = () if config.kind == "encoder" else sides[-1]
    return ForwardPass("", config, source, target, target, seen, Answer("next", ""))


@cache
def of_kind(kind: str) -> PassMap:
    """The picture of the same."""
    forward = pass_of(kind)
    config, flow = forward.config, information_flow(forward)
    labels = {"encoder": forward.source, "decoder": forward.target}
    has_words = config.head.endswith("language-model")
    answers = has_words or config.head == "classifier"
    behind = "After {token}" if has_words else "Class of the text"
    said: Any = {"answers": answers, "behind": behind, "has_lens": has_words}
    names: Any = {name: numbered(len(labels[name])) for name in flow.stacks}
    return picture(flow, names, heads=config.n_heads, **said)


def numbered(count: int, letter: str = "t") -> list[str]:
    return [f"{letter}{at}" for at in range(count)]


def picture(
    flow: InformationFlow,
    tokens: dict[str, Sequence[Label]],
    *,
    answers: bool = True,
    known: Sequence[int] | None = None,
    behind: str = "After {token}",
    heads: int = 3,
    has_lens: bool = True,
) -> PassMap:
    """A picture of these shares. The answer to each start is known, or to these, or to none."""
    writes = numbered(9, "w") * (len(flow.stacks) > 1)
    stacks = [
        MapStack(name, name.capitalize(), tokens[name], list(blocks[0].attentions), writes)
        for name, blocks in flow.stacks.items()
    ]
    places = range(len(flow.starts)) if known is None else known
    made = {at: answer(at) for at in places} if answers else {}
    return PassMap(flow, stacks, made, heads, behind, has_lens, "one")


def answer(at: int) -> MapAnswer:
    """Three options of a place: 0.5 - at / 100, 0.25 and 0.125."""
    options = [(f"a{at}", 0.5 - at / 100), (f"b{at}", 0.25), (f"c{at}", 0.125)]
    return MapAnswer(f"a{at}", options)


def made_up(layers: int, tokens: int, seed: int = 0, sharpness: float = 2.0) -> InformationFlow:
    """Shares of a decoder: rows of random numbers that sum to 1."""
    random = torch.Generator().manual_seed(seed)
    causal = torch.ones(tokens, tokens).tril().bool()
    blocks = []
    for _ in range(layers):
        scores = sharpness * torch.randn(tokens, tokens + 1, generator=random)
        scores[:, :-1] = scores[:, :-1].masked_fill(~causal, -torch.inf)
        shares = scores.softmax(-1)
        heads = torch.randint(0, 3, (tokens, tokens), generator=random)
        mlp = torch.rand(tokens, generator=random)
        attended = AttentionShares(shares[:, :-1], shares[:, -1], heads)
        blocks.append(BlockShares({"decoder.self_attn": attended}, mlp, parallel=False))
    return InformationFlow({"decoder": tuple(blocks)}, torch.eye(tokens))


def without_numbers(flow: InformationFlow) -> InformationFlow:
    """The same flow, where nothing of the last token in layer 0 has a share."""
    block = flow.stacks["decoder"][0]
    found = block.attentions["decoder.self_attn"]
    assert block.mlp is not None
    for values in (found.keys, found.residual, block.mlp):
        values[-1] = torch.nan
    return flow


def nothing_across(tokens: int) -> InformationFlow:
    """One layer in which every token has all of itself."""
    nothing = torch.zeros(tokens, tokens)
    shares = AttentionShares(nothing, torch.ones(tokens), nothing.long())
    block = BlockShares({"decoder.self_attn": shares}, torch.zeros(tokens), parallel=False)
    return InformationFlow({"decoder": (block,)}, torch.eye(tokens))
