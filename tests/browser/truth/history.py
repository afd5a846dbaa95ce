"""What the page Training history claims of a run, made again by the core alone."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from explorer.runs.run import Run
from explorer.tasks import TASKS
from models import Transformer, load_checkpoint, trace
from tests.browser.truth.screen import Claim, said
from tests.browser.visiting import Visitor

TEXT, STEP, SITE = "abcdef", 5, "decoder.0.cross_attn"
N = r"([\d.,−e]+\d)"
ASKS = f"text={TEXT}&part=Cross&layer=0&head=1&training_step={STEP}"


def model_at(run: Run, step: int) -> Transformer:
    return load_checkpoint(dict(run.snapshots())[step]).model.eval()


def weights(run: Run, step: int) -> Tensor:
    """Of the heads over the text, (heads, q, k); the decoder reads what the last step writes."""
    task, last = TASKS[run.spec.task], max(dict(run.snapshots()))
    source = torch.tensor([task.tokenizer.ids(TEXT)])
    target = model_at(run, last).generate(source, max_length=12, temperature=0)[:, :-1]
    return trace(model_at(run, step), source, target).weights(SITE)[0]


def expected(run: Run) -> Tensor:
    """Where the last letter is first: key n − 1 − i of row i, and the end at the end."""
    _, queries, keys = weights(run, STEP).shape
    pattern = torch.zeros(queries, keys, dtype=torch.bool)
    for row in range(min(len(TEXT), queries)):
        pattern[row, len(TEXT) - 1 - row] = True
    return pattern


def score(run: Run, step: int) -> Tensor:
    """Of each head: the mean weight on the expected key, over the rows that expect one."""
    pattern = expected(run)
    return (weights(run, step) * pattern).sum(-1)[:, pattern.any(-1)].mean(-1)


def film(visitor: Visitor, run: Run) -> list[Claim]:
    found = {row.step: row for row in run.metrics().rows}[STEP]
    visitor.widget("film").locator("dd").first.wait_for()
    shown = visitor.widget("film").locator(".said").inner_text()
    match = re.search(rf"Score, expected pattern\s*{N}\s*Loss\s*{N}", shown)
    assert match, shown
    on_pattern, loss = match.groups()
    return [
        Claim("score", on_pattern, float(score(run, STEP)[1])),
        Claim("loss", loss, float(found.loss or 0)),
    ]


def guess(visitor: Visitor, run: Run) -> list[Claim]:
    """The heads with the highest score before and after, once a guess was made."""
    visitor.until_run(visitor.widget("guess_0").get_by_role("button").click)
    steps = [*dict(run.snapshots())]
    shown = said(visitor, rf"{N} on the pattern[\s\S]*?{N} on the pattern")
    true = [float(score(run, step).max()) for step in (steps[0], steps[-1])]
    return [Claim(f"step {at}", *each) for at, each in enumerate(zip(shown, true, strict=True))]


def two_moments(visitor: Visitor, run: Run) -> list[Claim]:
    steps = [*dict(run.snapshots())]
    change = (weights(run, steps[-1]) - weights(run, steps[0]))[1]
    visitor.drawn("map_difference")
    legend = visitor.widget("map_difference").locator(".legend").inner_text()
    return [Claim("largest change", legend.split()[-1], float(change.abs().max()))]


def forming(visitor: Visitor, run: Run) -> list[Claim]:
    """No head of so short a training does anything; the threshold is what is said."""
    (least,) = said(visitor, rf"has a score of {N} or more")
    best = max(float(score(run, step).max()) for step in dict(run.snapshots()))
    assert best < float(least)
    return [Claim("threshold", least, 0.3)]


VIEWS: dict[str, tuple[Callable[[Visitor, Run], list[Claim]], str]] = {
    "Film": (film, ASKS),
    "Guess the pattern": (guess, ASKS),
    "Two moments": (two_moments, ASKS),
    "When heads form": (forming, ASKS),
}
"""What each view claims of a tiny run, and what its address asks for."""
