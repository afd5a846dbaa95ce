"""The head that is shown of a model and a text before a reader chooses one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.information_flow import cached_flow, cached_route, first_answer, is_quick
from explorer.catalog.attention_parts import parts
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.results_cache import cached
from explorer.tasks import pattern_of, pattern_score
from explorer.text.number_format import three

Head = tuple[str, int, int]


def default_head(opened: OpenModel, forward: ForwardPass | None = None) -> Head:
    """The part, layer and head to show first: that of the strongest edge in this pass's map.

    Without such an edge, the head that the model's record names, the one closest to the task's
    expected pattern over the model's example, or that of the strongest edge there.
    """
    strongest = strongest_head(opened, forward) if forward is not None else None
    return strongest or cached(opened, "default head", lambda: _find_default(opened))


def _find_default(opened: OpenModel) -> Head:
    if head := _head_of_record(opened):
        return head
    first = parts(opened.config)[-1].name, 0, 0
    try:
        forward = run_text(opened, opened.example)
        if expected := _pattern_scores(opened, forward):
            return expected.part, expected.layer, int(expected.scores.argmax())
        return strongest_head(opened, forward) or first
    except (ForwardPassError, ValueError):
        return first


def strongest_head(opened: OpenModel, forward: ForwardPass) -> Head | None:
    """The head behind the most important edge to the answer shown first that reads no sink.

    An edge from a special token reads a sink, and in self-attention one from the first token. None
    if there is no other edge, or if the shares are not computed without a noticeable wait.
    """
    if not is_quick(forward):
        return None
    key = "strongest head", *forward.key
    return cached(opened, key, lambda: _find_strongest(opened, forward))


def _find_strongest(opened: OpenModel, forward: ForwardPass) -> Head | None:
    flow, best, most = cached_flow(opened, forward), None, 0.0
    route = cached_route(opened, forward, first_answer(opened, forward))
    for part, every in route.edges.items():
        edges = every.clone()
        edges[..., [token.special for token in forward.columns(part)]] = 0
        if part.endswith("self_attn"):
            edges[..., 0] = 0
            edges.diagonal(dim1=1, dim2=2).zero_()
        if edges.numel() and float(edges.max()) > most:
            most = float(edges.max())
            layer, query, key = map(int, torch.unravel_index(edges.argmax(), edges.shape))
            shares = flow.stacks[part.split(".")[0]][layer].attentions[part]
            best = part, layer, int(shares.heads[query, key])
    return best


def _head_of_record(opened: OpenModel) -> Head | None:
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
    key = "on the task's pattern", *forward.key
    expected = cached(opened, key, lambda: _pattern_scores(opened, forward))
    if expected is None or (expected.part, expected.layer) != (part, layer):
        return ""
    share, rows = three(float(expected.scores[head])), expected.rows
    return (
        f"This head gives the keys that the task expects a weight of {share} on average "
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
