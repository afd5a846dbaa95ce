"""Two texts that are compared token by token, and the answers whose metric distinguishes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from explorer.analysis.circuit_metrics import ANSWERS_READ, KL, Outcome, outcome_of
from explorer.analysis.output_change import has_words, logits_at
from explorer.analysis.token_alignment import align_texts
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import (
    class_names,
    first_place,
    masks_in,
    option_name,
    score_sentence,
)
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_batch_uncached
from explorer.inference.results_cache import cached, if_cached
from explorer.text import TextError, Token
from explorer.text.number_format import error_of, three
from explorer.text.token_labels import named_at, text_of, texts
from explorer.text.visible_text import cut
from models import TransformerConfig

MOST_PIECES, LONGEST_ANSWER = 4, 40


def option_of(opened: OpenModel, before: str, typed: str, logits: Tensor) -> tuple[int | None, str]:
    """The ID of a typed answer, and a note; without an ID the note says why, in a sentence.

    `before` is the text that the answer follows, and `logits` (options,) are those after this
    text. An answer typed without a space may be a token that begins with one: the likelier of the
    two is used.
    """
    answer = text_of(cut(typed, LONGEST_ANSWER))
    if opened.config.head == "classifier":
        names = class_names(opened)
        for number, name in enumerate(names):
            if name.casefold() == typed.strip().casefold():
                return number, ""
        some = _first([text_of(cut(name, LONGEST_ANSWER)) for name in names])
        return None, f"“{answer}” is no class of this model: give one of {some}."
    variants = [typed] if typed[:1].isspace() or before[-1:].isspace() else [typed, f" {typed}"]
    try:
        pieces = [pieces_of(opened, before, variant) for variant in variants]
    except TextError as error:
        return None, str(error)
    single = [tokens[0] for tokens in pieces if len(tokens) == 1]
    in_vocabulary = [token for token in single if token.id != opened.tokenizer.unk_id]
    if in_vocabulary:
        best = max(in_vocabulary, key=lambda token: float(logits[token.id]))
        has_space = text_of(best).strip("␣") == answer and text_of(best) != answer
        return best.id, f"“{answer}” is read as “{text_of(best)}”." if has_space else ""
    if single or not pieces[0]:
        return None, f"“{answer}” is not in this model's vocabulary: give one token that is."
    tokens = _first(texts(pieces[0]))
    return None, f"“{answer}” is {len(pieces[0])} tokens, {tokens}: give one token."


def _first(names: Sequence[str]) -> str:
    """The first of these names; dots stand for the others."""
    more = ["…"] if len(names) > MOST_PIECES else []
    return ", ".join([*(f"“{name}”" for name in names[:MOST_PIECES]), *more])


def pieces_of(opened: OpenModel, before: str, typed: str) -> tuple[Token, ...]:
    """The tokens that a typed answer adds to the text before it; where that text is then split in
    another way, the tokens of the answer alone."""
    if opened.config.kind == "decoder":
        start, whole = (_text_tokens(opened, text) for text in (before, before + typed))
        if [token.id for token in whole[: len(start)]] == [token.id for token in start]:
            return whole[len(start) :]
    return _text_tokens(opened, typed)


def _text_tokens(opened: OpenModel, text: str) -> tuple[Token, ...]:
    """The tokens of a text without the special ones around it."""
    return tuple(token for token in opened.tokenizer.encode(text) if token.end > token.start)


MOST_NAMED = 3
"""Tokens without a partner that are named, of each text."""


def differing_places(clean: Sequence[Token], corrupted: Sequence[Token]) -> tuple[int, ...]:
    """The places at which two texts of equally many tokens differ."""
    both = zip(clean, corrupted, strict=True)
    return tuple(place for place, (a, b) in enumerate(both) if a.id != b.id)


def unequal_note(
    tokens: tuple[Sequence[Token], Sequence[Token]], partners: Sequence[tuple[int, int]]
) -> str:
    """Which tokens of both texts have no partner, in a sentence; empty if the counts agree."""
    counts = tuple(map(len, tokens))
    if counts[0] == counts[1]:
        return ""
    sides = zip(("clean", "corrupted"), tokens, zip(*partners, strict=True), strict=True)
    alone = [
        f"{_places(side, {*range(len(side))} - {*places})} of the {name} text"
        for name, side, places in sides
        if len(places) < len(side)
    ]
    return (
        f"The clean text has {counts[0]:,} token{'s' * (counts[0] > 1)} and the corrupted one "
        f"{counts[1]:,}; those without a partner keep their value: {' and '.join(alone)}."
    )


def _places(tokens: Sequence[Token], places: set[int]) -> str:
    """The number of these places, and the first of them by name."""
    named = ", ".join(named_at(tokens, place) for place in sorted(places)[:MOST_NAMED])
    return f"{len(places):,} ({named}{', …' if len(places) > MOST_NAMED else ''})"


LEAST_AGREEMENT = 1e-3
"""The least |sum of the pairs' differences| / sum of their absolute values."""


