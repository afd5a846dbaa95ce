"""Two texts and one question: aligned token by token, and the answer that tells them apart."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from torch import Tensor

from explorer.analysis.circuit_metrics import (
    ANSWERS_READ,
    KL,
    Outcome,
    outcome_of,
    why_no_gradient,
)
from explorer.analysis.output_change import logits_at
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import class_names, first_place, masks_in, option_name
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch_uncached
from explorer.inference.results_cache import if_kept, kept
from explorer.text import TextError, Token
from explorer.text.number_format import error_of, three
from explorer.text.token_labels import text_of, texts
from explorer.text.visible_text import cut, readable
from models import TransformerConfig

MOST_PIECES, LONGEST_ANSWER = 4, 40


def option_of(opened: OpenModel, before: str, typed: str, logits: Tensor) -> tuple[int | None, str]:
    """Its number, and a note; without a number the note says why, in a sentence.

    `before` is the text that it follows, and `logits` (options,) are those after it. Typed
    without a space it may be a token with one before it: of the two the likelier is taken.
    """
    shown = text_of(cut(typed, LONGEST_ANSWER))
    if opened.config.head == "classifier":
        return _class_of(class_names(opened), typed, shown)
    variants = [typed] if typed[:1].isspace() or before[-1:].isspace() else [typed, f" {typed}"]
    try:
        pieces = [pieces_of(opened, before, each) for each in variants]
    except TextError as error:
        return None, str(error)
    single = [each[0] for each in pieces if len(each) == 1]
    known = [each for each in single if each.id != opened.tokenizer.unk_id]
    if known:
        best = max(known, key=lambda token: float(logits[token.id]))
        is_other = text_of(best).strip("␣") == shown and text_of(best) != shown
        return best.id, f"“{shown}” is read as “{text_of(best)}”." if is_other else ""
    if single or not pieces[0]:
        return None, f"“{shown}” is not in this model's vocabulary: give one token that is."
    names = [f"“{name}”" for name in texts(pieces[0][:MOST_PIECES])]
    more = ["…"] if len(pieces[0]) > MOST_PIECES else []
    said = ", ".join([*names, *more])
    return None, f"“{shown}” is {len(pieces[0])} tokens, {said}: give one token."


def _class_of(names: Sequence[str], typed: str, shown: str) -> tuple[int | None, str]:
    found = [at for at, name in enumerate(names) if name.casefold() == typed.strip().casefold()]
    if found:
        return found[0], ""
    some = ", ".join(f"“{text_of(cut(name, LONGEST_ANSWER))}”" for name in names[:MOST_PIECES])
    more = ", …" if len(names) > MOST_PIECES else ""
    return None, f"“{shown}” is no class of this model: give one of {some}{more}."


def pieces_of(opened: OpenModel, before: str, typed: str) -> tuple[Token, ...]:
    """The tokens with which a text goes on that goes on so; else those of the answer alone."""
    if opened.config.kind == "decoder":
        start, whole = (_inside(opened, text) for text in (before, before + typed))
        if [each.id for each in whole[: len(start)]] == [each.id for each in start]:
            return whole[len(start) :]
    return _inside(opened, typed)


def _inside(opened: OpenModel, text: str) -> tuple[Token, ...]:
    """Its tokens without the special ones around it."""
    return tuple(each for each in opened.tokenizer.encode(text) if each.end > each.start)


WORD = re.compile(r"\s*\S+|\s+")
MOST_NAMED, LONGEST_WORD = 3, 30

Word = tuple[str, int]
"""A word with the white space before it, and how many tokens end in it."""


def differing(clean: Sequence[Token], corrupted: Sequence[Token]) -> tuple[int, ...]:
    """The places at which two texts of as many tokens have different ones."""
    both = zip(clean, corrupted, strict=True)
    return tuple(place for place, (one, other) in enumerate(both) if one.id != other.id)


def why_unequal(texts: tuple[str, str], tokens: tuple[Sequence[Token], Sequence[Token]]) -> str:
    """Which words make the difference in length, in a sentence; empty where there is none."""
    counts = tuple(len(each) for each in tokens)
    if counts[0] == counts[1]:
        return ""
    uneven = list(_uneven(_words(texts[0], tokens[0]), _words(texts[1], tokens[1])))
    named = "; ".join(uneven[:MOST_NAMED])
    more = f"; and {len(uneven) - MOST_NAMED} more" if len(uneven) > MOST_NAMED else ""
    return (
        f"The clean text has {_tokens(counts[0])} and the corrupted one {counts[1]}, but they are "
        f"compared token by token: {named}{more}; make them as many."
    )


def _uneven(clean: list[Word], corrupted: list[Word]) -> Iterator[str]:
    """In words, each run of words that was replaced by one of another number of tokens."""
    one, other = ([word for word, _ in each] for each in (clean, corrupted))
    for _, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        before, after = clean[a:b], corrupted[c:d]
        counts = [sum(count for _, count in each) for each in (before, after)]
        if counts[0] == counts[1]:
            continue
        if before and after:
            yield f"{_quoted(before)} is {_tokens(counts[0])} and {_quoted(after)} is {counts[1]}"
        else:
            which = "clean" if before else "corrupted"
            yield f"{_quoted(before or after)} ({_tokens(sum(counts))}) is only in the {which} text"


def _words(text: str, tokens: Sequence[Token]) -> list[Word]:
    found = []
    for match in WORD.finditer(text):
        ends = (token.end for token in tokens if token.end > token.start)
        found.append((match[0], sum(match.start() < end <= match.end() for end in ends)))
    return found


def _quoted(words: Sequence[Word]) -> str:
    said = "".join(word for word, _ in words)
    return f"“{cut(readable(said.strip() or said).replace('␣', ' '), LONGEST_WORD)}”"


def _tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"


LEAST_AGREEMENT = 1e-3
"""Of the pairs' differences without their signs, what is left of them with signs at least."""


