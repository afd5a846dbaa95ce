"""Two texts and one question: aligned token by token, and the answer that tells them apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.analysis.output_change import logits_at
from explorer.catalog.opened_model import Opened
from explorer.circuits.outcome import Outcome, outcome_of
from explorer.inference.answers import first_place
from explorer.inference.forward_pass import run_text
from explorer.text import Token


class PairError(ValueError):
    """Why two texts are no pair for this model, in one sentence."""


@dataclass(frozen=True)
class TextPair:
    """A clean text, a corrupted one, and two answers: tokens or classes as they are typed.

    An empty answer stands for what the model finds likeliest: `answer` after the clean text,
    `against` after the corrupted one.
    """

    clean: str
    corrupted: str
    answer: str = ""
    against: str = ""


@dataclass(frozen=True, eq=False)
class TokenPair:
    """A pair as a model reads it: as many tokens in both texts, and the two answers by their IDs.

    `place` is the position whose output is read.
    """

    texts: TextPair
    clean: tuple[Token, ...]
    corrupted: tuple[Token, ...]
    answer: int
    against: int
    place: int
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of a model: the pairs, and by which metric their outputs are told apart."""

    pairs: tuple[TokenPair, ...]
    metric: str

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes this question from others of the same model."""
        return self.metric, tuple(pair.texts for pair in self.pairs)


def question_of(opened: Opened, pairs: Iterable[TextPair], metric: str) -> Question:
    """The question as this model reads it. PairError says why it is none."""
    return Question(tuple(token_pair(opened, pair, metric) for pair in pairs), metric)


def token_pair(opened: Opened, texts: TextPair, metric: str) -> TokenPair:
    """One pair. PairError says why it is none."""
    clean, corrupted = (run_text(opened, each) for each in (texts.clean, texts.corrupted))
    if len(clean.tokens) != len(corrupted.tokens):
        raise PairError("The texts have different lengths.")
    place = first_place(opened, clean.tokens)
    before, after = (logits_at(each.trace, place) for each in (clean, corrupted))
    answer, against = int(before.argmax()), int(after.argmax())
    if texts.answer:
        (answer,) = opened.tokenizer.ids(texts.answer)
    if texts.against:
        (against,) = opened.tokenizer.ids(texts.against)
    outcome = outcome_of(metric, answer, against, before)
    return TokenPair(texts, clean.tokens, corrupted.tokens, answer, against, place, outcome)
