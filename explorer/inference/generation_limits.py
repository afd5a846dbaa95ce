"""Limits of generation: which models generate, how many tokens fit, and why it stops."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.system.limits import PASS_TOKENS
from explorer.text import TextError, Token
from explorer.text.checked_text import ForwardPassError

MAX_GENERATED, MAX_STEERED = 64, 24
"""Tokens after one prompt, without and with steering."""
LONGEST_ANSWER, LONGEST_UNTRAINED = 64, 12
"""Tokens of an encoder-decoder's answer; an untrained model generates noise without end."""
CANNOT_GENERATE = "This model does not generate text: choose one with a decoder."
NO_PROBABILITIES = "The logits of this model are {}, so it generates nothing: choose another model."


@dataclass(frozen=True)
class Prompt:
    """What generation starts from: the encoder's source, and the decoder's first tokens."""

    source: tuple[Token, ...]
    tokens: tuple[Token, ...]
    room: int
    """How many tokens fit after it; the last of them is never fed to the model."""

    @property
    def ids(self) -> Tensor:
        """What `generate` reads (1, tokens)."""
        return torch.tensor([[token.id for token in self.source or self.tokens]])


def can_generate(opened: OpenModel) -> bool:
    return opened.config.kind != "encoder" and opened.config.head == "language-model"


def longest_answer(opened: OpenModel) -> int:
    """The number of tokens after which an answer is cut."""
    most = LONGEST_UNTRAINED if opened.run.get("untrained") is True else LONGEST_ANSWER
    return min(opened.config.max_len, most)


def require_probabilities(logits: Tensor) -> None:
    """ForwardPassError where their softmax would be NaN: a logit is NaN or +∞."""
    largest = float(logits.max())
    if not largest < math.inf:
        raise ForwardPassError(
            NO_PROBABILITIES.format("NaN" if math.isnan(largest) else "infinite")
        )


def stop_reason(opened: OpenModel, prompt: Prompt, path: Sequence[int]) -> str:
    """Why nothing follows these tokens, in a sentence; empty where generation can go on."""
    if path and path[-1] in opened.config.generation.eos_ids:
        return f"Stopped: {opened.tokenizer.label(path[-1])} ends the text."
    if len(path) < prompt.room:
        return ""
    if prompt.room < MAX_GENERATED:
        if not PASS_TOKENS.allows(opened.config.max_len):
            return f"Stopped: at most {PASS_TOKENS.in_words(PASS_TOKENS.most)} are read here."
        return f"Stopped: all {opened.config.max_len:,} positions of this model are filled."
    return f"Stopped: at most {MAX_GENERATED} tokens are generated here."


def typed_ids(opened: OpenModel, prompt: Prompt, path: Sequence[int], typed: str) -> list[int]:
    """The token IDs of a typed continuation; ForwardPassError says why it cannot follow."""
    tokens, room = _typed_tokens(opened, typed), prompt.room - len(path)
    if len(tokens) > room:
        raise ForwardPassError(
            f"Your words have {len(tokens):,} tokens, but only {room:,} fit: type less."
        )
    for place, token in enumerate(tokens):
        if token.id >= opened.config.vocab_size:
            raise ForwardPassError(f"This model cannot generate the token “{token.label[:20]}”.")
        if token.id in opened.config.generation.eos_ids and place < len(tokens) - 1:
            raise ForwardPassError(f"{token.label[:20]} ends the text: type nothing after it.")
    return [token.id for token in tokens]


def target_ids(opened: OpenModel, prompt: Prompt, answer: str) -> list[int]:
    """The target of an encoder-decoder: its start token, the answer, its end token.

    ForwardPassError says why the answer cannot be used.
    """
    config, generation = opened.config, opened.config.generation
    words = [token.id for token in _typed_tokens(opened, answer)]
    first = [] if generation.forced_first_id is None else [generation.forced_first_id]
    ids = [prompt.tokens[0].id, *first, *words, *generation.eos_ids[:1]]
    if not words:
        raise ForwardPassError("There is no token in this answer: type one with words.")
    if len(ids) - 1 > config.max_len:
        raise ForwardPassError(
            f"This answer is {len(ids) - 1:,} tokens long and this model generates at most "
            f"{config.max_len}: shorten it."
        )
    if stray := next((token for token in ids if token >= config.vocab_size), None):
        raise ForwardPassError(
            f"This answer has token ID {stray:,}, but this model's vocabulary has "
            f"{config.vocab_size:,}: type other words."
        )
    return ids


def _typed_tokens(opened: OpenModel, typed: str) -> list[Token]:
    """The tokens of a text without those that the tokenizer adds around it."""
    try:
        tokens = opened.tokenizer.encode(typed) if typed.strip() else []
    except TextError as error:
        raise ForwardPassError(str(error)) from error
    return [token for token in tokens if not (token.special and token.start == token.end)]
