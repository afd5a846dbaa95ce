"""A small grammar: English sentences, their French, and which word comes from which.

French puts these adjectives after the noun, inflects article and adjective for the
noun's gender, puts a negated verb between `ne` and `pas`, and has `de` for a negated
`a`. No word begins with a vowel after `le`, `la` or `ne`, so none is elided.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

NOUNS = {
    "cat": ("chat", "m"),
    "dog": ("chien", "m"),
    "rabbit": ("lapin", "m"),
    "book": ("livre", "m"),
    "hat": ("chapeau", "m"),
    "bread": ("pain", "m"),
    "mouse": ("souris", "f"),
    "cow": ("vache", "f"),
    "girl": ("fille", "f"),
    "house": ("maison", "f"),
    "car": ("voiture", "f"),
    "flower": ("fleur", "f"),
}
ADJECTIVES = {
    "black": ("noir", "noire"),
    "white": ("blanc", "blanche"),
    "green": ("vert", "verte"),
    "blue": ("bleu", "bleue"),
    "grey": ("gris", "grise"),
    "red": ("rouge", "rouge"),
}
TRANSITIVE = {
    "sees": ("see", "voit"),
    "eats": ("eat", "mange"),
    "wants": ("want", "veut"),
    "finds": ("find", "trouve"),
    "washes": ("wash", "lave"),
}
INTRANSITIVE = {"sleeps": ("sleep", "dort"), "dances": ("dance", "danse")}
VERBS = TRANSITIVE | INTRANSITIVE
ARTICLES = {"the": ("le", "la"), "a": ("un", "une")}

Pair = tuple[str, str]
"""An adjective and its noun, in English."""


@dataclass(frozen=True)
class Translation:
    """French words; for each the English words it depends on; the adjective-noun pairs."""

    french: tuple[str, ...]
    alignment: tuple[tuple[int, ...], ...]
    pairs: tuple[Pair, ...]


def is_held_out_pair(pair: Pair) -> bool:
    """One pair in eight is never trained on, though both of its words are, in other pairs."""
    adjective, noun = pair
    return (3 * list(ADJECTIVES).index(adjective) + list(NOUNS).index(noun)) % 8 == 4


def random_sentence(rng: random.Random) -> str:
    words = _random_noun_phrase(rng)
    verb = rng.choice(list(VERBS))
    words += ["does", "not", VERBS[verb][0]] if rng.random() < 0.5 else [verb]
    if verb in TRANSITIVE:
        words += _random_noun_phrase(rng)
    return " ".join(words)


def translate(words: Sequence[str]) -> Translation | None:
    """The translation by the rules, or None for a sentence outside the grammar."""
    writer = _Translator(words)
    whole = writer.noun_phrase(negated=False) and writer.verb_phrase()
    if not whole or writer.place != len(words):
        return None
    return Translation(tuple(writer.french), tuple(writer.alignment), tuple(writer.pairs))


def english_words() -> set[str]:
    stems = {stem for stem, _ in VERBS.values()}
    return {*NOUNS, *ADJECTIVES, *VERBS, *stems, *ARTICLES, "does", "not"}


def french_words() -> set[str]:
    bent = {word for forms in (*ADJECTIVES.values(), *ARTICLES.values()) for word in forms}
    return {*bent, "de", "ne", "pas", *(noun for noun, _ in NOUNS.values()),
            *(verb for _, verb in VERBS.values())}  # fmt: skip


def _random_noun_phrase(rng: random.Random) -> list[str]:
    adjective = [rng.choice(list(ADJECTIVES))] if rng.random() < 0.6 else []
    return [rng.choice(list(ARTICLES)), *adjective, rng.choice(list(NOUNS))]


class _Translator:
    """Reads English from left to right and writes French along the way."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.place = 0
        self.french: list[str] = []
        self.alignment: list[tuple[int, ...]] = []
        self.pairs: list[Pair] = []

    def noun_phrase(self, negated: bool) -> bool:
        """Translate an article, perhaps an adjective, and a noun. False for other words."""
        article = self.next_of(ARTICLES)
        adjective = self.next_of(ADJECTIVES)
        noun = self.next_of(NOUNS)
        if article is None or noun is None:
            return False
        french, gender = NOUNS[self.words[noun]]
        feminine = gender == "f"
        if negated and self.words[article] == "a":
            self.write("de", article)
        else:
            self.write(ARTICLES[self.words[article]][feminine], article, noun)
        self.write(french, noun)
        if adjective is not None:
            self.write(ADJECTIVES[self.words[adjective]][feminine], adjective)
            self.pairs.append((self.words[adjective], self.words[noun]))
        return True

    def verb_phrase(self) -> bool:
        """Translate a verb, or `does not` and its stem, then the object of a transitive verb."""
        negated = self.next_of({"does"}) is not None
        negator = self.next_of({"not"})
        forms = {(stem if negated else name): name for name, (stem, _) in VERBS.items()}
        verb = self.next_of(forms)
        if negated != (negator is not None) or verb is None:
            return False
        name = forms[self.words[verb]]
        if negator is not None:
            self.write("ne", negator - 1, negator)
        self.write(VERBS[name][1], verb)
        if negator is not None:
            self.write("pas", negator - 1, negator)
        return name in INTRANSITIVE or self.noun_phrase(negated)

    def next_of(self, words: Collection[str]) -> int | None:
        """Read the next word if it is one of these; returns its place."""
        if self.place == len(self.words) or self.words[self.place] not in words:
            return None
        self.place += 1
        return self.place - 1

    def write(self, word: str, *sources: int) -> None:
        self.french.append(word)
        self.alignment.append(sources)
