"""The museum's instruments once more, by plain torch over a model's own pass.

Each takes a run and gives the numbers that the instrument says, in the order in which it
says them. Nothing of `explorer.views.museum` is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from models import trace
from models.interventions import Edit, Scale
from models.tap import Tap
from tests.browser.truth.screen import Claim

N = r"(−?\d[\d,]*(?:\.\d+)?(?:e−\d+)?)"
"""A number as it is written."""
NOISE = 1e-5
"""What is moved by less did not move: single precision leaves as much, and never the same."""


@dataclass(frozen=True, eq=False)
class Run:
    """An encoder-decoder and what it reads: the source (1, s), the target and labels (1, t)."""

    model: Any
    ids: Tensor
    target: Tensor
    labels: Tensor
    head: int = 1

    def logits(
        self, ids: Tensor | None = None, target: Tensor | None = None, edits: Sequence[Edit] = ()
    ) -> Tensor:
        """(t, words), for other inputs where they are given."""
        ids = self.ids if ids is None else ids
        target = self.target if target is None else target
        return trace(self.model, ids, target, edits=edits).output[0].double()

    def at(self, site: str, **how: Any) -> Tensor:
        value: Tensor = trace(self.model, self.ids, self.target, **how)[site][0].double()
        return value


def shapes(run: Run) -> list[float]:
    count = sum(each.numel() for each in run.model.parameters())
    widths = [run.at(f"{stack}.0.self_attn.q").shape[-1] for stack in ("encoder", "decoder")]
    return [count, *widths]


def attention_map(run: Run) -> list[float]:
    """e to the mean entropy of the rows of the chosen head of cross-attention."""
    q, k = (run.at(f"decoder.0.cross_attn.{name}")[run.head] for name in "qk")
    weights = (q @ k.mT * run.model.decoder.blocks[0].cross_attn.scale).softmax(-1)
    return [math.exp(float(torch.special.entr(weights).sum(-1).mean()))]


def masked_row(run: Run) -> list[float]:
    """The first row where the mask lets nothing through, and its sum."""
    nothing = torch.zeros_like(run.ids, dtype=torch.bool)
    row = run.at("encoder.0.self_attn.weights", source_keep=nothing)[0, 0]
    return [*row[:4].tolist(), float(row.sum())]


def outputs(run: Run) -> list[float]:
    last = run.logits()[-1]
    return [len(last), float(last.min()), float(last.max()), float(last.sum())]


def loss(run: Run) -> list[float]:
    return [float(cross_entropy(run.logits(), run.labels[0]))]


def another(ids: Tensor, words: int, filler: int) -> Tensor:
    """The third id on, or the one behind filler where that is filler."""
    new = (ids + 3) % words
    return new.where(new != filler, torch.tensor(filler + 1))


def causality(run: Run) -> list[float]:
    """Another last token of the target; how far the logits before it move."""
    other, config = run.target.clone(), run.model.config
    other[:, -1] = another(run.target[:, -1], config.vocab_size, config.pad_id)
    return [float((run.logits(target=other) - run.logits())[:-1].abs().max())]


def target(run: Run) -> list[float]:
    """Every target token replaced, with cross-attention ablated."""
    config = run.model.config
    other = another(run.target, config.vocab_size, config.pad_id)
    silent = [Scale("decoder.*.cross_attn.out", 0.0)]
    moved = run.logits(target=other, edits=silent) - run.logits(edits=silent)
    return [float(moved.abs().max())]


def padding(run: Run) -> list[float]:
    config = run.model.config
    count = min(10, config.max_len - run.ids.shape[1])
    longer = pad(run.ids, (0, count), value=config.pad_id)
    return [count, float((run.logits(longer) - run.logits()).abs().max())]


def positions(run: Run) -> list[float]:
    """How far the products of two positions spread that are as far apart; by the table itself."""
    table = run.model.encoder.positions.pe[0].double()
    apart = min(5, len(table) // 2)
    return [apart, float((table[:-apart] * table[apart:]).sum(-1).std())]


def writing(run: Run) -> list[float]:
    """Different tokens of all that are written, always the likeliest."""
    most = min(12, run.model.config.max_len - 1)
    new = run.model.generate(run.ids, max_length=most, temperature=0.0)[0, 1:].tolist()
    return [len(set(new)), len(new)]


def slices(run: Run) -> list[float]:
    """Head 1 of the sentence against head 0 of the same with two slices swapped."""
    x, width = run.at("encoder.embed").float()[None], run.model.config.d_model // 2
    swapped = torch.cat((x[..., width:], x[..., :width]), -1)
    attention, apart = run.model.encoder.blocks[0].self_attn, 0.0
    with torch.no_grad():
        for project in (attention.q_proj, attention.k_proj, attention.v_proj):
            one, other = project(x)[..., width:], project(swapped)[..., :width]
            apart = max(apart, float((one - other).abs().max()))
    return [apart]


def stream(run: Run) -> list[float]:
    """Root mean square of the stream behind the last block."""
    return [float(run.at("decoder.0.resid_post").square().mean().sqrt())]


def scale(run: Run) -> list[float]:
    """What q·k is multiplied with to give the scores."""
    q, k = (run.at(f"encoder.0.self_attn.{name}")[0] for name in "qk")
    scores, products = run.at("encoder.0.self_attn.scores")[0], q @ k.mT
    return [float((scores / products).median()), 1 / math.sqrt(q.shape[-1])]


@dataclass(frozen=True)
class Instrument:
    """A mistake that it shows, how its sentence is read, and its numbers made anew."""

    mistake: str
    sentence: str
    numbers: Callable[[Run], list[float]]

    def claims(self, what: str, said: str, run: Run) -> list[Claim]:
        """Every number of the sentence; what is but rounding is held to be no more than that."""
        found = re.search(self.sentence, said, re.IGNORECASE)
        if found is None:
            return [Claim(what, said, math.nan)]
        return [
            Claim(what, shown, 0.0, 2 * NOISE)
            if isinstance(true, float) and abs(true) < NOISE
            else Claim(what, shown, true)
            for shown, true in zip(found.groups(), self.numbers(run), strict=True)
        ]


CHANGE = f"change by {N}"
INSTRUMENTS = {
    "Shapes": Instrument(
        "fixed-heads",
        f"{N} parameters; encoder heads of width {N}, decoder heads of width {N}",
        shapes,
    ),
    "Attention map": Instrument("wrong-scale", f"{N} effective keys", attention_map),
    "Fully masked row": Instrument(
        "filled-row", f"fully masked row is {N}, {N}, {N}, {N}, … and sums to {N}", masked_row
    ),
    "Model output": Instrument(
        "softmax-twice", f"{N} values between {N} and {N}, sum {N}", outputs
    ),
    "Loss and gradients": Instrument("softmax-twice", f"the loss is {N} nats", loss),
    "Causality check": Instrument("dropped-weights", f"logits before it {CHANGE}", causality),
    "Replaced target": Instrument(
        "lost-target", f"every target token changes the logits by {N}", target
    ),
    "Padding": Instrument("no-padding-mask", f"with {N} padding tokens .* {CHANGE}", padding),
    "Positions": Instrument("doubled-exponent", f"{N} apart .* deviation of {N}", positions),
    "Generation": Instrument("never-appends", f"{N} of {N}", writing),
    "Swapped slices": Instrument("shared-projection", f"former head 1 by {N}", slices),
    "Residual stream": Instrument("norm-order", f"root mean square is {N}", stream),
    "Score scale": Instrument("wrong-scale", f"q·k × {N}; 1/√d_k would be {N}", scale),
}


class Leaves(Tap):
    """Makes the embeddings leaves, so that a loss can be followed back to them."""

    def __init__(self, scope: str = "", found: dict[str, Tensor] | None = None) -> None:
        self.scope = scope
        self.found = {} if found is None else found

    def at(self, scope: str) -> Leaves:
        return Leaves(f"{self.scope}{scope}.", self.found)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name == "embed":
            value = self.found[self.scope + name] = value.detach().requires_grad_()
        return value


def gradients(run: Run) -> dict[str, float]:
    """The length of the loss's gradient at the embeddings of each stack."""
    leaves = Leaves()
    with torch.enable_grad():
        logits = run.model.eval()(run.ids, run.target, tap=leaves)[0]
        loss = cross_entropy(logits, run.labels[0])
    sites, values = zip(*leaves.found.items(), strict=True)
    found = torch.autograd.grad(loss, values, allow_unused=True)
    return {
        site: 0.0 if gradient is None else float(gradient.norm())
        for site, gradient in zip(sites, found, strict=True)
    }