class PairError(ValueError):
    """Why two texts cannot be compared for this model, in one sentence."""


@dataclass(frozen=True)
class TextPair:
    """A clean text, a corrupted one, and two answers: tokens or classes as they are typed.

    An empty answer stands for the likeliest option of the model: `answer` after the clean text,
    `against` after the corrupted one, where it is not `answer`.
    """

    clean: str
    corrupted: str
    answer: str = ""
    against: str = ""


@dataclass(frozen=True, eq=False)
class TokenPair:
    """A pair as a model reads it, and the answers by their IDs.

    `place` and `corrupted_place` are the positions whose outputs are read, and `partners` those of
    both texts that are compared: the same place where they are equally long. `clean_value` and
    `corrupted_value` are the metric of the two texts. `notes` say how words and answers were read
    that are no tokens as they were typed, and which tokens have no partner.
    """

    texts: TextPair
    clean: tuple[Token, ...]
    corrupted: tuple[Token, ...]
    answer: int
    against: int
    place: int
    corrupted_place: int
    partners: tuple[tuple[int, int], ...]
    outcome: Outcome
    clean_value: float
    corrupted_value: float
    names: tuple[str, str]
    """The two answers as the screen names them."""
    notes: tuple[str, ...] = ()

    @property
    def counterparts(self) -> tuple[Token, ...]:
        """For each token of the clean text its partner in the corrupted one, or “–”."""
        partners, alone = dict(self.partners), Token(-1, "–", special=True)
        places = map(partners.get, range(len(self.clean)))
        return tuple(alone if place is None else self.corrupted[place] for place in places)

    @property
    def differing_places(self) -> tuple[int, ...]:
        """The places of the clean text with another partner or none."""
        return differing_places(self.clean, self.counterparts)


