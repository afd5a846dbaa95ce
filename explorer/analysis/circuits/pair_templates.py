"""Templates that make pairs of texts; the same seed always makes the same pairs.

A template fits a model if it makes pairs for it: the words that vary, from a list or from the
model's own vocabulary, must be single tokens, and both texts of a pair must have equally many.

Indirect object: Wang et al. 2022, arXiv 2211.00593. Greater-than: Hanna et al. 2023, arXiv
2305.00586. Induction: Olsson et al. 2022, arXiv 2209.11895.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from random import Random

from explorer.analysis.circuits.text_pairs import PairError, TextPair, differing_places, pieces_of
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import cached
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
"""The pronoun of the first is he, of the second she."""
FRAMES = (
    "The {} was tired because",
    "The {} was happy when",
    "The {} went home after",
    "The {} said that",
    "Then the {} smiled because",
)


SAMPLED = 500
"""Entries of a vocabulary that are tried as words."""
ENOUGH, LONGEST_BLOCK, SHORTEST_BLOCK = 24, 8, 5


@dataclass(frozen=True)
class WordGroups:
    """Groups of words that are single tokens each, out of `tried` groups.

    In a text they are joined by `glue`; a text has room for two blocks of `block` words.
    """

    groups: tuple[Group, ...]
    tried: int
    note: str = ""
    glue: str = " "
    block: int = 0


def single_tokens(groups: Sequence[Group], opened: OpenModel, random: Random) -> WordGroups:
    """The groups whose every word is one token after another word; encodes one text."""
    single = _single(opened, [word for group in groups for word in group], " ")
    fitting = tuple(group for group in groups if single.issuperset(group))
    kind = "words" if all(len(group) == 1 for group in groups) else "pairs of words"
    note = f"{len(fitting)} of {len(groups)} {kind} are single tokens of this model."
    return WordGroups(fitting, len(groups), note)


def own_words(opened: OpenModel, random: Random) -> WordGroups:
    """Random words or letters of the model's own vocabulary.

    They are joined by a space, or by nothing where the space would be a token too.
    """
    tokenizer = opened.tokenizer
    size = min(tokenizer.vocab_size, opened.config.vocab_size)
    ids = random.sample(range(size), min(size, SAMPLED))
    labels = [tokenizer.label(i).strip("␣▁") for i in ids]
    words = list(dict.fromkeys(label for label in labels if label.isalnum()))
    block = min(LONGEST_BLOCK, (opened.config.max_len - 1) // 2)
    for glue in (" ", ""):
        single = _single(opened, words, glue)
        groups = tuple((word,) for word in words if word in single)[:ENOUGH]
        if len(groups) >= block >= SHORTEST_BLOCK:
            return WordGroups(groups, len(words), glue=glue, block=block)
    return WordGroups((), len(words))


def _single(opened: OpenModel, words: Sequence[str], glue: str) -> set[str]:
    """The words that are one token each in a text of all of them, the glue before not counted."""
    tokens = opened.tokenizer.encode(glue.join([*words[:1], *words]))
    ends = Counter(token.end for token in tokens if token.end > token.start)
    starts = {token.end: token.start for token in tokens if token.end > token.start}
    unknown = {token.end for token in tokens if token.id == opened.tokenizer.unk_id}
    single, start = set(), sum(map(len, words[:1])) + len(glue)
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
            single.add(word)
        start = end + len(glue)
    return single


FEWEST = 2
TRIES = 12
"""Candidates that are drawn for each requested pair."""


@dataclass(frozen=True)
class PairTemplate:
    """How pairs of one kind are drawn.

    `words` gives the words that a model has as single tokens. `draws` make a pair of them: the
    next one is tried where the pairs of the first do not tokenize as they should. Both texts
    differ in `changes` tokens.
    """

    title: str
    about: str
    words: Callable[[OpenModel, Random], WordGroups]
    draws: tuple[Callable[[Random, WordGroups], TextPair], ...]
    changes: int = 1


@dataclass(frozen=True)
class TemplatePairs:
    """Pairs of a template; `note` says how many words and pairs there are, where it is needed."""

    pairs: tuple[TextPair, ...]
    note: str


def fitting_templates(opened: OpenModel) -> tuple[str, ...]:
    """The titles of the templates that make pairs for this model; cached."""
    return cached(
        opened, "fitting templates", lambda: tuple(t for t in TEMPLATES if _fits(opened, t))
    )


def make_pairs(opened: OpenModel, title: str, count: int, seed: int) -> TemplatePairs:
    """`count` pairs of a template, or as many as there are; cached. PairError where it has none.

    Encodes about ten texts for each pair and runs no pass of the model.
    """
    key = ("pairs of a template", title, count, seed)
    return cached(opened, key, lambda: _fill_template(opened, TEMPLATES[title], count, seed))


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
        words = template.words(opened, random)
        if len(words.groups) < FEWEST:
            single = "1 is a single token" if words.groups else "none is a single token"
            raise PairError(
                f"Of the {words.tried} words or pairs of words of this template, {single} of this "
                f"model, and {FEWEST} are needed: choose another template."
            )
        for draw in template.draws:
            candidates = dict.fromkeys(fill(draw(random, words)) for _ in range(TRIES * count))
            valid = (pair for pair in candidates if _is_pair(opened, pair, template.changes))
            pairs = [*islice(valid, count)]
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
    return TemplatePairs(tuple(pairs), f"{words.note}{few}".strip())


def _is_pair(opened: OpenModel, pair: TextPair, changes: int) -> bool:
    clean, corrupted = (opened.tokenizer.encode(text) for text in (pair.clean, pair.corrupted))
    if len(clean) != len(corrupted) or len(clean) > opened.config.max_len:
        return False
    answers = [pieces_of(opened, pair.clean, typed) for typed in (pair.answer, pair.against)]
    return (
        len(differing_places(clean, corrupted)) == changes
        and [len(tokens) for tokens in answers] == [1, 1]
        and answers[0][0].id != answers[1][0].id
    )


def _end_of(opened: OpenModel) -> Callable[[TextPair], TextPair] | None:
    """How the texts of a pair end where the answer follows: a decoder predicts it next, and a
    masked language model gets a mask in its place. None for any other model."""
    config, mask = opened.config, opened.tokenizer.mask_id
    if config.kind == "decoder" and config.head == "language-model":
        return lambda pair: pair
    if config.head == "masked-language-model" and mask is not None:
        end = f" {opened.tokenizer.label(mask)}."
        return lambda pair: replace(pair, clean=pair.clean + end, corrupted=pair.corrupted + end)
    return None


# The templates


def _indirect_object(random: Random, words: WordGroups) -> TextPair:
    indirect, subject = (group[0] for group in random.sample(words.groups, 2))
    first, second = random.sample((indirect, subject), 2)
    place, thing = random.choice(PLACES), random.choice(THINGS)
    start = f"When {first} and {second} went to the {place},"
    clean, corrupted = (f"{start} {giver} gave a {thing} to" for giver in (subject, indirect))
    return TextPair(clean, corrupted, f" {indirect}", f" {subject}")


def _greater_than(digits: int) -> Callable[[Random, WordGroups], TextPair]:
    """From a year to a later one; answers of two digits, or of the first of them."""

    def draw(random: Random, words: WordGroups) -> TextPair:
        century, event = random.choice(CENTURIES), random.choice(EVENTS)
        decade, year = random.randint(3, 7), random.randint(2, 8)
        later, earlier = (
            f"{random.randint(*decades)}{random.randint(2, 8)}"[:digits]
            for decades in ((decade + 1, 9), (1, decade - 1))
        )
        clean, corrupted = (
            f"The {event} lasted from the year {century}{digit}{year} to the year {century}"
            for digit in (decade, 0)
        )
        return TextPair(clean, corrupted, later, earlier)

    return draw


def _induction(random: Random, words: WordGroups) -> TextPair:
    """A block begins again. In the corrupted text two words of the first block are exchanged, so
    another word follows the earlier copy of the last one."""
    block = [group[0] for group in random.sample(words.groups, words.block)]
    last = random.randint(1, words.block - 4)
    partner = random.randint(last + 2, words.block - 2)
    exchanged = block.copy()
    exchanged[last], exchanged[partner] = block[partner], block[last]
    again = block[: last + 1]
    clean, corrupted = (words.glue.join([*first, *again]) for first in (block, exchanged))
    answer, against = (words.glue + block[place + 1] for place in (last, partner))
    return TextPair(clean, corrupted, answer, against)


def _agreement(random: Random, words: WordGroups) -> TextPair:
    subject, second_noun = random.sample(words.groups, 2)
    verb, number = random.choice(VERBS), random.randint(0, 1)
    where = f"{random.choice(PREPOSITIONS)} the {random.choice(second_noun)}"
    clean, corrupted = (f"The {noun} {where}" for noun in (subject[number], subject[1 - number]))
    return TextPair(clean, corrupted, f" {verb[number]}", f" {verb[1 - number]}")


def _capitals(random: Random, words: WordGroups) -> TextPair:
    (country, capital), (another, its) = random.sample(words.groups, 2)
    clean, corrupted = (f"The capital of {name} is" for name in (country, another))
    return TextPair(clean, corrupted, f" {capital}", f" {its}")


def _gender(random: Random, words: WordGroups) -> TextPair:
    persons, frame = random.choice(words.groups), random.choice(FRAMES)
    gender = random.randint(0, 1)
    clean, corrupted = (frame.format(persons[at]) for at in (gender, 1 - gender))
    pronouns = (" he", " she")
    return TextPair(clean, corrupted, pronouns[gender], pronouns[1 - gender])


TEMPLATES = {
    template.title: template
    for template in (
        PairTemplate(
            "Indirect object",
            "Two people, one of whom gives something; in the corrupted text the other one does.",
            partial(single_tokens, NAMES),
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
            "Random tokens of the model's vocabulary, repeated; in the corrupted text two of them "
            "are exchanged.",
            own_words,
            (_induction,),
            changes=2,
        ),
        PairTemplate(
            "Agreement",
            "A verb that agrees with its subject; in the corrupted text the subject has the other "
            "number.",
            partial(single_tokens, NOUNS),
            (_agreement,),
        ),
        PairTemplate(
            "Capitals",
            "A country's capital; in the corrupted text that of another.",
            partial(single_tokens, CAPITALS),
            (_capitals,),
        ),
        PairTemplate(
            "Gender",
            "The pronoun of a person; in the corrupted text that of another.",
            partial(single_tokens, PERSONS),
            (_gender,),
        ),
    )
}
"""By their titles on screen."""
