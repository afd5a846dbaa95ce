"""Experiments on the attention sink: without it, with another, its edges cut, its value zeroed.

Each is one more pass of the text. The loss before and after is that of the same tokens.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.analysis.attention_sinks import sink_rows, sink_weights
from explorer.analysis.output_change import divergence, has_words, last_stream, over_text
from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.inference.edited_pass import MOST_WEIGHTS, TOO_MANY_WEIGHTS
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, rerun
from models.interventions import Edit, ReplaceAt, SetCell, check_index

REMOVED, REPLACED = "removed", "replaced"
CUT, CUT_EVERYWHERE = "cut", "cut everywhere"
ZEROED, ZEROED_EVERYWHERE = "zeroed", "zeroed everywhere"
EXPERIMENTS = (REMOVED, REPLACED, CUT, CUT_EVERYWHERE, ZEROED, ZEROED_EVERYWHERE)
IN_ONE_HEAD = (CUT, ZEROED)
PLACE = ("start", "end", "segment", "second")
"""Of a token, what another one in its place takes over."""
FEWEST_TOKENS = 3
"""With fewer, no token is predicted that every experiment leaves in place."""


@dataclass(frozen=True)
class CutKey:
    """No row attends to one key, except a row that sees no other; at `mask` or `masked`.

    The softmax that follows gives its weight to the other keys. `head` None is every head.
    """

    site: str
    key: int
    head: int | None = None

    def __call__(self, value: Tensor) -> Tensor:
        check_index("key", self.key, value.shape[-1], self.site)
        nothing = False if value.dtype == torch.bool else torch.finfo(value.dtype).min
        others = value != nothing
        others[..., self.key] = False
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        changed, cut = value.clone(), value[..., self.key].masked_fill(others.any(-1), nothing)
        changed[:, heads, :, self.key] = cut[:, heads]
        return changed


@dataclass(frozen=True)
class SinkEffect:
    """What an experiment changes.

    `before` and `after` are the loss in nats per token; without a predicted next token `before` is
    None, and `after` how much the output changes: the mean KL over positions, the divergence of a
    whole output, or the relative change of the last residual stream of a model without a head.
    `weights` (layers, heads) are the sink weights in the changed pass, or None where the experiment
    sets some of them.
    """

    before: float | None
    after: float
    weights: Tensor | None


def sink_experiment(
    opened: OpenModel,
    forward: ForwardPass,
    name: str,
    head: tuple[str, int, int],
    token: int,
) -> SinkEffect:
    """The effect of one of EXPERIMENTS on the first token of a part; `head` is part, layer, head.

    `token` is the ID of the other first token. It costs a pass and the logits of every position.
    ForwardPassError where the weights of the layer do not fit in memory.
    """
    part, layer, index = head
    tokens, source, target = forward.rows(part), forward.source, forward.target
    if forward.part(part).heads * len(tokens) ** 2 > MOST_WEIGHTS:
        raise ForwardPassError(TOO_MANY_WEIGHTS)
    stack, kind = part.split(".")
    at, every = site(part, layer), f"{stack}.*.{kind}"
    sink, _ = sink_rows(forward.mask(part, layer))
    edits: list[Edit] = []
    match name:
        case "removed":
            tokens = tokens[1:]
        case "replaced":
            place = {field: getattr(tokens[0], field) for field in PLACE}
            tokens = replace(opened.tokenizer.token(token), **place), *tokens[1:]
        case "cut":
            edits = [CutKey(f"{at}.masked", sink, index)]
        case "cut everywhere":
            edits = [CutKey(f"{every}.mask", sink)]
        case "zeroed":
            edits = [SetCell(f"{at}.weights", None, sink, 0.0, index)]
        case "zeroed everywhere":
            edits = [ReplaceAt(f"{every}.v", sink, torch.zeros(forward.config.head_width))]
    source, target = (tokens, target) if stack == "encoder" else (source, tokens)
    after = rerun(opened, forward, source, target, edits)
    is_free = name in (REMOVED, REPLACED, ZEROED_EVERYWHERE)
    return SinkEffect(*_change(forward, after), sink_weights(after, part) if is_free else None)


def _change(before: ForwardPass, after: ForwardPass) -> tuple[float | None, float]:
    """The loss before and after, or None and the change of the output: see SinkEffect.

    The first position is left out, and a removed token is not in either.
    """
    config, traces = before.config, (before.trace, after.trace)
    missing = len(before.last_stack_tokens) - len(after.last_stack_tokens)
    if has_words(config):
        ids = before.predicted_ids[1:]
        change = over_text(*traces, (ids, ids), first=(1, 1 - missing))
        return change.loss or (None, float(change.kl.mean()))
    if config.head != "none":
        return None, float(divergence(config, *(passed.output[0] for passed in traces)))
    old, new = last_stream(traces[0])[0, 1:], last_stream(traces[1])[0, 1 - missing :]
    return None, float((new - old).norm() / old.norm())
