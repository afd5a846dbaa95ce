"""What the Museum shows: an exhibit, every instrument of the hunt, and the systems."""

from __future__ import annotations

import math

import torch

from explorer.bench.museum_finding import order
from explorer.museum.exhibits import FINDABLE
from models.mistakes import MISTAKES
from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth import core, others
from tests.browser.truth.measured import INSTRUMENTS, Run, gradients
from tests.browser.truth.screen import Claim, rows, said, words
from tests.browser.visiting import Visitor
from tests.served import wait_until


def exhibits(visitor: Visitor) -> list[Claim]:
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


def right_run() -> Run:
    """The small encoder-decoder over the sentence of the truth test, and what it answered."""
    model, folder = others.model(others.CROSS.name), others.CROSS
    ids = others.ids(folder)
    written = model.generate(ids, max_length=model.config.max_len, greedy=True)
    return Run(model, ids, written[:, :-1], written[:, 1:], folder.head)


def asks(name: str) -> str:
    """The question of the hunt whose run has the mistake that this instrument shows."""
    config = others.model(others.CROSS.name).config
    fitting = [each for each in FINDABLE if MISTAKES[each.name].misfit(config) is None]
    hidden = [each.name for each in order(fitting, 0)]
    return f"&order=0&question={1 + hidden.index(INSTRUMENTS[name].mistake)}"


def instrument(name: str, visitor: Visitor) -> list[Claim]:
    """What it says of the run with the mistake, and of the right one."""
    held, right = INSTRUMENTS[name], right_run()
    runs = {"wrong": right_with(held.mistake), "right": right}
    heading = f"{name}, of the run with a mistake"
    wait_until(lambda: f"{heading}\n" in words(visitor), heading, 60)
    wrong, should = said(visitor, rf"{heading}\s+(.+)\s+As it should be: (.+)")
    texts = {"wrong": wrong, "right": should}
    if name == "Writing":  # its sentence has the words, the line under it how many differ
        both = dict(rows(visitor))["different ones"].split("; should be ")
        texts = {"wrong": both[0], "right": both[-1]}
    made = [
        claim
        for which, text in texts.items()
        for claim in held.claims(f"{name}, {which}", text, runs[which])
    ]
    if name == "Loss and gradients":
        made += _gradients(visitor, runs)
    return made


def right_with(mistake: str) -> Run:
    """The same with a mistake."""
    run = right_run()
    model = MISTAKES[mistake].make(run.model)
    return Run(model, run.ids, run.target, run.labels, run.head)


def _gradients(visitor: Visitor, runs: dict[str, Run]) -> list[Claim]:
    lines, made = dict(rows(visitor)), []
    both = {which: gradients(run) for which, run in runs.items()}
    for site, wrong in both["wrong"].items():
        shown = lines[f"gradient at {site}, all tokens"].split("; should be ")
        made.append(Claim(f"gradient at {site}, wrong", shown[0], wrong))
        made.append(Claim(f"gradient at {site}, right", shown[1], both["right"][site]))
    return made


def systems(visitor: Visitor) -> list[Claim]:
    """How large each document's system is."""
    made = []
    for name, _, count, size in rows(visitor)[1:]:
        with torch.device("meta"):
            true = sum(each.numel() for each in Transformer(PRESETS[name]()).parameters())
        made.append(Claim(f"parameters of {name}", count, true))
        made.append(Claim(f"megabytes of {name}", size, 4 * true / 1e6))
    return made
