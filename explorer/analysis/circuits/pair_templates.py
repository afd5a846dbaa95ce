"""Templates that make pairs of texts: as many as are asked for, the same ones from the same seed.

Which of them fit a model is found by trying: their words have to be single tokens of it, those of a
list or some of its own vocabulary, and both texts of a pair have to have as many.

Indirect object: Wang et al. 2022, arXiv 2211.00593. Greater-than: Hanna et al. 2023, arXiv
2305.00586. Induction: Olsson et al. 2022, arXiv 2209.11895.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from explorer.analysis.circuits.text_pairs import PairError, TextPair, differing, pieces_of
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import kept
from explorer.text import TextError

Group = tuple[str, ...]


def _groups(text: str) -> tuple[Group, ...]:
    return tuple(tuple(group.split("/")) for group in text.split())


NAMES = _groups(
    "Mary John Tom James Daniel Martin Amy Lisa Michael Sarah David Anna Robert Emma Mark Laura "
    "Paul Alice Peter Kate Jack Rose Adam Ruth Henry Grace Simon Jane Frank Susan George Julia "
    "Kevin Helen Brian Lucy Maria Andrew Rachel William"
)
PLACES = "store park school garden office station hospital restaurant".split()
THINGS = "drink book ring letter ball flower key present".split()

EVENTS = "war strike trip project siege reign journey dispute".split()
CENTURIES = ("11", "12", "13", "14", "15", "16", "17", "18")

NOUNS = _groups(
    "key/keys book/books car/cars dog/dogs cat/cats boy/boys girl/girls picture/pictures "
    "letter/letters teacher/teachers student/students doctor/doctors tree/trees house/houses "
    "window/windows table/tables chair/chairs friend/friends author/authors"
)
VERBS = (("is", "are"), ("was", "were"), ("has", "have"))
PREPOSITIONS = ("near", "behind", "beside", "with")

CAPITALS = _groups(
    "France/Paris Italy/Rome Germany/Berlin Spain/Madrid Japan/Tokyo China/Beijing Russia/Moscow "
    "Egypt/Cairo England/London Greece/Athens Poland/Warsaw Austria/Vienna Portugal/Lisbon "
    "Ireland/Dublin Norway/Oslo Sweden/Stockholm Hungary/Budapest Cuba/Havana Iran/Tehran "
    "Iraq/Baghdad Canada/Ottawa Turkey/Ankara Peru/Lima Kenya/Nairobi Belgium/Brussels "
    "Denmark/Copenhagen Finland/Helsinki Chile/Santiago Syria/Damascus Ukraine/Kiev"
)

PERSONS = _groups(
    "king/queen man/woman boy/girl father/mother brother/sister son/daughter husband/wife "
    "uncle/aunt actor/actress prince/princess waiter/waitress gentleman/lady "
    "grandfather/grandmother nephew/niece hero/heroine"
)
"""The first is a he, the second a she."""
FRAMES = (
    "The {} was tired because",
    "The {} was happy when",
    "The {} went home after",
    "The {} said that",
    "Then the {} smiled because",
)


SAMPLED = 500
"""Entries of a vocabulary that are tried."""
ENOUGH, LONGEST_BLOCK, SHORTEST_BLOCK = 24, 8, 5


@dataclass(frozen=True)
class WordGroups:
    """Groups of words that are single tokens each, of so many that were tried.

    They stand in a text with `glue` between them; so many make a block that fits twice.
    """

    groups: tuple[Group, ...]
    tried: int
    said: str = ""
    glue: str = " "
    block: int = 0


def single_tokens(opened: OpenModel, groups: Sequence[Group]) -> WordGroups:
    """The groups whose every word is one token behind another word; one text is encoded."""
    single = _single(opened, [word for group in groups for word in group], " ")
    found = tuple(group for group in groups if single.issuperset(group))
    kind = "words" if all(len(group) == 1 for group in groups) else "pairs of words"
    said = f"{len(found)} of {len(groups)} {kind} are single tokens of this model."
    return WordGroups(found, len(groups), said)


def own_words(opened: OpenModel, random: Random) -> WordGroups:
    """Words or letters of the model's own vocabulary, drawn at random, and a block of them.

    They stand with a space between them, or without where the space would be a token too.
    """
    size, tokenizer = opened.tokenizer.vocab_size, opened.tokenizer
    size = min(size, opened.config.vocab_size)
    drawn = random.sample(range(size), min(size, SAMPLED))
    labels = [tokenizer.label(each).strip("␣▁") for each in drawn]
    plain = list(dict.fromkeys(each for each in labels if each.isalnum()))
    block = min(LONGEST_BLOCK, (opened.config.max_len - 1) // 2)
    for glue in (" ", ""):
        single = _single(opened, plain, glue)
        found = tuple((each,) for each in plain if each in single)[:ENOUGH]
        if len(found) >= block >= SHORTEST_BLOCK:
            return WordGroups(found, len(plain), glue=glue, block=block)
    return WordGroups((), len(plain))


def _single(opened: OpenModel, words: Sequence[str], glue: str) -> set[str]:
    """Those that are one token each in a text of them all, where the glue before is none."""
    tokens = opened.tokenizer.encode(glue.join([*words[:1], *words]))
    ends = Counter(token.end for token in tokens if token.end > token.start)
    starts = {token.end: token.start for token in tokens if token.end > token.start}
    unknown = {token.end for token in tokens if token.id == opened.tokenizer.unk_id}
    found, start = set(), sum(map(len, words[:1])) + len(glue)
    for word in words:
        end = start + len(word)
        inside = sum(ends[at] for at in range(start + 1, end + 1))
        is_glue = bool(glue) and starts.get(start) == start - len(glue)
        if (
            inside == 1
            and not is_glue
            and end not in unknown
            and start - len(glue) <= starts.get(end, -9) <= start
        ):
            found.add(word)
        start = end + len(glue)
    return found


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
class TemplatePairs:
    """Pairs of a template, and what is to be said of them."""

    pairs: tuple[TextPair, ...]
    said: str


def fitting(opened: OpenModel) -> tuple[str, ...]:
    """The titles of the templates that make pairs for this model; kept."""

    def make() -> tuple[str, ...]:
        return tuple(title for title in TEMPLATES if _fits(opened, title))

    return kept(opened, "fitting templates", make)


def make_pairs(opened: OpenModel, title: str, count: int, seed: int) -> TemplatePairs:
    """So many pairs of a template, or all there are; kept. PairError says why there are none.

    No pass of the model: some ten texts are encoded for each pair.
    """
    key = ("pairs of a template", title, count, seed)
    return kept(opened, key, lambda: _fill_template(opened, TEMPLATES[title], count, seed))


def _fits(opened: OpenModel, title: str) -> bool:
    try:
        make_pairs(opened, title, FEWEST, 0)
    except PairError:
        return False
    return True


def _fill_template(
    opened: OpenModel, template: PairTemplate, count: int, seed: int
) -> TemplatePairs:
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
    return TemplatePairs(tuple(pairs), f"{found.said}{few}".strip())


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
    place, thing = random.choice(PLACES), random.choice(THINGS)
    start = f"When {first} and {second} went to the {place},"
    clean, corrupted = (f"{start} {giver} gave a {thing} to" for giver in (other, one))
    return TextPair(clean, corrupted, f" {one}", f" {other}")


def _greater_than(digits: int) -> Callable[[Random, WordGroups], TextPair]:
    """From a year to a later one; answers of two digits, or of the first of them."""

    def draw(random: Random, found: WordGroups) -> TextPair:
        century, event = random.choice(CENTURIES), random.choice(EVENTS)
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
    verb, number = random.choice(VERBS), random.randint(0, 1)
    where = f"{random.choice(PREPOSITIONS)} the {random.choice(beside)}"
    clean, corrupted = (f"The {subject[each]} {where}" for each in (number, 1 - number))
    return TextPair(clean, corrupted, f" {verb[number]}", f" {verb[1 - number]}")


def _capitals(random: Random, found: WordGroups) -> TextPair:
    (country, capital), (another, its) = random.sample(found.groups, 2)
    clean, corrupted = (f"The capital of {each} is" for each in (country, another))
    return TextPair(clean, corrupted, f" {capital}", f" {its}")


def _gender(random: Random, found: WordGroups) -> TextPair:
    persons, frame = random.choice(found.groups), random.choice(FRAMES)
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
            _single_token_groups(NAMES),
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
            _single_token_groups(NOUNS),
            (_agreement,),
        ),
        PairTemplate(
            "Capitals",
            "A country's capital; in the corrupted text that of another.",
            _single_token_groups(CAPITALS),
            (_capitals,),
        ),
        PairTemplate(
            "Gender",
            "The pronoun of a person; in the corrupted text that of another.",
            _single_token_groups(PERSONS),
            (_gender,),
        ),
    )
}
"""By their titles on screen."""
