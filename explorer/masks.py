"""The masks of a pass, taken apart: what padding forbids, what causality forbids, and both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.library import Opened
from explorer.reading import Reading, ReadingError, read_batch
from explorer.text import Token
from models.masking import causal_mask, padding_mask

STUDENT, YOURS, BATCH = "I am a student", "Your sentence", "A padded batch"
EXAMPLES = {
    STUDENT: "Four words and a start token in a decoder: each may look at itself and back.",
    YOURS: "Your sentence on its own, as the chosen model reads it: nothing has to be filled up.",
    BATCH: "Your sentence read together with its own beginning. Both must be equally long, "
    "so the shorter one, shown here, is filled up with padding.",
}


@dataclass(frozen=True)
class Masks:
    """True = may look; the three have the same shape, (rows, columns)."""

    rows: Sequence[Token | str]
    columns: Sequence[Token | str]
    padding: Tensor
    causal: Tensor
    both: Tensor


def student() -> Masks:
    """The handout's own example: a decoder that reads "I am a student"."""
    words = ("<s>", "I", "am", "a", "student")
    causal = causal_mask(len(words))[0, 0]
    everything = torch.ones_like(causal)
    return Masks(words, words, everything, causal, causal & everything)


def of(reading: Reading, part: str) -> Masks:
    """The masks of one kind of attention in this reading."""
    rows, columns = reading.rows(part), reading.columns(part)
    keep = torch.tensor([[token.id != reading.config.pad_id for token in columns]])
    padding = padding_mask(keep)[0, 0].expand(len(rows), -1)
    looks_back = part == "decoder.self_attn"
    causal = causal_mask(len(rows))[0, 0] if looks_back else torch.ones_like(padding)
    return Masks(rows, columns, padding, causal, padding & causal)


def batch(opened: Opened, reading: Reading) -> Reading:
    """The beginning of the text, read in one batch with the whole of it."""
    content = [token for token in reading.tokens if token.end > token.start]
    shorter = reading.text[: content[(len(content) - 1) // 2].end]
    if not shorter.strip() or shorter == reading.text:
        raise ReadingError("This sentence has no shorter one to be read beside: add a word.")
    return read_batch(opened, (reading.text, shorter))[1]
