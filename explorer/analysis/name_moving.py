"""Name-moving score: how much a head raises, directly, the name that it attends to.

On prompts such as “When Mary and John went to the store, John gave a drink to”, read at the last
token. Both names in both orders, so neither is raised for being what it is.
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
from explorer.inference.results_cache import kept
from explorer.system.cooperative import interruptible
from explorer.text import TextError, Token

NAMES = (
    *("Mary", "John", "Tom", "James", "Anna", "Paul", "Sarah", "David", "Alice", "Peter"),
    *("Robert", "Emma", "Michael", "Laura", "George", "Kate"),
)
PROMPT = "When {a} and {b} went to the store, {b} gave a drink to"
FEWEST_NAMES = 4
"""Names that a model must know as one token."""


@dataclass(frozen=True, eq=False)
class NameMoving:
    """Of every head, (layers, h), the means over the prompts.

    `raised` is what the head adds to the logit of the name that it attends to more, less that of
    the other name; `weight` its weight on that name. `prompts` is how many there are.
    """

    raised: Tensor
    weight: Tensor
    prompts: int


@dataclass(frozen=True)
class NamePrompt:
    """A prompt as a model reads it: `names` are the token IDs of the two, asked for and not."""

    text: str
    tokens: tuple[Token, ...]
    names: tuple[int, int]

    def places(self, name: int) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token.id == name]


def name_moving(opened: OpenModel) -> NameMoving | None:
    """Of every head; None for a model that continues no text or knows too few names. Made once.

    Costs a pass over the prompts and one position of every layer for each.
    """
    return kept(opened, "name moving", lambda: _measured(opened))


def name_prompts(opened: OpenModel) -> list[NamePrompt]:
    """The prompts whose names are one token each, every pair of names in both orders."""
    if (opened.config.kind, opened.config.head) != ("decoder", "language-model"):
        return []
    known = [name for name in NAMES if _token_of(opened, name) is not None]
    if len(known) < FEWEST_NAMES:
        return []
    pairs = list(zip(known[::2], known[1::2], strict=False))
    found = []
    for a, b in [*pairs, *(pair[::-1] for pair in pairs)]:
        text = PROMPT.format(a=a, b=b)
        asked, other = _token_of(opened, a), _token_of(opened, b)
        assert asked is not None
        assert other is not None
        found.append(NamePrompt(text, opened.tokenizer.encode(text), (asked, other)))
    length, most = len(found[0].tokens), opened.config.max_len
    is_read = all(
        len(each.tokens) == length <= most
        and all(token.id < opened.config.vocab_size for token in each.tokens)
        for each in found
    )
    return found if is_read else []


def _token_of(opened: OpenModel, name: str) -> int | None:
    """The token of a name behind a space; None where it is several or unknown."""
    try:
        tokens = opened.tokenizer.encode(f"to {name}")
    except TextError:
        return None
    own = [token for token in tokens if token.end > token.start and token.end > 3]
    is_one = len(own) == 1 and own[0].id != opened.tokenizer.unk_id
    return own[0].id if is_one else None


def _measured(opened: OpenModel) -> NameMoving | None:
    prompts = name_prompts(opened)
    if not prompts:
        return None
    passed = record(opened, [each.tokens for each in prompts], read_at=slice(-1, None))
    first = ForwardPass(
        prompts[0].text, opened.config, (), prompts[0].tokens, (), passed, Answer("next", "")
    )
    passes = [
        replace(first, text=each.text, target=each.tokens, row=row)
        for row, each in enumerate(prompts)
    ]
    _, layers = last_streams(opened.config)
    found = [_of_layer(passes, prompts, layer) for layer in interruptible(range(layers))]
    raised, weight = (torch.stack(each) for each in zip(*found, strict=True))
    return NameMoving(raised, weight, len(prompts))


def _of_layer(
    passes: Sequence[ForwardPass], prompts: Sequence[NamePrompt], layer: int
) -> tuple[Tensor, Tensor]:
    """(h,) each: what is raised, and the weight on it, the means over the prompts."""
    stack, _ = last_streams(passes[0].config)
    all_weights = passes[0].trace.weights(f"{stack}.{layer}.self_attn")[:, :, -1]
    raised, weights = [], []
    for forward, prompt, seen in zip(passes, prompts, all_weights, strict=True):
        place = len(prompt.tokens) - 1
        write = block_writes(forward, stack, layer, torch.tensor([place]))
        attended = write.attended[f"{stack}.self_attn"]
        written = torch.stack(
            [attended.through(head, out)[0] for head, out in enumerate(attended.heads)]
        )
        logits = direct_logits(forward, layer, place, written, torch.tensor(prompt.names))
        on = torch.stack([seen[:, prompt.places(name)].sum(-1) for name in prompt.names], -1)
        better = on.argmax(-1, keepdim=True)
        raised.append((logits.gather(-1, better) - logits.gather(-1, 1 - better))[:, 0])
        weights.append(on.gather(-1, better)[:, 0])
    return torch.stack(raised).mean(0), torch.stack(weights).mean(0)
