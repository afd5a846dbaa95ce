"""Positions put to the test: a mistake in their formula, another order, a text too long.

Shapes: t tokens, d width of the model. The passes are real: a model's own weights, in its
own scheme or in one that needs no trained numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.model_inputs import ids_of
from explorer.text import Token
from explorer.views.museum.mistakes.position_mistakes import (
    barely_moving,
    doubled_sinusoids,
    spread_at,
)
from models import Transformer, TransformerConfig, trace
from models.heads import LanguageModelHead
from models.positional import Positions, sinusoids
from models.trace import CHEAP_SITES, Trace

TRAINED = ("learned", "relative")
"""Schemes made of trained numbers: only a model that was trained with them has some."""
DOCUMENT = {"d_model": 512, "places": 60, "offset": 5}
"""The size at which the document's mistake is measured: width, positions, and a distance."""
MOST_TOKENS = 2_048
"""No longer text is passed only to see what happens."""
AT_ONCE = 64
"""Positions whose whole vocabulary is scored together."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of positions (t, d) and the numbers that give a mistake away.

    `first` are the first four numbers of position 1, `still` the dimensions that move less
    than `STILL` over all positions, `spread` the standard deviation of the products of two
    positions `offset` apart, which is nothing where the product depends on the distance alone.
    """

    table: Tensor
    first: tuple[float, ...]
    still: int
    spread: float


def measured(table: Tensor, offset: int) -> Measured:
    """Those numbers of a table of at least `offset` + 2 positions."""
    first = tuple(table[1, :4].tolist())
    return Measured(table, first, barely_moving(table), spread_at(table, offset))


def right_and_doubled(d_model: int, places: int, offset: int) -> tuple[Measured, Measured]:
    """The formula as it is in the paper, and with the exponent doubled."""
    positions = torch.arange(places)
    right = sinusoids(positions, d_model)
    return measured(right, offset), measured(doubled_sinusoids(positions, d_model), offset)


# ---- the same weights in another scheme ----------------------------------------------


def can_have(model: Transformer, scheme: str, length: int = 1) -> bool:
    """Whether the weights of this model can be passed in that scheme, over so many tokens."""
    config = model.config
    is_own = scheme == config.positions and length <= config.max_len
    return is_own or _fault(config, scheme, length) is None


def _fault(config: TransformerConfig, scheme: str, max_len: int) -> str | None:
    """Why there is no such model, in a sentence."""
    if scheme in TRAINED and scheme != config.positions:
        return f"The {scheme} positions are trained numbers, and this model has none."
    if scheme == "learned" and max_len != config.max_len:
        return f"The table has {config.max_len:,} rows, for so many tokens and no others."
    return _changed(config, scheme, max_len).fault()


def _changed(config: TransformerConfig, scheme: str, max_len: int) -> TransformerConfig:
    changes: dict[str, object] = {"positions": scheme, "max_len": max_len}
    if scheme != config.positions:
        changes |= {"rope_scaling": None, "d_rotary": None, "pairs": None}
    return config.replace(**changes)


def twin(model: Transformer, scheme: str, max_len: int | None = None) -> Transformer:
    """The same weights, not copied, with this scheme and for this many tokens; in eval mode.

    ValueError, in one sentence, where there is no such model.
    """
    max_len = max_len or model.config.max_len
    if fault := _fault(model.config, scheme, max_len):
        raise ValueError(fault)
    with torch.device("meta"):
        made = Transformer(_changed(model.config, scheme, max_len))
    made.load_state_dict(model.state_dict(), strict=False, assign=True)
    for module in made.modules():
        if isinstance(module, Positions):
            for name, buffer in list(module.named_buffers(recurse=False)):
                module.register_buffer(name, torch.empty(buffer.shape), persistent=False)
            module.reset_buffers()
    return made.eval()


def in_scheme(opened: Opened, scheme: str, max_len: int | None = None) -> Opened:
    """The model as it is where its own scheme has room for so many tokens, or its twin."""
    config = opened.config
    if scheme == config.positions and (max_len is None or max_len <= config.max_len):
        return opened
    made = twin(opened.model, scheme, max_len)
    return dataclasses.replace(opened, model=made, config=made.config)


# ---- the sentence in another order ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moved:
    """A text and the same tokens in another order, passed in one scheme.

    `order` has the former place of the token at every place. `changes` (t) is, for each
    token of the former order, the length of the change of its last vector by the length of
    the vector; `largest` the largest of these.
    """

    before: ForwardPass
    after: ForwardPass
    order: tuple[int, ...]
    changes: Tensor

    @property
    def largest(self) -> float:
        return float(self.changes.max())

    @property
    def places(self) -> list[int]:
        """Where each token of the former order stands now."""
        return sorted(range(len(self.order)), key=self.order.__getitem__)

    def put_back(self, part: str, layer: int, head: int) -> Tensor:
        """The weights of the new order, every row and column where its token stood before."""
        return self._back(self.after.weights(part, layer, head), part)

    def allowed(self, part: str, layer: int) -> tuple[Tensor, Tensor]:
        """Who may look at whom before, and in the new order put back likewise."""
        return self.before.mask(part, layer), self._back(self.after.mask(part, layer), part)

    def _back(self, values: Tensor, part: str) -> Tensor:
        """Rows and columns (queries, keys) of what was typed where they stood before."""
        reads = part.split(".")[0] == self.stack
        values = values[self.places] if reads else values
        return values[:, self.places] if reads or part == "decoder.cross_attn" else values

    @property
    def stack(self) -> str:
        """The stack that read what was typed."""
        return "encoder" if self.before.source else "decoder"


