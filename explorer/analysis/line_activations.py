"""The activation of every head in each line of a text: one pass of a batch gives all heads.

Two numbers of a head at a token: the norm of what it writes there (W_O times its output), and its
largest weight on another token than the first. A line has the largest of each over its tokens.
The first token and special tokens do not count, as queries or as keys: attention that finds
nothing else rests there.
Shapes: n lines, b lines of a batch, L layers, h heads, t tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.head_weights import output_columns
from explorer.catalog.open_model import OpenModel
from explorer.inference.model_inputs import ids_of, segments_of
from explorer.text import Token
from models import Transformer
from models.tap import Tap
from models.transformer import evaluating

Rows = Sequence[tuple[Token, ...]]
TOKENS_AT_ONCE, WEIGHTS_AT_ONCE = 1_024, 1 << 22
"""Tokens of a batch, padding included, and attention weights of one of its layers."""


@dataclass(frozen=True, eq=False)
class LineActivations:
    """Of every line and head the largest of both numbers, and at which token, (n, L, h) each."""

    norm: Tensor
    norm_at: Tensor
    weight: Tensor
    weight_at: Tensor

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.tensors.values())

    @property
    def measured(self) -> Tensor:
        """Which lines are measured, (n,)."""
        return ~self.norm[:, 0, 0].isnan()

    @property
    def tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))

    @classmethod
    def empty(cls, lines: int, layers: int, heads: int) -> "LineActivations":
        """NaN where nothing was measured yet."""
        shape = lines, layers, heads
        numbers = (torch.full(shape, torch.nan) for _ in range(2))
        places = (torch.zeros(shape, dtype=torch.int16) for _ in range(2))
        norm, weight = numbers
        norm_at, weight_at = places
        return cls(norm, norm_at, weight, weight_at)

    def put(self, lines: Sequence[int], found: "TokenActivations") -> None:
        """The largest over the tokens of these lines."""
        here = torch.tensor(lines)
        for name, values in (("norm", found.norm), ("weight", found.weight)):
            largest = values.max(-1)
            getattr(self, name)[here] = largest.values.nan_to_num(nan=0.0).clamp(min=0).float()
            getattr(self, f"{name}_at")[here] = largest.indices.to(torch.int16)


@dataclass(frozen=True, eq=False)
class TokenActivations:
    """Both numbers of every head at every token, (b, L, h, t); −1 where a token does not count."""

    norm: Tensor
    weight: Tensor


def batches(rows: Rows, heads: int, *, equal_lengths: bool) -> Iterator[list[int]]:
    """The places of the lines that are passed together, those of about equal length."""
    batch: list[int] = []
    for at in sorted(range(len(rows)), key=lambda at: len(rows[at])):
        length, count = len(rows[at]), len(batch) + 1
        is_full = (
            count * length > TOKENS_AT_ONCE or count * heads * length * length > WEIGHTS_AT_ONCE
        )
        if batch and (is_full or (equal_lengths and len(rows[batch[0]]) != length)):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def activations_by_batch(
    opened: OpenModel, rows: Rows, known: frozenset[int] | set[int] = frozenset()
) -> Iterator[tuple[list[int], TokenActivations]]:
    """The lines of one batch after another, without those that are known.

    Costs a pass over all tokens. Padding behind a line changes nothing: it is masked, or later
    than every token of a decoder.
    """
    config = opened.config
    equal = config.pad_id is None and config.kind == "encoder"
    for some in batches(rows, config.n_heads, equal_lengths=equal):
        if not known.issuperset(some):
            yield some, token_activations(opened, [rows[at] for at in some])


def token_activations(opened: OpenModel, rows: Rows) -> "TokenActivations":
    """Both numbers at every token of some lines; shorter ones end in tokens that do not count."""
    longest = max(map(len, rows))
    filler = Token(opened.config.pad_id or 0, "", special=True)
    padded = [(*row, *[filler] * (longest - len(row))) for row in rows]
    counts = torch.tensor([[not token.special for token in row] for row in padded])
    counts[:, 0] = False
    tap = _ActivationTap(opened.model, counts)
    with evaluating(opened.model):
        opened.model(
            ids_of(padded), segments=segments_of(opened, padded), read_at=slice(0), tap=tap
        )
    norm, weight = (torch.stack(tap.found[name], 1) for name in ("head_out", "weights"))
    aside = ~counts[:, None, None]
    return TokenActivations(norm.masked_fill(aside, -1.0), weight.masked_fill(aside, -1.0))


class _ActivationTap(Tap):
    """Keeps the two numbers of each head, layer by layer, and nothing as large as what is shown."""

    def __init__(self, model: Transformer, counts: Tensor, scope: str = "") -> None:
        self.found: dict[str, list[Tensor]] = {"head_out": [], "weights": []}
        self._model, self._counts, self._scope = model, counts, scope

    def at(self, scope: str) -> "_ActivationTap":
        inner = _ActivationTap(self._model, self._counts, f"{self._scope}{scope}.")
        inner.found = self.found
        return inner

    def wants(self, name: str) -> bool:
        return self._scope.endswith("self_attn.") and name in self.found

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self.wants(name):
            made = self._norm(value) if name == "head_out" else self._away(value)
            self.found[name].append(made)
        return value

    def _away(self, weights: Tensor) -> Tensor:
        """The largest weight of each row on a token that counts, (b, h, t)."""
        return (weights * self._counts[:, None, None]).amax(-1)

    def _norm(self, head_out: Tensor) -> Tensor:
        """‖W_O head_out‖, (b, h, t), by the w × w matrix W_Oᵀ W_O of each head."""
        layer = int(self._scope.split(".")[1])
        columns = [output_columns(self._model, layer, h) for h in range(head_out.shape[1])]
        grams = torch.stack([each.mT @ each for each in columns])
        squares = ((head_out @ grams) * head_out).sum(-1)
        return squares.clamp(min=0).sqrt()
