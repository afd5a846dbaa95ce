"""The parts of a pass's mask: the padding mask, the causal mask, and both together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import WORDS
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch
from explorer.text import Token
from models.masking import causal_mask, padding_mask

STUDENT, YOURS, BATCH = "I am a student", "Your sentence", "A padded batch"
EXAMPLES = {
    STUDENT: "A start token and four words, as a decoder reads them.",
    YOURS: "Your sentence alone, as the model gets it: no padding is needed.",
    BATCH: "Your sentence in one batch with its own beginning. The texts of a batch have the same "
    "length, so the shorter one, shown here, is padded.",
}


@dataclass(frozen=True)
class Masks:
    """True = may attend; all three have the shape (rows, columns).

    `both` is the mask of the pass itself; the other two are its parts.
    """

    rows: Sequence[Token | str]
    columns: Sequence[Token | str]
    padding: Tensor
    causal: Tensor
    both: Tensor
    ahead: str


def student() -> Masks:
    """The handout's example: a decoder that reads "I am a student"."""
    words = ("<s>", "I", "am", "a", "student")
    causal = causal_mask(len(words))[0, 0]
    everything = torch.ones_like(causal)
    return Masks(words, words, everything, causal, causal, WORDS["decoder.self_attn"].ahead)


def of(forward: ForwardPass, part: str, layer: int = 0) -> Masks:
    """The masks of one kind of attention in this forward pass."""
    rows, columns, config = forward.rows(part), forward.columns(part), forward.config
    answers = part == "decoder.self_attn" and config.kind == "encoder-decoder"
    begins = answers and config.pad_id == config.bos_id  # the start of an answer is no padding
    keep = [(begins and i == 0) or token.id != config.pad_id for i, token in enumerate(columns)]
    padding = padding_mask(torch.tensor([keep]))[0, 0].expand(len(rows), -1)
    looks_back = part == "decoder.self_attn"
    causal = causal_mask(len(rows))[0, 0] if looks_back else torch.ones_like(padding)
    both = forward.mask(part, layer)
    return Masks(rows, columns, padding, causal, both, WORDS[part].ahead)


@dataclass(frozen=True)
class Pictures:
    """The scores and weights of one head. `adds_bias`: the scores include a position bias."""

    scores: Tensor
    weights: Tensor
    adds_bias: bool


def pictures(forward: ForwardPass, part: str, layer: int, head: int) -> Pictures:
    """The scores of one head before the mask, and its weights."""
    scores, bias = forward.scores(part, layer, head), forward.bias(part, layer, head)
    added = scores if bias is None else scores + bias
    return Pictures(added, forward.weights(part, layer, head), bias is not None)


def padded(opened: OpenModel, forward: ForwardPass) -> tuple[ForwardPass, ...]:
    """The whole text and its beginning, read in one batch; of a pair, the first text."""
    content = [token for token in forward.tokens if token.end > token.start and not token.second]
    shorter = forward.text[: content[(len(content) - 1) // 2].end]
    if not shorter.strip() or shorter == forward.text:
        raise ForwardPassError(
            "This sentence is too short for a batch with its own beginning: add a word."
        )
    return run_batch(opened, (forward.text, shorter))