def moved(opened: Opened, forward: ForwardPass, order: Sequence[int], scheme: str) -> Moved:
    """The tokens of the text in this order, passed in this scheme beside the former order.

    Two more passes; one where the scheme is the model's own.
    """
    model = in_scheme(opened, scheme, longest(forward))
    before = forward if model is opened else _passed(model, forward, forward.tokens)
    after = _passed(model, forward, tuple(forward.tokens[place] for place in order))
    made = Moved(before, after, tuple(order), torch.empty(0))
    at = f"{made.stack}.{_layers(forward, made.stack) - 1}.resid_post"
    was, now = (each.trace[at][each.row] for each in (before, after))
    change = (now[made.places] - was).norm(dim=-1) / was.norm(dim=-1).clamp(min=1e-12)
    return dataclasses.replace(made, changes=change)


def longest(forward: ForwardPass) -> int:
    """Tokens of the longer of its texts: no model has to have more positions."""
    return max(len(forward.source), len(forward.target))


def _passed(opened: Opened, forward: ForwardPass, tokens: tuple[Token, ...]) -> ForwardPass:
    source, target = (tokens, forward.target) if forward.source else ((), tokens)
    return rerun(opened, forward, source, target, ())


def _layers(forward: ForwardPass, stack: str) -> int:
    config = forward.config
    return config.encoder_layers if stack == "encoder" else config.n_layers


def swapped(forward: ForwardPass, first: int, second: int) -> list[int]:
    """Two tokens in each other's place."""
    order = list(range(len(forward.tokens)))
    order[first], order[second] = second, first
    return order


def backwards(forward: ForwardPass) -> list[int]:
    """What was typed from its end to its beginning; special tokens stay."""
    order = list(range(len(forward.tokens)))
    typed = [place for place in order if not forward.tokens[place].special]
    for place, other in zip(typed, reversed(typed), strict=True):
        order[place] = other
    return order


# ---- longer than trained --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Longer:
    """The typed tokens again and again, beyond `trained` positions, in one pass.

    `looks_at` (queries) is e^entropy of each row of one head: how many keys it looks at, as
    if evenly. `nats` (t − 1) is what a decoder loses on each next token, else None.
    """

    length: int
    trained: int
    part: str
    layer: int
    looks_at: Tensor
    nats: Tensor | None

    def halves(self, values: Tensor) -> tuple[float, float]:
        """The mean where the model was trained, and beyond."""
        return float(values[: self.trained].mean()), float(values[self.trained :].mean())


def repeated(tokens: Sequence[Token], length: int) -> tuple[Token, ...]:
    """What was typed again and again; special tokens before and behind it stand once."""
    typed = [at for at, token in enumerate(tokens) if not token.special]
    if not typed:
        return tuple(tokens[at % len(tokens)] for at in range(length))
    first, last = typed[0], typed[-1] + 1
    room = length - first - (len(tokens) - last)
    middle = tuple(tokens[first:last])
    again = (middle * (room // len(middle) + 1))[:room]
    return (*tokens[:first], *again, *tokens[last:])


def longer(
    opened: Opened, forward: ForwardPass, length: int, scheme: str, part: str, layer: int, head: int
) -> Longer:
    """One pass over `length` tokens. Cost grows with length² × layers, and with the vocabulary.

    A part that reads what is written tells nothing of a longer source: then the encoder's
    first layers are looked at.
    """
    trained = opened.config.max_len
    model = in_scheme(opened, scheme, length).model
    tokens = repeated(forward.tokens, length)
    reads = "encoder.self_attn" if forward.source else "decoder.self_attn"
    layer = layer if part == reads else 0
    passed = _watched(model, forward, tokens)
    at = site(reads, layer)
    weights = passed.weights(at, head=head)[0].detach()
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
    nats = None
    if model.config.kind == "decoder" and isinstance(model.head, LanguageModelHead):
        nats = _nats(model, passed["decoder.final"][0], ids_of([tokens])[0])
    return Longer(length, trained, reads, layer, entropy.exp(), nats)


def _watched(model: Transformer, forward: ForwardPass, tokens: Sequence[Token]) -> Trace:
    sites = (*CHEAP_SITES, "*.final")
    ids = ids_of([tokens])
    if forward.source and forward.target:
        return trace(model, ids, ids_of([forward.target]), sites=sites)
    most = max(model.config.n_segments - 1, 0)
    segments = torch.tensor([[min(token.segment, most) for token in tokens]])
    return trace(
        model,
        ids,
        segments=segments if model.config.n_segments else None,
        read_at=slice(-1, None),
        sites=sites,
    )


def _nats(model: Transformer, final: Tensor, ids: Tensor) -> Tensor:
    """−ln of the chance of each next token (t − 1), a few positions at a time."""
    found = []
    with torch.no_grad():
        for start in range(0, len(ids) - 1, AT_ONCE):
            end = min(start + AT_ONCE, len(ids) - 1)
            logits = model.read(final[None, start:end])[0]
            expected = ids[start + 1 : end + 1, None]
            found.append(-logits.log_softmax(-1).gather(-1, expected)[:, 0])
    return torch.cat(found)
