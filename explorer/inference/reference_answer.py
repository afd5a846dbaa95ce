"""The right answer of an encoder-decoder, where the rules of its task give one, and as tokens."""

from collections.abc import Sequence

import torch

from explorer.catalog.open_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.tasks import Task, french
from explorer.tasks.letters import LetterTask
from explorer.tasks.translation import TranslationTask
from explorer.text import TextError, Token


def right_answer(task: Task | None, source: Sequence[Token]) -> str:
    """What the rules make of these tokens; nothing where there are none, or they do not apply."""
    words = [token for token in source if not token.special]
    if isinstance(task, TranslationTask):
        translated = french.translate([token.label for token in words])
        return " ".join(translated.french) if translated else ""
    if isinstance(task, LetterTask):
        letters = torch.tensor([[token.id for token in words]])
        return task.tokenizer.decode(task.rewritten(letters)[0].tolist())
    return ""


def target_of(opened: OpenModel, text: str, answer: str) -> list[int]:
    """What the decoder is fed and should write: its start, the answer, its end.

    ForwardPassError says in a sentence why the answer cannot be one.
    """
    config = opened.config
    try:
        tokens = opened.tokenizer.encode(answer)
    except TextError as error:
        raise ForwardPassError(str(error)) from error
    words = [token.id for token in tokens if not (token.special and token.start == token.end)]
    generation = config.generation
    first = [] if generation.forced_first_id is None else [generation.forced_first_id]
    last = list(generation.eos_ids[:1])
    ids = [run_text(opened, text).target[0].id, *first, *words, *last]
    if not words:
        raise ForwardPassError("There is no token in this answer: type one with words.")
    if len(ids) - 1 > config.max_len:
        raise ForwardPassError(
            f"This answer is {len(ids) - 1:,} tokens long and this model generates at most "
            f"{config.max_len}: shorten it."
        )
    if stray := next((each for each in ids if each >= config.vocab_size), None):
        raise ForwardPassError(
            f"This answer has token ID {stray:,}, but this model's vocabulary has "
            f"{config.vocab_size:,}: type other words."
        )
    return ids
