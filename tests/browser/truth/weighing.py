"""What the Checkpoints page shows of a model: its parameters, weights, heads and diagnostics."""

import math
from functools import cache

import torch
from torch import Tensor

from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth.core import CHECKPOINTS, HEADS, SHAKESPEARE, model_in, parameters
from tests.browser.truth.screen import Claim, cells, claims, grid, rows, said, stated
from tests.browser.visiting import Visitor

EVEN = 0.99
"""A head whose entropy is a larger share of the most possible does not choose."""
JUDGED = 12
"""Diagnostics sample so many matrices, at even distances, and a corner of 512 × 512."""


def parameter_tree(visitor: Visitor) -> list[Claim]:
    made = []
    visitor.until_run(visitor.widget("all_models").locator("label").click)
    for name in ("translation", "shakespeare", "reviews", "negation"):
        (shown,) = said(visitor, rf"{name}\s+[^\n]+\s+ours\s+([\d,]+)")
        made.append(Claim(name, shown, parameters(model_in(CHECKPOINTS / name))))
    parts = {"all parameters": SHAKESPEARE.model, "self-attention": SHAKESPEARE.attention}
    lines = {line[0]: line[-1] for line in rows(visitor, *parts)}
    made += [Claim(name, lines[name], parameters(part)) for name, part in parts.items()]
    visitor.choose("Parameters of", "web tutorial, encoder")
    (shown,) = said(visitor, r"(520,\d+) parameters")
    preset = Transformer(PRESETS["web tutorial, encoder"]())
    return [*made, Claim("web tutorial's encoder", shown, parameters(preset))]


def queries() -> Tensor:
    """The tensor that is shown first: the chosen layer's projection of queries."""
    weight: Tensor = SHAKESPEARE.attention.q_proj.weight
    return weight.detach().double()


def rms(values: Tensor) -> float:
    return float(values.detach().double().square().mean().sqrt())


def summary(w: Tensor) -> dict[str, float]:
    return {
        "mean": float(w.mean()),
        "standard deviation": float(w.std(correction=0)),
        "root mean square": rms(w),
        "norm": float(w.norm()),
        "largest |w|": float(w.abs().max()),
        "zeros": 100 * float((w == 0).double().mean()),
    }


def weights(visitor: Visitor) -> list[Claim]:
    w = queries()
    true = {"weights": w.numel(), "lowest": float(w.min()), "highest": float(w.max())}
    true |= {"not finite": int((~w.isfinite()).sum()), **summary(w)}
    return stated(visitor, true) + cells(visitor, "weights_picture", w, (0, 0), (3, 7), (1, 11))


def norms(visitor: Visitor) -> list[Claim]:
    """The root mean square of every matrix, and the numbers of the tensors in sight."""
    blocks = SHAKESPEARE.model.last_stack.blocks
    matrices = [[each for each in block.parameters() if each.dim() == 2] for block in blocks]
    table = torch.tensor([[rms(each) for each in line] for line in matrices])
    made = cells(visitor, "norms_decoder", table, (0, 0), (1, 3), (1, 5))
    named = dict(SHAKESPEARE.model.named_parameters())
    lines = grid(visitor, "tensor", "rms")
    assert len(lines) > 8
    for name, _, *shown in lines:
        true = summary(named[name].detach().double())
        made += claims({f"{what} of {name}": value for what, value in true.items()}, shown)
    return made


def edge(matrix: Tensor) -> float:
    """Where noise of this size ends: Johnstone 2001, and four widths of what it may pass by."""
    large, small = math.sqrt(max(matrix.shape) - 1), math.sqrt(min(matrix.shape))
    width = (large + small) * (1 / large + 1 / small) ** (1 / 3)
    return rms(matrix) * math.sqrt((large + small) ** 2 + 4 * width)


def singular_values(visitor: Visitor) -> list[Claim]:
    matrix = queries()
    values = torch.linalg.svdvals(matrix)
    squares = values.square()
    held = squares.cumsum(0) / squares.sum()
    true = {
        "largest": float(values[0]),
        "smallest": float(values[-1]),
        "random edge": edge(matrix),
        "above the edge": int((values > edge(matrix)).sum()),
        "stable rank": float(squares.sum() / squares[0]),
        "50% of norm²": 1 + int((held < 0.5).sum()),
        "90% of norm²": 1 + int((held < 0.9).sum()),
    }
    return stated(visitor, true)


@cache
def statistics(layer: int, head: int) -> dict[str, float]:
    """Every number of a head, by its definition, in the order of the table."""
    w, ids = SHAKESPEARE.at(layer, head).weights, SHAKESPEARE.ids[0].tolist()
    n = len(ids)
    entropy = torch.special.entr(w).sum(-1).tolist()
    copies = {i: [j for j in range(1, i) if ids[j] == ids[i]] for i in range(1, n)}
    copies = {i: at for i, at in copies.items() if at}
    text = range(1, n)  # the first is the start token
    mirrored = [(i, n - i) for i in text if n - i <= i]
    return {
        "Normalized entropy": sum(entropy[i] / math.log(i + 1) for i in text) / (n - 1),
        "Entropy": sum(entropy) / n,
        "Maximum weight": float(w.amax(-1).mean()),
        "Mean distance": sum(float(w[i, j]) * abs(i - j) for i in range(n) for j in range(n)) / n,
        "Current-token score": float(w.diagonal().mean()),
        "Previous-token score": float(w.diagonal(-1).mean()),
        "First-token score": float(w[:, 0].mean()),
        "Special-token score": float(w[:, 0].mean()),
        "Induction score": sum(float(w[i, j + 1]) for i, at in copies.items() for j in at)
        / len(copies),
        "Duplicate-token score": sum(float(w[i, j]) for i, at in copies.items() for j in at)
        / len(copies),
        "Diagonal score": sum(float(w[i, i]) for i in text) / len(text),
        "Anti-diagonal score": sum(float(w[at]) for at in mirrored) / len(mirrored),
    }


def shares() -> Tensor:
    return torch.tensor([statistics(*at)["Normalized entropy"] for at in HEADS])


def heads(visitor: Visitor) -> list[Claim]:
    made = stated(visitor, statistics(SHAKESPEARE.layer, SHAKESPEARE.head))
    for (layer, head, *shown), at in zip(grid(visitor, "layer", "Entropy"), HEADS, strict=True):
        assert (int(layer), int(head)) == at
        in_sight = list(statistics(*at).items())[: len(shown)]
        made += claims(
            {f"{name} of {at}": value for name, value in in_sight}, shown[: len(in_sight)]
        )
    return made + cells(visitor, "head_statistics", shares().view(2, 4), (1, 2))


def diagnostics(visitor: Visitor) -> list[Claim]:
    """How many matrices are not random, and how many heads attend almost equally."""
    above, of = said(visitor, r"(\d+) of (\d+) sampled matrices have singular values")
    flat, heads = said(visitor, r"Over your text (\d+) of (\d+) heads attend to all keys")
    every = [each for each in SHAKESPEARE.model.parameters() if each.dim() == 2]
    some = [every[at * (len(every) - 1) // (JUDGED - 1)] for at in range(JUDGED)]
    corners = [each.detach().double()[:512, :512] for each in some]
    trained = sum(float(torch.linalg.svdvals(each)[0]) > edge(each) for each in corners)
    return [
        Claim("above noise", above, trained),
        Claim("matrices", of, len(corners)),
        Claim("heads that do not choose", flat, int((shares() > EVEN).sum())),
        Claim("heads", heads, len(HEADS)),
    ]
