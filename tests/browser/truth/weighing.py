"""What the page Checkpoints shows: the ledger, weights, norms, spectra, heads, the doctor."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from models import load_checkpoint
from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, facts, grid, rows, said
from tests.browser.visiting import Visitor
from tests.source import ROOT

HEADS = [(layer, head) for layer in range(2) for head in range(4)]
EVEN = 0.99
"""A head whose entropy is a larger share of the most possible does not choose."""
JUDGED = 12
"""The doctor looks at so many matrices, at even distances, and at a corner of 512 × 512."""


def ledger(visitor: Visitor) -> list[Claim]:
    made = []
    for name in ("translation", "shakespeare", "reviews", "negation"):
        model = load_checkpoint(ROOT / "models" / "checkpoints" / name).model
        shown = said(visitor, rf"{name}\s+[^\n]+\s+ours\s+([\d,]+)")[0]
        made.append(Claim(f"parameters of {name}", shown, parameters(model)))
    lines = {line[0]: line for line in rows(visitor)[1:]}
    model = core.model()
    made.append(Claim("all parameters", lines["all parameters"][-1], parameters(model)))
    attention = model.last_stack.blocks[0].self_attn
    made.append(Claim("self-attention", lines["self-attention"][-1], parameters(attention)))
    visitor.choose("Ledger of", "web tutorial, encoder")
    preset = Transformer(PRESETS["web tutorial, encoder"]())
    shown = said(visitor, r"(520,\d+) parameters")[0]
    return [*made, Claim("web tutorial's encoder", shown, parameters(preset))]


def parameters(module: torch.nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def queries() -> Tensor:
    """The tensor that is shown first: the chosen layer's projection of queries."""
    block = core.model().last_stack.blocks[core.LAYER]
    return block.self_attn.q_proj.weight.detach().double()


def rms(values: Tensor) -> float:
    return float(values.detach().double().square().mean().sqrt())


def weights(visitor: Visitor) -> list[Claim]:
    shown, w = facts(visitor), queries()
    true = {
        "numbers": w.numel(),
        "mean": float(w.mean()),
        "standard deviation": float(w.std(correction=0)),
        "root mean square": rms(w),
        "norm": float(w.norm()),
        "lowest": float(w.min()),
        "highest": float(w.max()),
        "largest |w|": float(w.abs().max()),
        "zeros": 100 * float((w == 0).double().mean()),
        "not finite": int((~w.isfinite()).sum()),
    }
    cells = [(0, 0), (3, 7), (1, 11)]
    return [
        *(Claim(name, shown[name], value) for name, value in true.items()),
        *(a_cell(visitor, "weights_picture", w, *at) for at in cells),
    ]


def norms(visitor: Visitor) -> list[Claim]:
    """The root mean square of every matrix, and the numbers of the tensors in sight."""
    table = torch.tensor(
        [
            [rms(each) for name, each in block.named_parameters() if each.dim() == 2]
            for block in core.model().last_stack.blocks
        ]
    )
    made = [a_cell(visitor, "norms_decoder", table, *at) for at in [(0, 0), (1, 3), (1, 5)]]
    named = {name: each.detach().double() for name, each in core.model().named_parameters()}
    lines = grid(visitor)
    assert len(lines) > 8
    for name, _, mean, std, square, norm, largest, zeros in lines:
        w = named[name]
        true = {
            "mean": (mean, float(w.mean())),
            "std": (std, float(w.std(correction=0))),
            "rms": (square, rms(w)),
            "norm": (norm, float(w.norm())),
            "largest": (largest, float(w.abs().max())),
            "zeros": (zeros, 100 * float((w == 0).double().mean())),
        }
        made += [Claim(f"{what} of {name}", *both) for what, both in true.items()]
    return made


def edge(matrix: Tensor) -> float:
    """Where noise of this size ends: Johnstone 2001, and four widths of what it may pass by."""
    large, small = math.sqrt(max(matrix.shape) - 1), math.sqrt(min(matrix.shape))
    width = (large + small) * (1 / large + 1 / small) ** (1 / 3)
    return rms(matrix) * math.sqrt((large + small) ** 2 + 4 * width)


