"""Rows of token IDs from sentences: which are held out, and batches of them."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from explorer.text import TrainedWith
from explorer.text.token import BOS, EOS, PAD
from models.losses import IGNORE
from models.training import Batch

Rows = Int[Tensor, "b t"]
PairRows = tuple[Rows, Rows]


def sentence_rows(tokenizer: TrainedWith, sentences: Sequence[str], special: bool = True) -> Rows:
    """One row for each sentence, padded at the end, with the model's special tokens or without."""
    pad_id, rows = tokenizer.id_of(PAD), tokenizer.many_ids(sentences, special=special)
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows])


def trimmed(rows: Rows, pad_id: int = 0) -> Rows:
    """The rows without the columns that are all padding."""
    longest = int((rows != pad_id).any(0).nonzero()[-1]) + 1
    return rows[:, :longest]


def sample_rows(count: int, size: int, random: torch.Generator) -> Int[Tensor, "n"]:
    """The indices of the rows of a batch, out of `size` rows."""
    return torch.randint(size, (count,), generator=random)


def sampled_batch(rows: Batch, count: int, random: torch.Generator, pad_id: int = 0) -> Batch:
    chosen = sample_rows(count, len(rows.labels), random)
    return Batch((trimmed(rows.inputs[0][chosen], pad_id),), rows.labels[chosen])


def pair_rows(tokenizer: TrainedWith, pairs: Iterable[tuple[str, str]]) -> PairRows:
    """A row for each source, and one for its target, without special tokens."""
    source, target = (
        sentence_rows(tokenizer, side, special=False) for side in zip(*pairs, strict=True)
    )
    return source, target


def sampled_pairs(
    tokenizer: TrainedWith, rows: PairRows, count: int, random: torch.Generator
) -> Batch:
    chosen, pad_id = sample_rows(count, len(rows[0]), random), tokenizer.id_of(PAD)
    return pair_batch(tokenizer, *(trimmed(side[chosen], pad_id) for side in rows))


def pair_batch(tokenizer: TrainedWith, source: Rows, target: Rows) -> Batch:
    """Source `… </s>`, decoder input `<s> …`, labels `… </s>`; padding has no label.

    Both sides come padded at the end.
    """
    labels = _with_end(tokenizer, target)
    start = torch.full((len(target), 1), tokenizer.id_of(BOS))
    decoder_input = torch.cat([start, target], dim=1)
    labels = labels.masked_fill(labels == tokenizer.id_of(PAD), IGNORE)
    return Batch((_with_end(tokenizer, source), decoder_input), labels)


def _with_end(tokenizer: TrainedWith, rows: Rows) -> Rows:
    """The rows with `</s>` after their last token."""
    pad = tokenizer.id_of(PAD)
    lengths = (rows != pad).sum(-1, keepdim=True)
    room = torch.full((len(rows), 1), pad)
    return torch.cat([rows, room], dim=1).scatter(1, lengths, tokenizer.id_of(EOS))


ONE_IN = 8
"""One example in this many is held out."""


def is_held_out(rows: Rows, one_in: int = ONE_IN) -> Bool[Tensor, "b"]:
    """Whether each row of token IDs is held out, by a hash; zeros at the end change nothing.

    A hash needs no list, so it also splits sets that are too large to enumerate, and an
    example is on the same side for every seed and every run.
    """
    places = torch.arange(1, rows.shape[1] + 1)
    mixed = (rows * (places * 0x9E3779B1 + 0x7F4A7C15) % 0x7FFFFFFF).sum(-1)
    mixed = (mixed ^ (mixed >> 13)) * 0x5BD1E995 % 0x7FFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x27D4EB2F % 0x7FFFFFFF
    return (mixed ^ (mixed >> 11)) % one_in == 0


def some_rows(rows: Tensor, count: int) -> Tensor:
    """`count` of these rows in a random order, the same ones each time."""
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:count]]
