"""The tokenizer of a published folder, as the app uses it: a child process does all the work."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from explorer.text.checked_text import MAX_CHARACTERS, TextError, checked
from explorer.text.published.engine import steps_from_json
from explorer.text.published.process import CHILDREN, ChildError
from explorer.text.published.tokenizer_files import TokenizerFiles, copy_files, find_tokenizer
from explorer.text.token import BOS, EOS, PAD, Token, TokenizerStep

READING_SECONDS = 0.9
LABELS_KEPT = 100_000
LARGEST_ASKED_ID = 10_000_000
NO_PROMPT = "The chat template of this model cannot be used"
NO_STEPS = "Steps are shown of plain text; this sentence is a chat prompt with special tokens."


def open_published(folder: Path, family: str) -> "PublishedTokenizer":
    """The tokenizer of the folder of a model of this family; TextError says why not."""
    return PublishedTokenizer(find_tokenizer(Path(folder), family))


class PublishedTokenizer:
    """A stranger's tokenizer, with the interface of `AnyTokenizer`.

    Safe for threads. `form` names the files it comes from.
    """

    def __init__(self, source: TokenizerFiles) -> None:
        self._source = source
        self.reads_special = False
        try:
            with CHILDREN.child(source) as child:
                facts: dict[str, Any] = child.facts
        except ChildError as error:
            way_out = "" if ";" in str(error) else "; fetch its files anew"
            raise TextError(f"The tokenizer cannot be opened: {error}{way_out}.") from None
        self.form = " + ".join(source.form)
        self.kind: str = facts["kind"]
        self.vocab_size: int = facts["vocab_size"]
        self.lowercase: bool = facts["lowercase"]
        self.special_ids: frozenset[int] = frozenset(facts["special_ids"])
        roles: dict[str, int | None] = facts["roles"]
        self.pad_id = roles.get("pad")
        self.bos_id = roles.get("bos")
        self.eos_id = roles.get("eos")
        self.unk_id = roles.get("unk")
        self.cls_id = roles.get("cls")
        self.sep_id = roles.get("sep")
        self.mask_id = roles.get("mask")
        self._labels: dict[int, str] = {}
        self._stepped: tuple[str, tuple[TokenizerStep, ...]] = ("", ())

    def copy_to(self, folder: Path) -> None:
        """Write the files that it was read from; TextError where they have changed."""
        copy_files(self._source, folder)

    def id_of(self, entry: str) -> int:
        found = self._ask({"do": "id", "entry": checked(entry)})["id"]
        if found is None:
            raise TextError(f"The vocabulary has no {entry[:40]!r}.")
        return int(found)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        """The tokens the model reads for this text or pair of texts."""
        return tuple(Token(*row) for row in self._encoded(text, pair))

    def reading_prompts(self) -> "PublishedTokenizer":
        """The same tokenizer, which reads the special tokens that are written in a text.

        It adds none around the text, since a chat prompt has its own.
        """
        found = copy(self)
        found.reads_special, found._stepped = True, ("", ())
        return found

    def render(
        self, template: str, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool
    ) -> str:
        """The chat prompt of these messages, by a stranger's Jinja template.

        It is rendered in the child process. TextError says in a sentence why there is none.
        """
        request = {
            "do": "render",
            "template": template,
            "messages": [{k: checked(v) for k, v in each.items()} for each in messages],
            "generation": add_generation_prompt,
        }
        try:
            with CHILDREN.child(self._source) as child:
                return str(child.ask(request, READING_SECONDS)["text"])
        except ChildError as error:
            raise TextError(f"{NO_PROMPT}: {error}; send the plain text instead.") from None

    def ids(self, text: str, pair: str | None = None) -> list[int]:
        return [token.id for token in self.encode(text, pair)]

    def steps(self, text: str) -> tuple[TokenizerStep, ...]:
        """Every step from the typed text to `encode`; those of the last text are cached."""
        if self.reads_special:
            raise TextError(NO_STEPS)
        kept, found = self._stepped
        if kept != text or not found:
            found = steps_from_json(self._ask({"do": "steps", "text": checked(text)}))
            self._stepped = (text, found)
        return found

    def decode(self, ids: list[int]) -> str:
        """The text of these tokens, in the target language where there are two vocabularies."""
        return str(self._ask({"do": "decode", "ids": _numbers(ids)})["text"])

    def label(self, token_id: int) -> str:
        """How to show a token; an ID that the vocabulary does not use is `<50300>`."""
        return self.labels([token_id])[0]

    def labels(self, ids: Sequence[int]) -> list[str]:
        """Many labels in one request."""
        ids = _numbers(ids)
        shown = {token_id: self._labels.get(token_id) for token_id in ids}
        unknown = [token_id for token_id, label in shown.items() if label is None]
        if unknown:
            found = self._ask({"do": "labels", "ids": unknown})["labels"]
            shown.update(zip(unknown, found, strict=True))
            if len(self._labels) > LABELS_KEPT:
                self._labels = {}
            self._labels.update(zip(unknown, found, strict=True))
        return [shown[token_id] or "" for token_id in ids]

    def token(self, token_id: int) -> Token:
        return Token(token_id, self.label(token_id), special=token_id in self.special_ids)

    def _encoded(self, text: str, pair: str | None) -> list[list[Any]]:
        request = {"do": "encode", "text": checked(text), "pair": pair and checked(pair)}
        if self.reads_special and pair is None:
            request["do"] = "prompt"
        tokens: list[list[Any]] = self._ask(request)["tokens"]
        return tokens

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            with CHILDREN.child(self._source) as child:
                answer: dict[str, Any] = child.ask(request, READING_SECONDS)
        except ChildError as error:
            way_out = "" if ";" in str(error) else "; try another one"
            raise TextError(f"The tokenizer cannot read this text: {error}{way_out}.") from None
        return answer


def _numbers(ids: Sequence[int]) -> list[int]:
    ids = [int(token_id) for token_id in ids]
    for token_id in ids:
        if not 0 <= token_id < LARGEST_ASKED_ID:
            raise TextError(f"Token {token_id} is in no vocabulary.")
    return ids


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
        for some in _requests(texts):
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


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
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
