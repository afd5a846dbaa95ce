"""The text that a model generates greedily, and one forward pass over all of it."""

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
from models.generation import check_prompt, generate
from models.sampling import allowed_rows
from models.trace import CHEAP_SITES

MAX_GENERATED = 64
CANNOT_GENERATE = "This model does not generate text: choose one with a decoder."


@dataclass(frozen=True, eq=False)
class GeneratedText:
    """A text and its continuation, or a source and its answer, in one forward pass.

    With a causal mask, row by row that is the pass of each step. The decoder began with
    `prompt_length` tokens; `probabilities` and `ids` (steps, guesses) are the likeliest
    tokens of each step, the best first. `has_ended`: the last token ends the text.
    """

    forward: ForwardPass
    prompt_length: int
    tokens: tuple[Token, ...]
    probabilities: Tensor
    ids: Tensor
    has_ended: bool

    @property
    def steps(self) -> int:
        return len(self.tokens)

    def tokens_before(self, step: int) -> tuple[Token, ...]:
        """What the model has read when it predicts the token of a step."""
        return *self.forward.target[: self.prompt_length], *self.tokens[:step]

    def guesses(self, step: int, label: Callable[[int], str]) -> list[Guess]:
        """The likeliest tokens at a step, best first, without those of probability 0."""
        pairs = zip(self.ids[step].tolist(), self.probabilities[step].tolist(), strict=True)
        return [Guess(label(token), probability) for token, probability in pairs if probability]

    def size(self, part: str, step: int) -> tuple[int, int]:
        """The rows and columns of a map after `step` tokens."""
        rows, columns = len(self.forward.rows(part)), len(self.forward.columns(part))
        if part == "encoder.self_attn":
            return rows, columns
        if part == "decoder.cross_attn":  # a row is labelled by the token that it predicts
            return min(step, rows), columns
        length = self.prompt_length + step
        return min(length, rows), min(length, columns)

    def mask(self, part: str, layer: int, step: int) -> Tensor:
        """Where a query may attend after `step` tokens: not where one is not generated yet."""
        rows, columns = self.size(part, step)
        whole = self.forward.mask(part, layer)
        so_far = torch.zeros_like(whole)
        so_far[:rows, :columns] = whole[:rows, :columns]
        return so_far

    def weights(self, part: str, layer: int, head: int, step: int) -> Tensor:
        """The head's weights after `step` tokens; NaN for what is not generated yet."""
        rows, columns = self.size(part, step)
        whole = self.forward.weights(part, layer, head)
        so_far = torch.full_like(whole, torch.nan)
        so_far[:rows, :columns] = whole[:rows, :columns]
        return so_far


def generate_text(opened: Opened, text: str, length: int) -> GeneratedText:
    """Up to `length` tokens, each the likeliest; ForwardPassError if the model has no decoder.

    Cost grows with length × layers, each step attending to all tokens before it.
    """
    length = max(1, min(length, MAX_GENERATED))
    return kept(
        opened,
        ("generated", text, length),
        lambda: _generate(opened, text, length),
        lambda made: made.forward.bytes,
    )


def can_generate(opened: Opened) -> bool:
    """Whether the model is a decoder with a language-model head."""
    return opened.config.kind != "encoder" and opened.config.head == "language-model"


def require_continuable(opened: Opened, tokens: Sequence[Token]) -> None:
    """ForwardPassError for a text that ends in padding, which no token can follow."""
    try:
        check_prompt(opened.model, ids_of([tokens]))
    except ValueError as error:
        raise ForwardPassError(str(error)) from error


def _generate(opened: Opened, text: str, length: int) -> GeneratedText:
    config = opened.config
    if not can_generate(opened):
        raise ForwardPassError(CANNOT_GENERATE)
    forward = run_text(opened, text)
    if config.kind == "encoder-decoder":
        answer = forward.written[:length]
        logits = forward.trace.output[forward.row][: len(answer)]
        return GeneratedText(forward, 1, answer, *_likeliest(logits, config), _ends(opened, answer))
    prompt = forward.target
    room = min(length, config.max_len - len(prompt))
    if room < 1:
        raise ForwardPassError(
            f"This text fills all {config.max_len} positions of this model: shorten it."
        )
    require_continuable(opened, prompt)
    steps = generate(opened.model, ids_of([prompt]), max_length=room, greedy=True)
    tokens = tuple(opened.tokenizer.token(int(step.ids[0])) for step in steps)
    full = (*prompt, *tokens)
    behind = slice(len(prompt) - 1, len(full) - 1)
    passed = trace(opened.model, ids_of([full]), sites=CHEAP_SITES, read_at=behind)
    whole = replace(forward, target=full, trace=passed, row=0)
    considered = _likeliest(passed.output[0], config)
    return GeneratedText(whole, len(prompt), tokens, *considered, _ends(opened, tokens))


def _likeliest(logits: Tensor, config: TransformerConfig) -> tuple[Tensor, Tensor]:
    """Probabilities and IDs of the likeliest allowed tokens of each step, (steps, guesses)."""
    best = (
        allowed_rows(logits, config, first=True)
        .float()
        .softmax(-1)
        .topk(min(ANSWERS_SHOWN, logits.shape[-1]), -1)
    )
    return best.values, best.indices


def _ends(opened: Opened, tokens: Sequence[Token]) -> bool:
    return tokens[-1].id in opened.config.generation.eos_ids


def labels_until(tokens: Sequence[Token], count: int) -> list[Token | str]:
    """The first `count` tokens, and a dot for each that is not generated yet."""
    return [token if at < count else "·" for at, token in enumerate(tokens)]
