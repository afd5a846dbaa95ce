"""The reader's text in another position scheme, in another order, or longer than in training.

Shapes: t tokens. All passes use the model's own weights, with its own scheme or with one that
has no trained parameters.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.model_inputs import ids_of, record
from explorer.text import Token
from models import Transformer, TransformerConfig
from models.output_heads import LanguageModelHead
from models.positional import Positions
from models.trace import CHEAP_SITES

TRAINED_POSITIONS = ("learned", "relative")
"""Schemes with trained parameters: only a model that was trained with one can use it."""
MAX_EXTRAPOLATED = 2_048
"""Tokens of the longest text that is run only to see what happens."""
AT_ONCE = 64
"""Positions whose whole vocabulary is scored together."""


def can_run(model: Transformer, scheme: str, length: int = 1) -> bool:
    """Whether this model's weights work with that scheme, for texts of this length."""
    config = model.config
    is_own = scheme == config.positions and length <= config.max_len
    return is_own or _fault(config, scheme, length) is None


def _fault(config: TransformerConfig, scheme: str, max_len: int) -> str | None:
    """Why there is no such model, in a sentence."""
    if scheme in TRAINED_POSITIONS and scheme != config.positions:
        return f"{scheme.capitalize()} positions are trained parameters, and this model has none."
    if scheme == "learned" and max_len != config.max_len:
        return f"The table has {config.max_len:,} rows and works only for that many tokens."
    return _changed(config, scheme, max_len).fault()


def _changed(config: TransformerConfig, scheme: str, max_len: int) -> TransformerConfig:
    changes: dict[str, object] = {"positions": scheme, "max_len": max_len}
    if scheme != config.positions:
        changes |= {"rope_scaling": None, "d_rotary": None, "pairs": None}
    return config.replace(**changes)


def twin(model: Transformer, scheme: str, max_len: int | None = None) -> Transformer:
    """A model with the same weights, not copied, and this scheme, in eval mode.

    ValueError says why there is no such model.
    """
    max_len = max_len or model.config.max_len
    if fault := _fault(model.config, scheme, max_len):
        raise ValueError(fault)
    with torch.device("meta"):
        variant = Transformer(_changed(model.config, scheme, max_len))
    variant.load_state_dict(model.state_dict(), strict=False, assign=True)
    for module in variant.modules():
        if isinstance(module, Positions):
            for name, buffer in list(module.named_buffers(recurse=False)):
                module.register_buffer(name, torch.empty(buffer.shape), persistent=False)
            module.reset_buffers()
    return variant.eval()


def in_scheme(opened: OpenModel, scheme: str, max_len: int | None = None) -> OpenModel:
    """The model itself where its own scheme has room for `max_len` tokens, else its twin."""
    config = opened.config
    if scheme == config.positions and (max_len is None or max_len <= config.max_len):
        return opened
    model = BoundedTransformer(twin(opened.model, scheme, max_len))
    return dataclasses.replace(opened, model=model, config=model.config)


@dataclass(frozen=True, eq=False)
class Permutation:
    """The forward passes of a text and of its tokens in another order, in one scheme.

    `order` has the former position of the token at every position.
    """

    before: ForwardPass
    after: ForwardPass
    order: tuple[int, ...]

    @cached_property
    def changes(self) -> Tensor:
        """The relative change of each token's last vector, in the former order (t,)."""
        config = self.before.config
        layers = config.encoder_layers if self.stack == "encoder" else config.n_layers
        at = f"{self.stack}.{layers - 1}.resid_post"
        was, now = (run.trace[at][run.row] for run in (self.before, self.after))
        return (now[self.places] - was).norm(dim=-1) / was.norm(dim=-1).clamp(min=1e-12)

    @property
    def largest(self) -> float:
        return float(self.changes.max())

    @property
    def places(self) -> list[int]:
        """The new position of each token of the former order."""
        return sorted(range(len(self.order)), key=self.order.__getitem__)

    def put_back(self, part: str, layer: int, head: int) -> Tensor:
        """The weights of the pass in the new order, with rows and columns in the former order."""
        return self._back(self.after.weights(part, layer, head), part)

    def masks(self, part: str, layer: int) -> tuple[Tensor, Tensor]:
        """The masks of both passes, with rows and columns in the former order."""
        return self.before.mask(part, layer), self._back(self.after.mask(part, layer), part)

    def _back(self, values: Tensor, part: str) -> Tensor:
        """Rows and columns (queries, keys) of the typed tokens in the former order."""
        reads = part.split(".")[0] == self.stack
        values = values[self.places] if reads else values
        return values[:, self.places] if reads or part == "decoder.cross_attn" else values

    @property
    def stack(self) -> str:
        """The stack that reads the typed text."""
        return "encoder" if self.before.source else "decoder"


