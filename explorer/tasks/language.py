"""Language modelling of a text whose last tenth is held out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.system import limits
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import nats_per_token
from explorer.tasks.task_models import decoder
from explorer.text import TextError, TrainedWith
from explorer.text.checked_text import checked
from explorer.text.token import BOS
from models.config import TrainConfig, TransformerConfig
from models.training import Batch

CONTEXT = 64
"""Tokens of a window, of the models of a text."""
MEASURED_WINDOWS = 64
"""Enough for a curve while training; a final figure reads everything that is held out."""

Ids = Int[Tensor, "t"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LanguageTask(Task):
    """A decoder reads windows of a text, each after `<s>`."""

    metric = ("nats per token", nats_per_token)

    training_ids: Ids
    held_out_ids: Ids
    held_out: str = "the last tenth of the text"
    measured_windows: int = MEASURED_WINDOWS
    higher_is_better: bool = False

    @property
    def context(self) -> int:
        """Tokens in a window: the max_len of the default model."""
        return self.model.max_len

    def within(self, tokens: int) -> "LanguageTask":
        return replace(self, model=self.model.replace(max_len=tokens))

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        starts = torch.randint(self.training_size, (training.batch_size, 1), generator=random)
        return self._predicting(self.training_ids[starts + torch.arange(self.context)])

    @property
    def held_out_batch(self) -> Batch:
        windows = self.held_out_windows
        every = max(1, len(windows) // self.measured_windows)
        return self._predicting(windows[::every][: self.measured_windows])

    @property
    def training_size(self) -> int:
        """Windows, which overlap: one begins at each token."""
        return len(self.training_ids) - self.context + 1

    def measuring_everything(self) -> "LanguageTask":
        """The same task, measured on the whole held-out text."""
        return replace(self, measured_windows=len(self.held_out_windows))

    @property
    def held_out_windows(self) -> Int[Tensor, "b t"]:
        """The held-out text in windows that do not overlap; a last part window is left out."""
        whole = len(self.held_out_ids) // self.context * self.context
        return self.held_out_ids[:whole].view(-1, self.context)

    def _predicting(self, windows: Int[Tensor, "b t"]) -> Batch:
        start = torch.full((len(windows), 1), self.tokenizer.id_of(BOS))
        return Batch((torch.cat([start, windows[:, :-1]], dim=1),), windows)


def checked_corpus(text: str, least: int) -> str:
    """A text to learn from. TextError, in one sentence, where it is too short or too long."""
    text = checked(text, limits.CORPUS_CHARACTERS)
    if len(text) < least:
        raise TextError(
            f"The text has {len(text):,} characters; give at least {least:,} to learn from."
        )
    return text


def own_text_task(
    text: str, least: int, tokenizer_of: Callable[[str], TrainedWith], dropout: float, **about: Any
) -> LanguageTask:
    """The task of a reader's text; its tokenizer is made of the training part only.

    TextError, in one sentence, where the text is too short.
    """
    parts = split_text(checked_corpus(text, least))
    tokenizer = tokenizer_of(parts[0])
    training, held_out = training_and_held_out_ids(tokenizer, parts, CONTEXT)
    return LanguageTask(
        examples=(first_words(parts[0]),),
        tokenizer=tokenizer,
        model=decoder_reading(tokenizer, d_model=64, dropout=dropout),
        training=training_of(steps=2000, warmup=100),
        held_out_texts=parts[1:],
        training_ids=training,
        held_out_ids=held_out,
        **about,
    )


def decoder_reading(tokenizer: TrainedWith, d_model: int, dropout: float) -> TransformerConfig:
    """The model of a text of one's own: two layers, four heads, windows of `CONTEXT` tokens."""
    return decoder(
        tokenizer,
        d_model=d_model,
        n_layers=2,
        n_heads=4,
        d_ff=4 * d_model,
        max_len=CONTEXT,
        activation="gelu",
        dropout=dropout,
    )


def training_of(steps: int, warmup: int) -> TrainConfig:
    return TrainConfig(
        steps=steps, batch_size=32, lr=3e-3, warmup=warmup, schedule="cosine", weight_decay=0.1
    )


def first_words(text: str) -> str:
    """The first words of the text: an example in its own alphabet."""
    words = text[: CONTEXT // 2 + 20].split()
    start = ""
    for word in words:
        if len(start) + len(word) >= CONTEXT // 2:
            break
        start = f"{start} {word}".strip()
    return start or text[: CONTEXT // 2]


def split_text(text: str) -> tuple[str, str]:
    """The first nine tenths and the rest, cut at the start of a line where one is near."""
    cut = len(text) * 9 // 10
    line = text.find("\n", cut - 1, cut + len(text) // 50)
    cut = cut if line < 0 else line + 1
    return text[:cut], text[cut:]


def training_and_held_out_ids(
    tokenizer: TrainedWith, parts: Sequence[str], context: int
) -> tuple[Ids, Ids]:
    """Both parts as token IDs; TextError where either is too short to fill a window."""
    training, held_out = (torch.tensor(tokenizer.corpus_ids(part)) for part in parts)
    if min(len(training), len(held_out)) < context:
        raise TextError(
            f"The text is too short to train on: a tenth of it must fill {context} tokens."
        )
    return training, held_out
