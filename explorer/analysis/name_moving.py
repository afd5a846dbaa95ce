"""Name-moving score: how much a head directly raises the name that it attends to.

It is measured at the last token of prompts such as “When Mary and John went to the store, John
gave a drink to”, with the names in both orders, so that a preference for one name cancels.
Source: Interpretability in the Wild (Wang et al. 2022), section 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.analysis.logit_attribution import direct_logits
from explorer.analysis.output_change import last_streams
from explorer.analysis.residual_writes import block_writes
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import Answer
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import record
from explorer.inference.results_cache import cached
from explorer.system.cooperative import interruptible
from explorer.text import TextError, Token

NAMES = (
    *("Mary", "John", "Tom", "James", "Anna", "Paul", "Sarah", "David", "Alice", "Peter"),
    *("Robert", "Emma", "Michael", "Laura", "George", "Kate"),
)
PROMPT = "When {a} and {b} went to the store, {b} gave a drink to"
FEWEST_NAMES = 4
"""The fewest names that the model must have as one token."""


@dataclass(frozen=True, eq=False)
class NameMoving:
    """The means over the prompts for every head, (layers, h).

    `raised` is what the head adds to the logit of the name that it attends to more, minus what it
    adds to that of the other name; `weight` is its weight on that name. `prompts` counts them.
    """

    raised: Tensor
    weight: Tensor
    prompts: int


@dataclass(frozen=True)
class NamePrompt:
    """A prompt as the model reads it: `names` are the token IDs of the answer and the other."""

    text: str
    tokens: tuple[Token, ...]
    names: tuple[int, int]

    def places(self, name: int) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token.id == name]


def name_moving(opened: OpenModel) -> NameMoving | None:
    """The scores of every head, computed once; None without a decoder or with too few names.

    Costs a pass over the prompts and one position of every layer for each.
    """
    return cached(opened, "name moving", lambda: _measure(opened))


def name_prompts(opened: OpenModel) -> list[NamePrompt]:
    """The prompts whose names are one token each, every pair of names in both orders."""
    if (opened.config.kind, opened.config.head) != ("decoder", "language-model"):
        return []
    ids = {name: token for name in NAMES if (token := _token_of(opened, name)) is not None}
    if len(ids) < FEWEST_NAMES:
        return []
    names = list(ids)
    pairs = list(zip(names[::2], names[1::2], strict=False))
    prompts = []
    for a, b in [*pairs, *(pair[::-1] for pair in pairs)]:
        text = PROMPT.format(a=a, b=b)
        prompts.append(NamePrompt(text, opened.tokenizer.encode(text), (ids[a], ids[b])))
    length, most = len(prompts[0].tokens), opened.config.max_len
    is_read = all(
        len(prompt.tokens) == length <= most
        and all(token.id < opened.config.vocab_size for token in prompt.tokens)
        for prompt in prompts
    )
    return prompts if is_read else []


def _token_of(opened: OpenModel, name: str) -> int | None:
    """The token of a name after a space; None where it is several tokens or unknown."""
    try:
        tokens = opened.tokenizer.encode(f"to {name}")
    except TextError:
        return None
    own = [token for token in tokens if token.end > token.start and token.end > 3]
    is_one = len(own) == 1 and own[0].id != opened.tokenizer.unk_id
    return own[0].id if is_one else None


def _measure(opened: OpenModel) -> NameMoving | None:
    prompts = name_prompts(opened)
    if not prompts:
        return None
    passed = record(opened, [prompt.tokens for prompt in prompts], read_at=slice(-1, None))
    first = ForwardPass(
        prompts[0].text, opened.config, (), prompts[0].tokens, (), passed, Answer("next", "")
    )
    passes = [
        replace(first, text=prompt.text, target=prompt.tokens, row=row)
        for row, prompt in enumerate(prompts)
    ]
    _, layers = last_streams(opened.config)
    by_layer = [_of_layer(passes, prompts, layer) for layer in interruptible(range(layers))]
    raised, weight = (torch.stack(layers) for layers in zip(*by_layer, strict=True))
    return NameMoving(raised, weight, len(prompts))


def _of_layer(
    passes: Sequence[ForwardPass], prompts: Sequence[NamePrompt], layer: int
) -> tuple[Tensor, Tensor]:
    """The means of `raised` and `weight` in one layer over the prompts, (h,) each."""
    stack, _ = last_streams(passes[0].config)
    all_weights = passes[0].trace.weights(f"{stack}.{layer}.self_attn")[:, :, -1]
    raised, weights = [], []
    for forward, prompt, rows in zip(passes, prompts, all_weights, strict=True):
        place = len(prompt.tokens) - 1
        write = block_writes(forward, stack, layer, torch.tensor([place]))
        attention = write.attentions[f"{stack}.self_attn"]
        by_head = torch.stack(
            [attention.through(head, out)[0] for head, out in enumerate(attention.heads)]
        )
        logits = direct_logits(forward, layer, place, by_head, torch.tensor(prompt.names))
        on = torch.stack([rows[:, prompt.places(name)].sum(-1) for name in prompt.names], -1)
        better = on.argmax(-1, keepdim=True)
        raised.append((logits.gather(-1, better) - logits.gather(-1, 1 - better))[:, 0])
        weights.append(on.gather(-1, better)[:, 0])
    return torch.stack(raised).mean(0), torch.stack(weights).mean(0)