def permuted(
    opened: OpenModel, forward: ForwardPass, order: Sequence[int], scheme: str
) -> Permutation:
    """Both orders in this scheme. Cost: two passes, one where the scheme is the model's own."""
    model = in_scheme(opened, scheme, longest_text(forward))
    before = forward if model is opened else _run_in_order(model, forward, forward.tokens)
    after = _run_in_order(model, forward, tuple(forward.tokens[place] for place in order))
    return Permutation(before, after, tuple(order))


def longest_text(forward: ForwardPass) -> int:
    """The tokens of its longer text, which is the number of positions that a model needs."""
    return max(len(forward.source), len(forward.target))


def _run_in_order(
    opened: OpenModel, forward: ForwardPass, tokens: tuple[Token, ...]
) -> ForwardPass:
    source, target = (tokens, forward.target) if forward.source else ((), tokens)
    return rerun(opened, forward, source, target, ())


def swapped_order(forward: ForwardPass, first: int, second: int) -> list[int]:
    order = list(range(len(forward.tokens)))
    order[first], order[second] = second, first
    return order


def reversed_order(forward: ForwardPass) -> list[int]:
    """The typed tokens reversed; special tokens stay where they are."""
    order = list(range(len(forward.tokens)))
    typed = [place for place in order if not forward.tokens[place].special]
    for place, target in zip(typed, reversed(typed), strict=True):
        order[place] = target
    return order


@dataclass(frozen=True, eq=False)
class LengthExtrapolation:
    """One head and the loss of a text repeated beyond `trained` positions.

    `effective_keys` (queries) is e^entropy of each row of the head: the number of keys if it
    attended to them evenly. `nats` (t − 1) is a decoder's loss on each next token, else None.
    """

    length: int
    trained: int
    part: str
    layer: int
    effective_keys: Tensor
    nats: Tensor | None

    def halves(self, values: Tensor) -> tuple[float, float]:
        """The mean within the trained length, and beyond."""
        return float(values[: self.trained].mean()), float(values[self.trained :].mean())


def repeated(tokens: Sequence[Token], length: int) -> tuple[Token, ...]:
    """The typed tokens repeated; special tokens before and after them are not repeated."""
    typed = [at for at, token in enumerate(tokens) if not token.special]
    if not typed:
        return tuple(tokens[at % len(tokens)] for at in range(length))
    first, last = typed[0], typed[-1] + 1
    room = length - first - (len(tokens) - last)
    middle = tuple(tokens[first:last])
    again = (middle * (room // len(middle) + 1))[:room]
    return (*tokens[:first], *again, *tokens[last:])


def extrapolate(
    opened: OpenModel,
    forward: ForwardPass,
    length: int,
    scheme: str,
    part: str,
    layer: int,
    head: int,
) -> LengthExtrapolation:
    """One pass over `length` tokens. Cost grows with length² × layers, and with the vocabulary.

    Only the encoder reads the longer source of an encoder-decoder; for another part it is layer 0.
    """
    trained = opened.config.max_len
    placed = in_scheme(opened, scheme, length)
    tokens = repeated(forward.tokens, length)
    reads = "encoder.self_attn" if forward.source else "decoder.self_attn"
    layer = layer if part == reads else 0
    stacks = [[row] for row in (tokens, forward.target if forward.source else ()) if row]
    sites = (*CHEAP_SITES, "*.final")
    passed = record(placed, *stacks, read_at=slice(-1, None), sites=sites)
    weights = passed.weights(site(reads, layer), head=head)[0].detach()
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
    nats, model = None, placed.model
    if model.config.kind == "decoder" and isinstance(model.head, LanguageModelHead):
        nats = _nats(model, passed["decoder.final"][0], ids_of([tokens])[0])
    return LengthExtrapolation(length, trained, reads, layer, entropy.exp(), nats)


def _nats(model: Transformer, final: Tensor, ids: Tensor) -> Tensor:
    """−ln of the probability of each next token (t − 1), a few positions at a time."""
    nats = []
    with torch.no_grad():
        for start in range(0, len(ids) - 1, AT_ONCE):
            end = min(start + AT_ONCE, len(ids) - 1)
            logits = model.read(final[None, start:end])[0]
            expected = ids[start + 1 : end + 1, None]
            nats.append(-logits.log_softmax(-1).gather(-1, expected)[:, 0])
    return torch.cat(nats)
