"""Words of random letters, rewritten: reverse, copy, sort, and sixteen letters reversed at once."""

import string
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from explorer.tasks.batches import Rows, pair_batch
from explorer.tasks.task import SMALL, SMALLER, GeneratedTask, Pattern, Sizes, Tokens
from explorer.tasks.task_metrics import exact_match, token_accuracy
from explorer.text import ALONE, SOURCE, TrainedWith, character_tokenizer
from explorer.text.token import PAD
from models.training import Batch

MAX_LETTERS = 8
LETTERS_AT_ONCE = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class LetterTask(GeneratedTask):
    """Words of one to eight letters; `answers` rewrites them.

    One encoder and one decoder layer are the smallest model with cross-attention.
    """

    metric = ("exact match", exact_match)
    sizes: ClassVar[Sizes] = SMALL | {"max_len": MAX_LETTERS + 1}
    steps: ClassVar[int] = 300

    goal: float = 0.99
    held_out: str = "one word in eight, always the same, by a hash of its letters"
    pattern_site: str = "decoder.0.cross_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return character_tokenizer(string.ascii_lowercase, SOURCE, lowercase=True)

    @abstractmethod
    def answers(self, words: Rows) -> Rows:
        """The answers, padded at the end like the words."""

    def answer(self, source: Tokens) -> Tokens:
        letters = {token.id: token for token in source if not token.special}
        ids = [token.id for token in source if not token.special]
        answer = self.answers(torch.tensor([ids], dtype=torch.long))[0].tolist() if ids else []
        return [*(letters[i] for i in answer), *(t for t in source[-1:] if t.special)]

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        return pair_batch(self.tokenizer, rows, self.answers(rows))

    def draw(self, count: int, random: torch.Generator) -> Rows:
        first = self.tokenizer.id_of("a")
        letters = torch.randint(first, first + 26, (count, MAX_LETTERS), generator=random)
        lengths = torch.randint(1, MAX_LETTERS + 1, (count, 1), generator=random)
        return letters.masked_fill(torch.arange(MAX_LETTERS) >= lengths, self.tokenizer.id_of(PAD))


@dataclass(frozen=True, eq=False, kw_only=True)
class Reverse(LetterTask):
    """Attention has to run against the text."""

    name: str = "reverse"
    title: str = "Reverse a word"
    explanation: str = (
        "The model reads up to eight letters and writes them backwards. Nothing about reversing is "
        "built in: it has to find the right letter at every step."
    )
    expectation: str = (
        "Cross-attention is on the anti-diagonal: the first output letter attends to the last "
        "letter of the word."
    )
    examples: tuple[str, ...] = ("reverse", "stressed", "abcdefgh", "hello", "level")

    def answers(self, words: Rows) -> Rows:
        pad = self.tokenizer.id_of(PAD)
        backwards = (words != pad).sum(-1, keepdim=True) - 1 - torch.arange(words.shape[1])
        return words.gather(1, backwards.clamp(min=0)).masked_fill(backwards < 0, pad)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        letters = len(source) - 1
        expected = torch.zeros(len(target), len(source))
        for row in range(min(letters, len(target))):
            expected[row, letters - 1 - row] = 1.0
        return expected


@dataclass(frozen=True, eq=False, kw_only=True)
class Copy(LetterTask):
    """The simplest use of cross-attention."""

    steps: ClassVar[int] = 200

    name: str = "copy"
    title: str = "Copy a word"
    explanation: str = "The model reads up to eight letters and writes the same letters again."
    expectation: str = (
        "Cross-attention is on the diagonal: each output letter attends to the letter at the same "
        "position."
    )
    examples: tuple[str, ...] = ("copy", "mirror", "abcdefgh", "hello")

    def answers(self, words: Rows) -> Rows:
        return words

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        expected = torch.zeros(len(target), len(source))
        expected.fill_diagonal_(1.0)
        expected[:, len(source) - 1] = 0.0
        return expected


@dataclass(frozen=True, eq=False, kw_only=True)
class Sort(LetterTask):
    """Attention by content, not by position."""

    steps: ClassVar[int] = 1200

    name: str = "sort"
    title: str = "Sort the letters"
    explanation: str = (
        "The model reads up to eight letters and writes them in alphabetical order. It has to know "
        "the alphabet and to find the next letter wherever it is."
    )
    expectation: str = (
        "Cross-attention follows the content: each output letter attends to the same letter in the "
        "word, and there is no diagonal."
    )
    examples: tuple[str, ...] = ("sorting", "zebra", "hgfedcba", "banana")

    def answers(self, words: Rows) -> Rows:
        pad, beyond = self.tokenizer.id_of(PAD), self.tokenizer.vocab_size
        ordered = words.masked_fill(words == pad, beyond).sort(dim=-1).values
        return ordered.masked_fill(ordered == beyond, pad)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each output letter attends to the same letter, wherever it is; equal letters share."""
        letters = [token.id for token in source if not token.special]
        expected = torch.zeros(len(target), len(source))
        for row, letter in enumerate(sorted(letters)[: len(target)]):
            places = [place for place, source_id in enumerate(letters) if source_id == letter]
            expected[row, places] = 1 / len(places)
        return expected


@dataclass(frozen=True, eq=False, kw_only=True)
class ReverseEncoder(GeneratedTask):
    """Rows of sixteen letters; the label of position i is the letter at 15 − i."""

    metric = ("right letters", token_accuracy)
    kind: ClassVar[str] = "encoder"
    sizes: ClassVar[Sizes] = SMALLER | {"n_heads": 1, "d_ff": 64, "max_len": LETTERS_AT_ONCE}
    steps: ClassVar[int] = 300

    name: str = "reverse-encoder"
    title: str = "Reverse sixteen letters at once"
    explanation: str = (
        "An encoder reads sixteen letters and says at every position which letter is at the "
        "mirrored one. Nothing is written one after another, and one head is enough."
    )
    expectation: str = (
        "Self-attention is on the anti-diagonal: each position attends to its mirror image."
    )
    examples: tuple[str, ...] = ("abcdefghijklmnop", "attentionreverse", "ponmlkjihgfedcba")
    goal: float = 0.99
    held_out: str = "one text in eight, always the same, by a hash of its letters"
    pattern_site: str = "encoder.0.self_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return character_tokenizer(string.ascii_lowercase, ALONE, lowercase=True)

    def draw(self, count: int, random: torch.Generator) -> Rows:
        first = self.tokenizer.id_of("a")
        return torch.randint(first, first + 26, (count, LETTERS_AT_ONCE), generator=random)

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        return Batch((rows,), rows.flip(-1))

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each position attends to its mirror image, in a text as long as in training."""
        return None if len(source) != LETTERS_AT_ONCE else torch.eye(LETTERS_AT_ONCE).flip(-1)