def spectra(visitor: Visitor) -> list[Claim]:
    shown, matrix = facts(visitor), queries()
    values = torch.linalg.svdvals(matrix)
    squares = values.square()
    held = squares.cumsum(0) / squares.sum()
    true = {
        "largest": float(values[0]),
        "smallest": float(values[-1]),
        "edge of noise": edge(matrix),
        "above the edge": int((values > edge(matrix)).sum()),
        "stable rank": float(squares.sum() / squares[0]),
        "half of the squares": 1 + int((held < 0.5).sum()),
        "90% of the squares": 1 + int((held < 0.9).sum()),
    }
    return [Claim(name, shown[name], value) for name, value in true.items()]


def statistics(layer: int, head: int) -> dict[str, float]:
    """Every number of a head, by its definition, in the order of the table."""
    w, ids = core.weights(layer, head), core.ids()[0].tolist()
    n = len(ids)
    entropy = [float(torch.special.entr(row).sum()) for row in w]
    copies = {i: [j for j in range(1, i) if ids[j] == ids[i]] for i in range(1, n)}
    copies = {i: at for i, at in copies.items() if at}
    text = range(1, n)  # the first is the start token
    mirrored = [(i, n - i) for i in text if n - i <= i]
    return {
        "Entropy share": sum(entropy[i] / math.log(i + 1) for i in text) / (n - 1),
        "Entropy": sum(entropy) / n,
        "Largest": float(w.amax(-1).mean()),
        "Distance": sum(float(w[i, j]) * abs(i - j) for i in range(n) for j in range(n)) / n,
        "Itself": float(w.diagonal().mean()),
        "Previous": float(w.diagonal(-1).mean()),
        "First": float(w[:, 0].mean()),
        "Special": float(w[:, 0].mean()),
        "Induction": sum(float(w[i, j + 1]) for i, at in copies.items() for j in at) / len(copies),
        "Duplicate": sum(float(w[i, j]) for i, at in copies.items() for j in at) / len(copies),
        "Diagonal": sum(float(w[i, i]) for i in text) / len(text),
        "Anti-diagonal": sum(float(w[at]) for at in mirrored) / len(mirrored),
    }


def heads(visitor: Visitor) -> list[Claim]:
    shown, mine = facts(visitor), statistics(core.LAYER, core.HEAD)
    made = [Claim(name, shown[name], true) for name, true in mine.items()]
    for line, (layer, head) in zip(grid(visitor, 1), HEADS, strict=True):
        assert (int(line[0]), int(line[1])) == (layer, head)
        for cell, (name, true) in zip(line[2:], statistics(layer, head).items(), strict=False):
            made.append(Claim(f"{name} of layer {layer}, head {head}", cell, true))
    shares = torch.tensor(
        [[statistics(layer, h)["Entropy share"] for h in range(4)] for layer in range(2)]
    )
    return [*made, a_cell(visitor, "head_statistics", shares, 1, 2)]


def doctor(visitor: Visitor) -> list[Claim]:
    """How many matrices stand out above noise, and how many heads do not choose."""
    above, of = said(visitor, r"(\d+) of (\d+) matrices looked at have singular values")
    flat, heads = said(visitor, r"Over your text (\d+) of (\d+) heads look everywhere")
    every = [each for each in core.model().parameters() if each.dim() == 2]
    some = [every[at * (len(every) - 1) // (JUDGED - 1)] for at in range(JUDGED)]
    corners = [each.detach().double()[:512, :512] for each in some]
    trained = sum(float(torch.linalg.svdvals(each)[0]) > edge(each) for each in corners)
    shares = [statistics(*at)["Entropy share"] for at in HEADS]
    return [
        Claim("above noise", above, trained),
        Claim("matrices", of, len(corners)),
        Claim("heads that do not choose", flat, sum(share > EVEN for share in shares)),
        Claim("heads", heads, len(HEADS)),
    ]