class PairError(ValueError):
    """Why two texts are no pair for this model, in one sentence."""


@dataclass(frozen=True)
class TextPair:
    """A clean text, a corrupted one, and two answers: tokens or classes as they are typed.

    An empty answer stands for what the model finds likeliest: `answer` after the clean text,
    `against` after the corrupted one, where that is another.
    """

    clean: str
    corrupted: str
    answer: str = ""
    against: str = ""


@dataclass(frozen=True, eq=False)
class TokenPair:
    """A pair as a model reads it: as many tokens in both texts, and the two answers by their IDs.

    `place` is the position whose output is read; a classifier's is that of the whole text.
    `clean_value` and `corrupted_value` are the metric of the two texts. `notes` say how a word
    or an answer was read that is no token as it was typed.
    """

    texts: TextPair
    clean: tuple[Token, ...]
    corrupted: tuple[Token, ...]
    answer: int
    against: int
    place: int
    outcome: Outcome
    clean_value: float
    corrupted_value: float
    names: tuple[str, str]
    """What the two answers are called on screen."""
    notes: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[int, ...]:
        """The places at which the two texts have different tokens."""
        return differing(self.clean, self.corrupted)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of a model: the pairs, and by which metric their outputs are told apart."""

    pairs: tuple[TokenPair, ...]
    metric: str

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes this question from others of the same model."""
        return self.metric, tuple(pair.texts for pair in self.pairs)

    @property
    def error(self) -> float:
        """How far a difference of the metric between two passes may be off."""
        return error_of(*(v for p in self.pairs for v in (p.clean_value, p.corrupted_value)))

    @property
    def why_no_gradient(self) -> str:
        """Why plain attribution says nothing of it, in a sentence; empty where it does."""
        return why_no_gradient(self.metric)


def question_of(opened: OpenModel, pairs: Iterable[TextPair], metric: str) -> Question:
    """The question as this model reads it. PairError says why it is none."""
    return question_from(tuple(token_pairs(opened, pairs, metric)), metric)


def question_from(pairs: tuple[TokenPair, ...], metric: str) -> Question:
    """The question of pairs that were read. PairError where what they differ by cancels out."""
    differences = [pair.clean_value - pair.corrupted_value for pair in pairs]
    if abs(sum(differences)) < LEAST_AGREEMENT * sum(map(abs, differences)):
        raise PairError(
            "The differences of these pairs cancel out, so their mean explains nothing: leave out "
            "those whose texts are turned round."
        )
    return Question(pairs, metric)


def token_pairs(opened: OpenModel, pairs: Iterable[TextPair], metric: str) -> Iterator[TokenPair]:
    """The pairs one after another, two passes each unless they are kept. PairError says why not."""
    if why := why_no_circuits(opened.config):
        raise PairError(why)
    for pair in pairs:
        yield token_pair(opened, pair, metric)


def why_no_circuits(config: TransformerConfig) -> str:
    """Why there are no circuits of such a model here, in a sentence; empty where there are."""
    if config.kind == "encoder-decoder":
        return (
            "Circuits are found in models of one stack and this one has two: the page "
            "Interventions patches its heads one at a time."
        )
    if config.head == "none":
        return "This model has no output head, so there is no output to compare: choose another."
    return ""


