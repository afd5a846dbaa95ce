"""What a model writes, token by token, and one pass over all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.catalog.opened_model import Opened
from explorer.inference.answers import ANSWERS_SHOWN, Guess
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept
from explorer.text import Token
from models import TransformerConfig, trace
from models.generation import allowed, generate
from models.trace import CHEAP_SITES

MOST_WRITTEN = 64
ONLY_READS = "This model only reads: choose one that writes, with a decoder."


@dataclass(frozen=True, eq=False)
class Writing:
    """A text and its continuation, or a source and its answer, read in one pass.

    The pass over all tokens is, row by row, the pass over those of each step: nobody looks
    ahead. `begun` tokens of the decoder stood there before the first step; `chances` (steps,
    guesses) are the likeliest tokens of each step, the best first, and `ids` their numbers.
    `has_ended` says whether the last token ends the text.
    """

    forward: ForwardPass
    begun: int
    tokens: tuple[Token, ...]
    chances: Tensor
    ids: Tensor
    has_ended: bool

    @property
    def steps(self) -> int:
        return len(self.tokens)

    def guesses(self, step: int, label: Callable[[int], str]) -> list[Guess]:
        """What the model considered when it wrote token `step`, the likeliest first.

        What it may not write, and so had no chance, is left out.
        """
        pairs = zip(self.ids[step].tolist(), self.chances[step].tolist(), strict=True)
        return [Guess(label(number), chance) for number, chance in pairs if chance != 0]

    def size(self, part: str, step: int) -> tuple[int, int]:
        """How many rows and columns there are once `step` tokens are written."""
        rows, columns = len(self.forward.rows(part)), len(self.forward.columns(part))
        if part == "encoder.self_attn":
            return rows, columns
        if part == "decoder.cross_attn":  # a row is called by the word that it writes
            return min(step, rows), columns
        seen = self.begun + step
        return min(seen, rows), min(seen, columns)

    def weights(self, part: str, layer: int, head: int, step: int) -> Tensor:
        """The head's weights once `step` tokens are written; NaN where nothing is yet."""
        rows, columns = self.size(part, step)
        whole = self.forward.weights(part, layer, head)
        so_far = torch.full_like(whole, torch.nan)
        so_far[:rows, :columns] = whole[:rows, :columns]
        return so_far


def writing(opened: Opened, text: str, length: int) -> Writing:
    """Up to `length` tokens, each the likeliest; ReadingError for a model that cannot write.

    Cost grows with length × layers, each step looking at all tokens before it.
    """
    length = max(1, min(length, MOST_WRITTEN))
    return kept(
        opened,
        ("writing", text, length),
        lambda: _write(opened, text, length),
        lambda made: made.forward.bytes,
    )


def writes(opened: Opened) -> bool:
    """Whether the model gives one token after another."""
    return opened.config.kind != "encoder" and opened.config.head == "language-model"


def _write(opened: Opened, text: str, length: int) -> Writing:
    config = opened.config
    if not writes(opened):
        raise ForwardPassError(ONLY_READS)
    forward = run_text(opened, text)
    if config.kind == "encoder-decoder":
        answer = forward.written[:length]
        logits = forward.trace.output[forward.row][: len(answer)]
        return Writing(forward, 1, answer, *_considered(logits, config), _ends(opened, answer))
    prompt = forward.target
    room = min(length, config.max_len - len(prompt))
    if room < 1:
        raise ForwardPassError(
            f"This text fills all {config.max_len} places of this model: shorten it, and it writes."
        )
    steps = generate(opened.model, ids_of([prompt]), max_length=room, greedy=True)
    tokens = tuple(opened.tokenizer.token(int(step.ids[0])) for step in steps)
    full = (*prompt, *tokens)
    behind = slice(len(prompt) - 1, len(full) - 1)
    passed = trace(opened.model, ids_of([full]), sites=CHEAP_SITES, read_at=behind)
    whole = replace(forward, target=full, trace=passed, row=0)
    considered = _considered(passed.output[0], config)
    return Writing(whole, len(prompt), tokens, *considered, _ends(opened, tokens))


def _considered(logits: Tensor, config: TransformerConfig) -> tuple[Tensor, Tensor]:
    """The likeliest of what may be written at each step (steps, vocabulary), and their numbers."""
    first, later = (
        allowed(logits[:1], config, first=True),
        allowed(logits[1:], config, first=False),
    )
    logits = torch.cat((first, later))
    best = logits.float().softmax(-1).topk(min(ANSWERS_SHOWN, logits.shape[-1]), -1)
    return best.values, best.indices


def _ends(opened: Opened, tokens: Sequence[Token]) -> bool:
    return tokens[-1].id in (opened.config.eos_id, *opened.config.more_eos_ids)


def labels_so_far(tokens: Sequence[Token], count: int) -> list[Token | str]:
    """What stands there, and a dot for what is not written yet."""
    return [token if at < count else "·" for at, token in enumerate(tokens)]
