"""The head of a model that a new reader sees first."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import Part, parts
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.results_cache import cached
from explorer.tasks import pattern_of, pattern_score
from explorer.text.number_format import three


def default_head(opened: OpenModel) -> tuple[str, int, int]:
    """The part, layer and head to show first.

    The head that the model's record names, or the one closest to the task's expected pattern;
    without a pattern, the head with the largest weights.
    """
    return cached(opened, "default head", lambda: _find_default(opened))


def _find_default(opened: OpenModel) -> tuple[str, int, int]:
    if head := _head_of_record(opened):
        return head
    part = parts(opened.config)[-1]
    try:
        forward = run_text(opened, opened.example)
        if expected := _pattern_scores(opened, forward):
            return expected.part, expected.layer, int(expected.scores.argmax())
        return _most_decided(forward, part)
    except (ForwardPassError, ValueError):
        return part.name, 0, 0


def _head_of_record(opened: OpenModel) -> tuple[str, int, int] | None:
    """The head that the model's record names, if it exists: anybody may have written the record."""
    match opened.run.get("first_head"):
        case [str(name), int(layer), int(head)]:
            for part in parts(opened.config):
                has_it = layer in range(part.layers) and head in range(part.heads)
                if part.name == name and has_it:
                    return name, layer, head
    return None


def on_pattern(opened: OpenModel, forward: ForwardPass, part: str, layer: int, head: int) -> str:
    """The share of its weight that this head has on the keys that the task expects, in a sentence.

    Empty where the task expects nothing of this attention and text.
    """
    expected = _pattern_scores(opened, forward)
    if expected is None or (expected.part, expected.layer) != (part, layer):
        return ""
    share, rows = three(float(expected.scores[head])), expected.rows
    return (
        f"The expected keys of the task get {share} of the weight of their rows on average "
        f"({rows} {'row' if rows == 1 else 'rows'} of this text)."
    )


@dataclass(frozen=True, eq=False)
class _PatternScores:
    """Each head's weight on the expected keys of the task's attention, and the number of rows."""

    part: str
    layer: int
    scores: Tensor
    rows: int


def _pattern_scores(opened: OpenModel, forward: ForwardPass) -> _PatternScores | None:
    if opened.task is None or not opened.task.pattern_site:
        return None
    stack, layer, attention = opened.task.pattern_site.split(".")[:3]
    part = next((p for p in forward.parts if p.name == f"{stack}.{attention}"), None)
    if part is None or int(layer) >= part.layers:
        return None
    target = forward.target if forward.source else ()
    shape = torch.Size((len(forward.rows(part.name)), len(forward.columns(part.name))))
    pattern = pattern_of(opened.task, forward.tokens, target, shape)
    if pattern is None:
        return None
    heads = forward.some_heads(part.name, int(layer))
    scores = torch.cat([pattern_score(weights, pattern) for weights in heads])
    return _PatternScores(part.name, int(layer), scores, int((pattern.sum(-1) > 0).sum()))


def _most_decided(forward: ForwardPass, part: Part) -> tuple[str, int, int]:
    content = torch.tensor([not token.special for token in forward.columns(part.name)])
    if content[1:].any():
        content[0] = False  # the first token is an attention sink of many heads
    marks = [
        weights[..., content].amax(dim=-1).mean(dim=-1)
        for layer in range(part.layers)
        for weights in forward.some_heads(part.name, layer)
    ]
    best = int(torch.cat(marks).argmax())
    return part.name, best // part.heads, best % part.heads
