"""Sentences of a small grammar as rows of numbers, split once into training and held out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.tasks.pairs import padded
from explorer.text import Tokenizer
from explorer.text.special import PAD

Rows = Int[Tensor, "b t"]


def rows_of(tokenizer: Tokenizer, sentences: Sequence[str], special: bool = True) -> Rows:
    """One padded row for each sentence, with the special tokens the model reads or without."""
    encode = tokenizer.library.encode
    ids = [encode(sentence, add_special_tokens=special).ids for sentence in sentences]
    return padded(ids, tokenizer.id_of(PAD))


def trimmed(rows: Rows) -> Rows:
    """Without the columns that are nothing but padding, number 0."""
    longest = int((rows != 0).any(0).nonzero()[-1]) + 1
    return rows[:, :longest]


def pick(count: int, size: int, random: torch.Generator) -> Int[Tensor, n]:
    """Which sentences make up a batch."""
    return torch.randint(size, (count,), generator=random)
