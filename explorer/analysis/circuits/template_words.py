"""The words that the templates of pairs are made of; a group stays or leaves together."""

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
