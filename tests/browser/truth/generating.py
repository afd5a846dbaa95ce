"""What the page Generation shows: the columns of a choice, branches, beams, the forced target."""

import math
from functools import cache

import torch
from torch import Tensor

from tests.browser.truth.core import SHAKESPEARE
from tests.browser.truth.screen import Claim, board, cells, claims, grid, nodes, said
from tests.browser.visiting import Visitor

TEMPERATURE, TOP_K, TOP_P, SEED = 0.7, 40, 0.8, 3
BEAMS, LENGTH, ALPHA = 2, 4, 0.6


@cache
def next_logits(*written: int) -> Tensor:
    """What the model gives behind the text and these tokens."""
    ids = torch.cat((SHAKESPEARE.ids, torch.tensor([written], dtype=torch.long)), 1)
    with torch.no_grad():
        logits: Tensor = SHAKESPEARE.model(ids)[0, -1].double()
    return logits


def log_chance(*written: int) -> float:
    """ln of the chance of all these tokens, one behind the other."""
    return sum(
        float(next_logits(*written[:at]).log_softmax(-1)[token]) for at, token in enumerate(written)
    )


@cache
def by_label() -> dict[str, int]:
    return {SHAKESPEARE.label(n): n for n in range(SHAKESPEARE.model.config.vocab_size)}


def columns() -> list[Tensor]:
    """Softmax, temperature, top-k, top-p and the rest brought to 1, each by its definition."""
    logits = next_logits()
    tempered = (logits / TEMPERATURE).softmax(-1)
    kept = torch.where(tempered >= tempered.topk(TOP_K).values[-1], tempered, 0.0)
    nucleus, held = torch.zeros_like(kept), 0.0
    for token in kept.argsort(descending=True).tolist():
        if held >= TOP_P * float(kept.sum()):
            break
        nucleus[token] = kept[token]
        held += float(kept[token])
    return [logits.softmax(-1), tempered, kept, nucleus, nucleus / nucleus.sum()]


def branches() -> tuple[list[list[int]], str]:
    """Two branches from the start, and the address of one who went back there."""
    first, second, third = SHAKESPEARE.chances.topk(3).indices.tolist()
    return [[first, second], [third]], f"branches=0f{first}-{second}.0f{third}.0"


def asks() -> str:
    chosen = f"temperature={TEMPERATURE}&top_k={TOP_K}&top_p={TOP_P}&seed={SEED}"
    return f"{chosen}&{branches()[1]}&beams={BEAMS}&length={LENGTH}&alpha={ALPHA}"


def token_by_token(visitor: Visitor) -> list[Claim]:
    head = cells(visitor, "decoded_head", SHAKESPEARE.weights, (7, 6))
    return [*head, *_rows(visitor), *_cuts(visitor), *_branches(visitor)]


def _rows(visitor: Visitor) -> list[Claim]:
    """Every row through all columns; what a stage cut off it must have left no chance."""
    stages, made = columns(), list[Claim]()
    left = torch.ones(len(by_label()), dtype=torch.bool)
    for name, logit, *chances in board(visitor, "stages"):
        if name.endswith(" others"):
            made.append(Claim("others", name, int(left.sum())))
            true = [stage[left].sum() for stage in stages]
        else:
            token = by_label()[name]
            left[token] = False
            made.append(Claim(f"logit of {name}", logit, float(next_logits()[token])))
            true = [stage[token] for stage in stages]
        names = {f"column {column} of {name}": value for column, value in enumerate(true)}
        made += claims(names, ["0" if shown == "cut" else shown for shown in chances])
    assert int((~left).sum()) >= 12
    return made


def _cuts(visitor: Visitor) -> list[Claim]:
    """What each stage cuts off, under its head and in the sentence below."""
    _, tempered, kept, nucleus, final = columns()
    heads = visitor.widget("stages").locator("thead .note").all_text_contents()
    k, p, left = (int((stage > 0).sum()) for stage in (kept, nucleus, final))
    name, chance = said(visitor, r"Next: (\S+), sampled with seed 3, probability ([\d.]+)\.\n")
    shown = said(
        visitor,
        r"top-k cuts (\d+) tokens \(probability ([\d.]+)\); "
        r"top-p cuts (\d+) tokens \(probability ([\d.]+)\): "
        r"(\d+) tokens can be sampled",
    )
    gone = float(tempered.sum() - kept.sum()), float(kept.sum() - nucleus.sum())
    true = {
        "head of top-k": gone[0],
        "head of top-p": gone[1],
        "divided by": nucleus.sum(),
        "top-k cuts": len(kept) - k,
        "top-k cuts a mass": gone[0],
        "top-p cuts": k - p,
        "top-p cuts a mass": gone[1],
        "left": left,
        f"sampled: {name}": final[by_label()[name]],
    }
    return claims(true, (*heads[4:7], *shown, chance))