def token_pair(opened: OpenModel, texts: TextPair, metric: str) -> TokenPair:
    """One pair, kept; two passes the first time. PairError says why it is none."""
    return kept(
        opened,
        ("token pair", texts, metric),
        lambda: _token_pair(opened, texts, metric),
        lambda pair: 4 * opened.config.vocab_size * (metric == KL) + 400 * len(pair.clean),
    )


def _token_pair(opened: OpenModel, texts: TextPair, metric: str) -> TokenPair:
    if why := why_no_circuits(opened.config):
        raise PairError(why)
    if not texts.corrupted.strip():
        raise PairError("There is no corrupted text yet: type the clean one with a word changed.")
    clean, corrupted = _passed(opened, texts.clean, "clean"), _passed(opened, texts.corrupted)
    if why := why_unequal((texts.clean, texts.corrupted), (clean.tokens, corrupted.tokens)):
        raise PairError(why)
    if not differing(clean.tokens, corrupted.tokens):
        raise PairError(
            "Both texts are the same tokens to this model, so there is nothing to explain: "
            "change a word of the corrupted one."
        )
    place = _place(opened, clean, corrupted)
    before, after = (logits_at(each.trace, place) for each in (clean, corrupted))
    for name, logits in (("clean", before), ("corrupted", after)):
        if not logits.isfinite().all():
            raise PairError(
                f"The output for the {name} text is not finite, so nothing can be measured: the "
                "page Checkpoints shows what is wrong with the model's weights."
            )
    answer, against, notes = _answers(opened, texts, metric, (before, after))
    outcome = outcome_of(metric, answer, against, before)
    clean_value, corrupted_value = (float(outcome(each[None])) for each in (before, after))
    if clean_value == corrupted_value:
        raise PairError(
            f"The metric is {three(clean_value)} for both texts, so there is nothing to explain: "
            "change a word on which the answer depends."
        )
    return TokenPair(
        texts,
        clean=clean.tokens,
        corrupted=corrupted.tokens,
        answer=answer,
        against=against,
        place=place,
        outcome=outcome,
        clean_value=clean_value,
        corrupted_value=corrupted_value,
        names=(str(option_name(opened, answer)), str(option_name(opened, against))),
        notes=tuple(dict.fromkeys((*clean.notes, *corrupted.notes, *notes))),
    )


def _passed(opened: OpenModel, text: str, name: str = "corrupted") -> ForwardPass:
    """The pass of a text, the one that is kept where it is: those of many pairs are not."""
    try:
        passes = if_kept(opened, ((text,), "")) or run_batch_uncached(opened, (text,))
        return passes[0]
    except ForwardPassError as error:
        raise PairError(str(error).replace("This text", f"The {name} text")) from error


def _place(opened: OpenModel, clean: ForwardPass, corrupted: ForwardPass) -> int:
    if opened.config.head == "masked-language-model":
        masks = [masks_in(opened, each.tokens)[:1] for each in (clean, corrupted)]
        mask = opened.tokenizer.mask_id
        if mask is None:
            raise PairError("This model's tokenizer has no mask token: choose another model.")
        if not all(masks):
            name = opened.tokenizer.label(mask)
            raise PairError(f"This model fills a mask: put {name} into both texts, at one place.")
        if masks[0] != masks[1]:
            raise PairError(
                f"The mask is token {masks[0][0]} of the clean text and {masks[1][0]} of the "
                "corrupted one: put it at the same place."
            )
    return first_place(opened, clean.tokens)


def _answers(
    opened: OpenModel, texts: TextPair, metric: str, logits: tuple[Tensor, Tensor]
) -> tuple[int, int, tuple[str, ...]]:
    """Both answers by their numbers, as far as the metric reads them; the likeliest if not typed.

    Those of an untyped answer are the likeliest that the other one is not.
    """
    before, typed = (texts.clean, texts.corrupted), (texts.answer, texts.against)
    found: list[int | None] = [None, None]
    notes = []
    for at in range(ANSWERS_READ[metric]):
        if typed[at].strip():
            found[at], note = option_of(opened, before[at], typed[at], logits[at])
            if found[at] is None:
                raise PairError(note)
            notes.append(note)
    if found[0] is not None and found[0] == found[1]:
        raise PairError(
            f"Both answers are “{option_name(opened, found[0])}”, so they do not differ in any "
            "text: give another one."
        )
    answer = _likeliest(logits[0], found[1]) if found[0] is None else found[0]
    against = _likeliest(logits[1], answer) if found[1] is None else found[1]
    return answer, against, tuple(filter(None, notes))


def _likeliest(logits: Tensor, other: int | None) -> int:
    """The likeliest option that is not the other one."""
    best = logits.topk(min(2, len(logits))).indices.tolist()
    return next((each for each in best if each != other), best[0])
