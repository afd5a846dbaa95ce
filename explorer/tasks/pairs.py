"""From rows of a source and a target text to what an encoder-decoder is trained on."""

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.text import Tokenizer
from explorer.text.special import BOS, EOS, PAD
from models.losses import IGNORE
from models.training import Batch

Rows = Int[Tensor, "b t"]


def pair_batch(tokenizer: Tokenizer, source: Rows, target: Rows) -> Batch:
    """Source `… </s>`, decoder input `<s> …`, labels `… </s>`; padding is no label.

    Both sides come padded at the end.
    """
    labels = ended(tokenizer, target)
    start = torch.full((len(target), 1), tokenizer.id_of(BOS))
    decoder_input = torch.cat([start, target], dim=1)
    labels = labels.masked_fill(labels == tokenizer.id_of(PAD), IGNORE)
    return Batch((ended(tokenizer, source), decoder_input), labels)


def ended(tokenizer: Tokenizer, rows: Rows) -> Rows:
    """The rows with `</s>` after their last token."""
    pad = tokenizer.id_of(PAD)
    lengths = (rows != pad).sum(-1, keepdim=True)
    room = torch.full((len(rows), 1), pad)
    return torch.cat([rows, room], dim=1).scatter(1, lengths, tokenizer.id_of(EOS))


def padded(rows: list[list[int]], pad_id: int) -> Rows:
    """Rows of different lengths as one tensor."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows])