def _branches(visitor: Visitor) -> list[Claim]:
    """The chance of every node, and the sums of the branches."""
    written, made = branches()[0], list[Claim]()
    steps = [line[: at + 1] for line in written for at in range(len(line))]
    for path, (label, number, _) in zip(steps, nodes(visitor, "branches_tree")[1:], strict=True):
        assert label == SHAKESPEARE.label(path[-1])
        chance = math.exp(log_chance(*path) - log_chance(*path[:-1]))
        made.append(Claim(f"node {label}", number, chance))
    for path, (name, *shown) in zip(written, grid(visitor, "branch"), strict=True):
        total = log_chance(*path)
        true = {"tokens": len(path), "log-probability": total, "per token": total / len(path)}
        made += claims({f"{what} of {name}": true[what] for what in true}, shown)
    return made


def penalty(length: int) -> float:
    return float(((5 + length) / 6) ** ALPHA)


Way = tuple[tuple[int, ...], float]
"""Tokens behind the text, and the log-probability of all of them."""


def searched() -> list[list[Way]]:
    """The best of every step over all that follows the beams, each with its log-probability."""
    steps, alive = list[list[Way]](), list[Way]([((), 0.0)])
    for _ in range(LENGTH):
        every = [
            ((*path, token), total + chance)
            for path, total in alive
            for token, chance in enumerate(next_logits(*path).log_softmax(-1).tolist())
        ]
        steps.append(sorted(every, key=lambda one: -one[1])[: 2 * BEAMS])
        alive = steps[-1][:BEAMS]
    return steps


def _of_way(path: tuple[int, ...], total: float) -> dict[str, float]:
    name, divided = "-".join(map(SHAKESPEARE.label, path)), penalty(len(path))
    return {
        f"{name}: number": total / divided,
        f"{name}: log-probability": total,
        f"{name}: divided by": divided,
        f"{name}: score": total / divided,
    }


def beams(visitor: Visitor) -> list[Claim]:
    """Every node with its three numbers, and the two texts that were found."""
    assert not SHAKESPEARE.model.config.generation.eos_ids, "here no token ends the text"
    steps, made = searched(), list[Claim]()
    flat = [each for step in steps for each in step]
    for (path, total), (label, number, told) in zip(flat, nodes(visitor, "beam_tree"), strict=True):
        assert label == SHAKESPEARE.label(path[-1])
        fell, by, score = told.partition("log-probability ")[2].replace("= score", "÷").split("÷")
        made += claims(_of_way(path, total), (number, fell, by, score))
    for (path, total), line in zip(steps[-1], grid(visitor, "length penalty"), strict=False):
        made.append(Claim(f"tokens of {line[0]}", line[1], len(path)))
        made += claims(_of_way(path, total), (line[4], *line[2:5]))
    considered, kept = said(visitor, r"\. (\d+) tokens considered, (\d+) kept")
    return made + claims({"considered": len(flat), "kept": BEAMS * LENGTH}, (considered, kept))


def forcing(visitor: Visitor) -> list[Claim]:
    """Half of the text is given; each next token of the target, and the model's own instead."""
    ids = SHAKESPEARE.ids
    given = (ids.shape[1] + 1) // 2
    target = ids[0, given:]
    logits = SHAKESPEARE.logits[given - 1 : -1]
    chances = logits.softmax(-1).gather(-1, target[:, None])[:, 0]
    free = ids[:, :given]
    with torch.no_grad():
        for _ in target:
            free = torch.cat((free, SHAKESPEARE.model(free)[:, -1:].argmax(-1)), 1)
    best, own = logits.argmax(-1), free[0, given:]
    lines = {name: cells for name, *cells in board(visitor, "forcing")}
    for name, written in {
        "target": target,
        "prediction": best,
        "free-running output": own,
    }.items():
        assert lines[name] == [SHAKESPEARE.label(each) for each in written.tolist()], name
    shown = said(
        visitor,
        r"Teacher forcing: (\d+) of (\d+) predictions are correct, ([\d.]+) nats per token\. "
        r"Free running: .*; (\d+) of \d+ are correct",
    )
    true = {f"chance of step {at}": chance for at, chance in enumerate(chances)}
    true["right when fed"] = int((best == target).sum())
    true["steps"], true["nats"] = len(target), -chances.log().mean()
    true["right of its own"] = int((own == target).sum())
    return claims(true, [*lines["probability of the target"], *shown])
