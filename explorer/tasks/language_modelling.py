"""Language modelling of a text, in letters or subwords: yours, or Shakespeare's plays."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.system import limits
from explorer.tasks.bundled_text import PLAYS, BundledText
from explorer.tasks.own_data import SUBWORDS, WORDS, tokenizer_for
from explorer.tasks.task import CustomTask, Sizes, generator, model_config
from explorer.tasks.task_metrics import nats_per_token
from explorer.text import TextError, TrainedWith, byte_tokenizer, character_tokenizer
from explorer.text.checked_text import checked
from explorer.text.token import BOS
from models.config import TrainConfig
from models.training import Batch

CONTEXT = 64
"""Tokens of a window, for the models of a text."""
MEASURED_WINDOWS = 64
"""Enough for a curve while training; a final figure reads all held-out data."""

MAX_ALPHABET = 400
"""The commonest characters; rarer ones are read as `<unk>`."""
SHAKESPEARE_VOCABULARY = 1_024
MOST_STEPS, PASSES = 3_200, 20
"""Of Shakespeare's plays: from the twentieth time on, the model memorizes a text."""

Ids = Int[Tensor, "t"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LanguageTask(CustomTask):
    """A decoder reads windows of a text, each after `<s>`."""

    metric = ("nats per token", nats_per_token)
    bundled: ClassVar[BundledText] = PLAYS
    least: ClassVar[int]
    """Characters that a text needs."""
    sizes: ClassVar[Sizes] = {
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "d_ff": 256,
        "max_len": CONTEXT,
        "activation": "gelu",
    }

    training_ids: Ids
    held_out_ids: Ids
    held_out: str = "the last tenth of the text"
    measured_windows: int = MEASURED_WINDOWS
    higher_is_better: bool = False

    @classmethod
    def of_text(cls, text: str, tokenizer_of: Callable[[str], TrainedWith]) -> Self:
        """The task of this text; its tokenizer is made of the training part only.

        TextError says in one sentence that the text is too short or too long.
        """
        text = checked(text, limits.CORPUS_CHARACTERS)
        if len(text) < cls.least:
            raise TextError(
                f"The text has {len(text):,} characters; give at least {cls.least:,} to learn from."
            )
        parts = split_text(text)
        tokenizer = tokenizer_of(parts[0])
        training, held_out = (torch.tensor(tokenizer.corpus_ids(part)) for part in parts)
        if min(len(training), len(held_out)) < CONTEXT:
            raise TextError(
                f"The text is too short to train on: a tenth of it must fill {CONTEXT} tokens."
            )
        return cls(
            examples=(first_words(parts[0]),),
            tokenizer=tokenizer,
            model=model_config("decoder", tokenizer, **cls.sizes),
            training=TrainConfig(
                steps=2000, batch_size=32, lr=3e-3, warmup=100, schedule="cosine", weight_decay=0.1
            ),
            held_out_texts=parts[1:],
            training_ids=training,
            held_out_ids=held_out,
        )

    def within(self, tokens: int) -> "LanguageTask":
        return replace(self, model=self.model.replace(max_len=tokens))

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        starts = torch.randint(self.training_size, (training.batch_size, 1), generator=random)
        return self._batch_of(self.training_ids[starts + torch.arange(self.model.max_len)])

    @property
    def held_out_batch(self) -> Batch:
        windows = self.held_out_windows
        every = max(1, len(windows) // self.measured_windows)
        return self._batch_of(windows[::every][: self.measured_windows])

    @property
    def training_size(self) -> int:
        """Windows, which overlap: one begins at each token."""
        return len(self.training_ids) - self.model.max_len + 1

    def measuring_everything(self) -> "LanguageTask":
        """The same task, measured on the whole held-out text."""
        return replace(self, measured_windows=len(self.held_out_windows))

    @property
    def held_out_windows(self) -> Int[Tensor, "b t"]:
        """The held-out text in windows that do not overlap; a last part window is left out."""
        size = self.model.max_len
        return self.held_out_ids[: len(self.held_out_ids) // size * size].view(-1, size)

    def _batch_of(self, windows: Int[Tensor, "b t"]) -> Batch:
        start = torch.full((len(windows), 1), self.tokenizer.id_of(BOS))
        return Batch((torch.cat([start, windows[:, :-1]], dim=1),), windows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Characters(LanguageTask):
    least: ClassVar[int] = 10 * (CONTEXT + 10)

    name: str = "characters"
    title: str = "A text, letter by letter"
    explanation: str = (
        "The model reads plays of Shakespeare, or a text of yours, and learns which letter comes "
        "next. The last tenth of the text is held out, to measure the model on letters that it was "
        "not trained on."
    )
    expectation: str = (
        "Early heads attend to the previous letter; later ones to the beginning of the word or to "
        "the last occurrence of the same letters."
    )
    goal: float = 2.0

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        def letters_of(text: str) -> TrainedWith:
            common = Counter(text).most_common(MAX_ALPHABET)
            return character_tokenizer([letter for letter, _ in common])

        return cls.of_text(text, letters_of)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subwords(LanguageTask):
    """A text in subwords: byte-level BPE trained on it, or another tokenizer."""

    least: ClassVar[int] = 5_000
    tokenizers: ClassVar[tuple[str, ...]] = (SUBWORDS, WORDS)
    sizes: ClassVar[Sizes] = LanguageTask.sizes | {"dropout": 0.1}

    name: str = "subwords"
    title: str = "A text, subword by subword"
    explanation: str = (
        "The model reads plays of Shakespeare, or a text of yours, in subwords, of a vocabulary "
        "that is trained on it or comes with another model, and learns which comes next. The last "
        "tenth of the text is held out."
    )
    expectation: str = (
        "Some heads attend to the previous token, others to an earlier copy of the same word or to "
        "what came after it."
    )
    goal: float = 4.0

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        return cls.of_text(text, partial(tokenizer_for, tokenizer or SUBWORDS))


@dataclass(frozen=True, eq=False, kw_only=True)
class Shakespeare(LanguageTask):
    """A whole book in byte-level BPE, so it reads any sentence."""

    least: ClassVar[int] = 20_000
    sizes: ClassVar[Sizes] = Subwords.sizes | {
        "d_model": 128,
        "d_ff": 341,
        "positions": "rotary",
        "activation": "silu",
        "gated": True,
    }

    name: str = "shakespeare"
    title: str = "Shakespeare, subword by subword"
    explanation: str = (
        "The model reads Shakespeare's plays in subwords of its own vocabulary of 1,024 tokens and "
        "learns what comes next. It can read any text, since unknown characters are read as bytes."
    )
    expectation: str = (
        "Some heads attend to the previous token, one to the last line break, and in a speaker's "
        "name some attend to its other tokens."
    )
    examples: tuple[str, ...] = (
        "To be, or not to be: that is the question",
        "ROMEO:\nBut, soft! what light through yonder window breaks?",
        "What say you, my lord? I say that I love you",
        "Dog is crossing the street because it saw the kitchen",
        "To see, or not to see: that is the answer",
    )
    goal: float = 3.95

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        task = cls.of_text(text, partial(byte_tokenizer, vocab_size=SHAKESPEARE_VOCABULARY))
        tokens = task.training.batch_size * CONTEXT
        steps = min(MOST_STEPS, PASSES * task.training_size // tokens)
        training = task.training.replace(steps=steps, warmup=steps // 16)
        return replace(task, examples=cls.examples, training=training, held_out_texts=())


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