@dataclass(frozen=True, eq=False)
class Question:
    """The pairs of texts, and the metric that distinguishes their outputs."""

    pairs: tuple[TokenPair, ...]
    metric: str

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes this question from others of the same model."""
        return self.metric, tuple(pair.texts for pair in self.pairs)

    @property
    def error(self) -> float:
        """The largest numerical error of a difference of the metric between two passes."""
        return error_of(*(v for p in self.pairs for v in (p.clean_value, p.corrupted_value)))


def question_of(opened: OpenModel, pairs: Iterable[TextPair], metric: str) -> Question:
    """The question as this model reads it. PairError where a pair cannot be compared."""
    return question_from(tuple(token_pair(opened, pair, metric) for pair in pairs), metric)


def question_from(pairs: tuple[TokenPair, ...], metric: str) -> Question:
    """The question of these pairs. PairError where their differences cancel out."""
    differences = [pair.clean_value - pair.corrupted_value for pair in pairs]
    if abs(sum(differences)) < LEAST_AGREEMENT * sum(map(abs, differences)):
        raise PairError(
            "The differences of these pairs cancel out, so their mean explains nothing: leave out "
            "the pairs whose two texts are exchanged."
        )
    return Question(pairs, metric)


def why_no_circuits(config: TransformerConfig) -> str:
    """Why this app finds no circuits in such a model, in a sentence; empty where it does."""
    if config.kind == "encoder-decoder":
        return (
            "This page needs a model with one stack, and this one has an encoder and a decoder: "
            "choose another, or patch single heads on the page Interventions."
        )
    if config.head == "none":
        return "This model has no output head, so there is no output to compare: choose another."
    return ""


def token_pair(opened: OpenModel, texts: TextPair, metric: str) -> TokenPair:
    """One pair, cached; two passes the first time. PairError where it cannot be compared."""
    return cached(
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
    clean, corrupted = _run(opened, texts.clean, "clean"), _run(opened, texts.corrupted)
    tokens = clean.tokens, corrupted.tokens
    if [token.id for token in tokens[0]] == [token.id for token in tokens[1]]:
        raise PairError(
            "Both texts are the same tokens to this model, so there is nothing to explain: "
            "change a word of the corrupted one."
        )
    places = _output_places(opened, clean, corrupted)
    ends = len(tokens[0]) - 1, len(tokens[1]) - 1  # a classifier may read the last token
    partners = align_texts(*tokens, places if has_words(opened.config) else ends)
    note = unequal_note(tokens, partners)
    before, after = (
        logits_at(forward.trace, place)
        for forward, place in zip((clean, corrupted), places, strict=True)
    )
    for name, logits in (("clean", before), ("corrupted", after)):
        if not logits.isfinite().all():
            raise PairError(
                f"The output for the {name} text is not finite, so nothing can be measured: the "
                "page Models shows what is wrong with the model's weights."
            )
    answer, against, notes = _answers(opened, texts, metric, (before, after))
    if opened.config.score_function != "softmax":
        notes = (score_sentence(opened.config), *notes)
    outcome = outcome_of(opened.config, metric, answer, against, before)
    clean_value, corrupted_value = (float(outcome(logits[None])) for logits in (before, after))
    if clean_value == corrupted_value:
        raise PairError(
            f"The metric is {three(clean_value)} for both texts, so there is nothing to explain: "
            "change a word on which the answer depends."
        )
    names = str(option_name(opened, answer)), str(option_name(opened, against))
    every = dict.fromkeys((note, *clean.notes, *corrupted.notes, *notes))
    notes, metrics = tuple(filter(None, every)), (clean_value, corrupted_value)
    return TokenPair(
        texts, *tokens, answer, against, *places, partners, outcome, *metrics, names, notes
    )


def _run(opened: OpenModel, text: str, name: str = "corrupted") -> ForwardPass:
    """The pass of a text from the cache if it is there; those of many pairs are not cached."""
    try:
        return (if_cached(opened, ((text,), "")) or run_batch_uncached(opened, (text,)))[0]
    except ForwardPassError as error:
        raise PairError(str(error).replace("This text", f"The {name} text")) from error


def _output_places(
    opened: OpenModel, clean: ForwardPass, corrupted: ForwardPass
) -> tuple[int, int]:
    if opened.config.head == "masked-language-model":
        masks = [masks_in(opened, forward.tokens)[:1] for forward in (clean, corrupted)]
        mask = opened.tokenizer.mask_id
        if mask is None:
            raise PairError("This model's tokenizer has no mask token: choose another model.")
        if not all(masks):
            put = f"put {opened.tokenizer.label(mask)} into both texts, at the same place"
            raise PairError(f"This model fills a mask: {put}.")
        if len(clean.tokens) == len(corrupted.tokens) and masks[0] != masks[1]:
            raise PairError(
                f"The mask is token {masks[0][0]} of the clean text and {masks[1][0]} of the "
                "corrupted one: put it at the same place."
            )
    return first_place(opened, clean.tokens), first_place(opened, corrupted.tokens)


def _answers(
    opened: OpenModel, texts: TextPair, metric: str, logits: tuple[Tensor, Tensor]
) -> tuple[int, int, tuple[str, ...]]:
    """The IDs of both answers, and notes on how they were read.

    An answer that is not typed, or that the metric does not read, is the likeliest option that
    the other answer is not.
    """
    before, typed = (texts.clean, texts.corrupted), (texts.answer, texts.against)
    options: list[int | None] = [None, None]
    notes = []
    for at in range(ANSWERS_READ[metric]):
        if typed[at].strip():
            options[at], note = option_of(opened, before[at], typed[at], logits[at])
            if options[at] is None:
                raise PairError(note)
            notes.append(note)
    if options[0] is not None and options[0] == options[1]:
        raise PairError(
            f"Both answers are “{option_name(opened, options[0])}”, so they do not differ in any "
            "text: give another one."
        )
    answer = _likeliest(logits[0], options[1]) if options[0] is None else options[0]
    against = _likeliest(logits[1], answer) if options[1] is None else options[1]
    return answer, against, tuple(filter(None, notes))


def _likeliest(logits: Tensor, excluded: int | None) -> int:
    """The likeliest option but this one."""
    best: list[int] = logits.topk(min(2, len(logits))).indices.tolist()
    return next((option for option in best if option != excluded), best[0])
