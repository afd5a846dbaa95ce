"""A stranger's tokenizer for training: many texts at once, and the special tokens of a batch."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from explorer.text.checked_text import MAX_CHARACTERS, TextError, checked
from explorer.text.published.published_tokenizer import PublishedTokenizer
from explorer.text.special import BOS, EOS, PAD


class TrainingTokenizer(PublishedTokenizer):
    """A published tokenizer with what a task asks of one besides."""

    _specials: Mapping[str, int]

    @abstractmethod
    def to_json(self) -> str | None:
        """The tokenizer.json to write beside a model; None where its own files stand there."""

    def id_of(self, entry: str) -> int:
        """At once where a batch needs it: of a special token."""
        found = self._specials.get(entry)
        return super().id_of(entry) if found is None else found

    def many_ids(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """The IDs of each of many texts, with the special tokens around them or without."""
        found: list[list[int]] = []
        for some in _together(texts):
            found += self._ask({"do": "ids", "texts": some, "special": special})["ids"]
        return found

    def target_ids(self, text: str) -> list[int]:
        """What the decoder of an encoder-decoder writes: `<s> … </s>` around the text."""
        return [self.id_of(BOS), *self.many_ids([text], special=False)[0], self.id_of(EOS)]

    def corpus_ids(self, text: str) -> list[int]:
        """A long text to train on, without special tokens; tokenized in parts that end in lines."""
        return [each for ids in self.many_ids(list(_parts(text)), special=False) for each in ids]


class ParentTokenizer(TrainingTokenizer):
    """The tokenizer of a published model that is trained on: it reads as that model always did.

    `specials` are the IDs that this model has for `<pad>`, `<s>` and the like.
    """

    def __init__(self, published: PublishedTokenizer, specials: Mapping[str, int]) -> None:
        super().__init__(published._source)
        self._specials = specials

    def __eq__(self, other: object) -> bool:
        """Whether it reads the same files in the same way, so a task is made of it once."""
        if not isinstance(other, ParentTokenizer):
            return NotImplemented
        return (self._source, self._specials) == (other._source, other._specials)

    def __hash__(self) -> int:
        return hash(self._source)

    def id_of(self, entry: str) -> int:
        if entry in NAMED and entry not in self._specials:
            raise TextError(
                f"The model has no token for {NAMED[entry]}: choose another one to start from."
            )
        return super().id_of(entry)

    def to_json(self) -> None:
        """Nothing to write: its files are kept as they are."""


NAMED = {PAD: "padding", BOS: "the beginning of a text", EOS: "the end of a text"}


def _together(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts for one request each: the child has a second for it."""
    some: list[str] = []
    for text in texts:
        if some and sum(map(len, some)) + len(text) > MAX_CHARACTERS:
            yield some
            some = []
        some.append(checked(text))
    if some:
        yield some


def _parts(text: str) -> Iterator[str]:
    """The text in parts that can be tokenized at once, cut after lines where there are any."""
    while text:
        cut = text.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
        cut = len(text) if len(text) <= MAX_CHARACTERS else cut
        yield text[:cut]
        text = text[cut:]
