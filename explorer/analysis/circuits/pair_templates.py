"""Templates that make pairs of texts: as many as are asked for, the same ones from the same seed.

Which of them fit a model is found by trying: their words have to be single tokens of it, and both
texts of a pair have to have as many.

Indirect object: Wang et al. 2022, arXiv 2211.00593. Greater-than: Hanna et al. 2023, arXiv
2305.00586. Induction: Olsson et al. 2022, arXiv 2209.11895.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from explorer.analysis.circuits import vocabulary_words as words
from explorer.analysis.circuits.text_pairs import PairError, TextPair, differing
from explorer.analysis.circuits.typed_answers import pieces_of
from explorer.analysis.circuits.vocabulary_words import Group, WordGroups, own_words, single_tokens
from explorer.catalog.open_model import OpenModel
from explorer.inference.results_cache import kept, size_of
from explorer.text import TextError

FEWEST = 2
TRIES = 12
"""So many candidates are drawn for each pair that is asked for before there are no more."""


@dataclass(frozen=True)
class PairTemplate:
    """How pairs of one kind are drawn.

    `words` are those a model has of it, `draws` make a pair of them in one way or, where that
    has other tokens than it should, in another. Both texts differ in so many tokens.
    """

    title: str
    about: str
    words: Callable[[OpenModel, Random], WordGroups]
    draws: tuple[Callable[[Random, WordGroups], TextPair], ...]
    changes: int = 1


@dataclass(frozen=True)
class MadePairs:
    """Pairs of a template, and what is to be said of them."""

    pairs: tuple[TextPair, ...]
    said: str


def fitting(opened: OpenModel) -> tuple[str, ...]:
    """The titles of the templates that make pairs for this model; kept."""

    def make() -> tuple[str, ...]:
        return tuple(title for title in TEMPLATES if _fits(opened, title))

    return kept(opened, "fitting templates", make, size_of)


def make_pairs(opened: OpenModel, title: str, count: int, seed: int) -> MadePairs:
    """So many pairs of a template, or all there are; kept. PairError says why there are none.

    No pass of the model: some ten texts are encoded for each pair.
    """
    key = ("pairs of a template", title, count, seed)
    return kept(opened, key, lambda: _made(opened, TEMPLATES[title], count, seed), size_of)


def _fits(opened: OpenModel, title: str) -> bool:
    try:
        make_pairs(opened, title, FEWEST, 0)
    except PairError:
        return False
    return True


def _made(opened: OpenModel, template: PairTemplate, count: int, seed: int) -> MadePairs:
    if (fill := _end_of(opened)) is None:
        raise PairError(
            "Templates ask for a next token or a masked one, and this model gives neither: type "
            "two texts."
        )
    random = Random(seed)
    try:
        found = template.words(opened, random)
        if len(found.groups) < FEWEST:
            raise PairError(
                f"Of the {found.tried} words or pairs of words of this template "
                f"{_single_tokens(len(found.groups))} of this model, and {FEWEST} are needed: "
                "choose another template."
            )
        for draw in template.draws:
            drawn = dict.fromkeys(fill(draw(random, found)) for _ in range(TRIES * count))
            pairs = [*_first(count, opened, drawn, template.changes)]
            if len(pairs) >= min(count, FEWEST):
                break
    except TextError as error:
        raise PairError(str(error)) from error
    if len(pairs) < min(count, FEWEST):
        raise PairError(
            "This model's tokenizer splits the texts or the answers of this template in other "
            "ways: choose another template."
        )
    few = "" if len(pairs) == count else f" There are {len(pairs)} different pairs, not {count}."
    return MadePairs(tuple(pairs), f"{found.said}{few}".strip())


def _single_tokens(count: int) -> str:
    return {0: "none is a single token", 1: "1 is a single token"}.get(
        count, f"{count} are single tokens"
    )


def _first(
    count: int, opened: OpenModel, drawn: Iterable[TextPair], changes: int
) -> Iterator[TextPair]:
    """The first so many that are pairs as they should be."""
    for pair in drawn:
        if count and _is_pair(opened, pair, changes):
            count -= 1
            yield pair


def _is_pair(opened: OpenModel, pair: TextPair, changes: int) -> bool:
    clean, corrupted = (opened.tokenizer.encode(each) for each in (pair.clean, pair.corrupted))
    if len(clean) != len(corrupted) or len(clean) > opened.config.max_len:
        return False
    pieces = [pieces_of(opened, pair.clean, each) for each in (pair.answer, pair.against)]
    return (
        len(differing(clean, corrupted)) == changes
        and [len(each) for each in pieces] == [1, 1]
        and pieces[0][0].id != pieces[1][0].id
    )


def _end_of(opened: OpenModel) -> Callable[[TextPair], TextPair] | None:
    """What becomes of a text that goes on with the answer: a mask stands for it where one reads
    both ways."""
    config, mask = opened.config, opened.tokenizer.mask_id
    if config.kind == "decoder" and config.head == "language-model":
        return lambda pair: pair
    if config.head == "masked-language-model" and mask is not None:
        end = f" {opened.tokenizer.label(mask)}."
        return lambda pair: replace(pair, clean=pair.clean + end, corrupted=pair.corrupted + end)
    return None


# The templates


def _single_token_groups(groups: tuple[Group, ...]) -> Callable[[OpenModel, Random], WordGroups]:
    """Those of these groups whose every word is one token of the model."""
    return lambda opened, _: single_tokens(opened, groups)


def _indirect_object(random: Random, found: WordGroups) -> TextPair:
    one, other = (group[0] for group in random.sample(found.groups, 2))
    first, second = random.sample((one, other), 2)
    place, thing = random.choice(words.PLACES), random.choice(words.THINGS)
    start = f"When {first} and {second} went to the {place},"
    clean, corrupted = (f"{start} {giver} gave a {thing} to" for giver in (other, one))
    return TextPair(clean, corrupted, f" {one}", f" {other}")


def _greater_than(digits: int) -> Callable[[Random, WordGroups], TextPair]:
    """From a year to a later one; answers of two digits, or of the first of them."""

    def draw(random: Random, found: WordGroups) -> TextPair:
        century, event = random.choice(words.CENTURIES), random.choice(words.EVENTS)
        decade, year = random.randint(3, 7), random.randint(2, 8)
        later, earlier = (
            f"{random.randint(*decades)}{random.randint(2, 8)}"[:digits]
            for decades in ((decade + 1, 9), (1, decade - 1))
        )
        clean, corrupted = (
            f"The {event} lasted from the year {century}{each}{year} to the year {century}"
            for each in (decade, 0)
        )
        return TextPair(clean, corrupted, later, earlier)

    return draw


def _induction(random: Random, found: WordGroups) -> TextPair:
    """A block begins again. In the corrupted text two of its words have changed places, so
    another one stands behind the copy of the last word."""
    block = [group[0] for group in random.sample(found.groups, found.block)]
    last = random.randint(1, found.block - 4)
    other = random.randint(last + 2, found.block - 2)
    swapped = block.copy()
    swapped[last], swapped[other] = block[other], block[last]
    again = block[: last + 1]
    clean, corrupted = (found.glue.join([*each, *again]) for each in (block, swapped))
    answer, against = (found.glue + block[each + 1] for each in (last, other))
    return TextPair(clean, corrupted, answer, against)


def _agreement(random: Random, found: WordGroups) -> TextPair:
    subject, beside = random.sample(found.groups, 2)
    verb, number = random.choice(words.VERBS), random.randint(0, 1)
    where = f"{random.choice(words.PREPOSITIONS)} the {random.choice(beside)}"
    clean, corrupted = (f"The {subject[each]} {where}" for each in (number, 1 - number))
    return TextPair(clean, corrupted, f" {verb[number]}", f" {verb[1 - number]}")


def _capitals(random: Random, found: WordGroups) -> TextPair:
    (country, capital), (another, its) = random.sample(found.groups, 2)
    clean, corrupted = (f"The capital of {each} is" for each in (country, another))
    return TextPair(clean, corrupted, f" {capital}", f" {its}")


def _gender(random: Random, found: WordGroups) -> TextPair:
    persons, frame = random.choice(found.groups), random.choice(words.FRAMES)
    number = random.randint(0, 1)
    clean, corrupted = (frame.format(persons[each]) for each in (number, 1 - number))
    answers = (" he", " she")
    return TextPair(clean, corrupted, answers[number], answers[1 - number])


TEMPLATES = {
    template.title: template
    for template in (
        PairTemplate(
            "Indirect object",
            "Two people, one of whom gives something; in the corrupted text the other one does.",
            _single_token_groups(words.NAMES),
            (_indirect_object,),
        ),
        PairTemplate(
            "Greater-than",
            "From a year to a later one; in the corrupted text every later year fits.",
            lambda opened, random: WordGroups(((), ()), 2),
            (_greater_than(2), _greater_than(1)),
        ),
        PairTemplate(
            "Induction",
            "Random tokens of the model's vocabulary that begin again; in the corrupted text two "
            "of them have changed places.",
            own_words,
            (_induction,),
            changes=2,
        ),
        PairTemplate(
            "Agreement",
            "A verb that agrees with its subject; in the corrupted text the subject has the other "
            "number.",
            _single_token_groups(words.NOUNS),
            (_agreement,),
        ),
        PairTemplate(
            "Capitals",
            "A country's capital; in the corrupted text that of another.",
            _single_token_groups(words.CAPITALS),
            (_capitals,),
        ),
        PairTemplate(
            "Gender",
            "The pronoun of a person; in the corrupted text that of another.",
            _single_token_groups(words.PERSONS),
            (_gender,),
        ),
    )
}
"""By their titles on screen."""
