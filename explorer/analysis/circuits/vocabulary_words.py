"""Words that are single tokens of a model: those of a list, and some of its own vocabulary."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from explorer.catalog.open_model import OpenModel

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
