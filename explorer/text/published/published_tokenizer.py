"""The tokenizer of a published folder, as the app uses it: a child process does all the work."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any

from explorer.text.checked_text import MAX_CHARACTERS, TextError, checked
from explorer.text.published.engine import steps_from_json
from explorer.text.published.process import CHILDREN, ChildError
from explorer.text.published.tokenizer_files import TokenizerFiles, find_tokenizer, open_files
from explorer.text.token import BOS, EOS, PAD, AnyTokenizer, Token, TokenizerStep

READING_SECONDS = 0.9
LABELS_KEPT = 100_000
LARGEST_ASKED_ID = 10_000_000
NO_PROMPT = "The chat template of this model cannot be used"


def open_published(folder: Path, family: str) -> "PublishedTokenizer":
    """The tokenizer of the folder of a model of this family; TextError says why not."""
    return PublishedTokenizer(find_tokenizer(Path(folder), family))


class PublishedTokenizer(AnyTokenizer):
    """A published tokenizer.

    Several threads may use it at once. `form` names its files, `unfollowed` the settings that
    are not followed.
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
        self.kind = facts["kind"]
        self.unfollowed: tuple[str, ...] = tuple(facts["unfollowed"])
        self.vocab_size = facts["vocab_size"]
        self.lowercase = facts["lowercase"]
        self.special_ids = frozenset(facts["special_ids"])
        role: Callable[[str], int | None] = facts["roles"].get
        self.pad_id, self.bos_id, self.eos_id = role("pad"), role("bos"), role("eos")
        self.unk_id, self.cls_id, self.sep_id = role("unk"), role("cls"), role("sep")
        self.mask_id = role("mask")
        self._labels: dict[int, str] = {}
        self._stepped: tuple[str, tuple[TokenizerStep, ...]] = ("", ())

    def copy_to(self, folder: Path) -> None:
        """Write the files that it was read from; TextError where they have changed."""
        with open_files(self._source) as descriptors:
            for name, number in descriptors.items():
                with open(os.dup(number), "rb") as file:
                    (folder / name).write_bytes(file.read())

    def id_of(self, entry: str) -> int:
        token_id = self._ask({"do": "id", "entry": checked(entry)})["id"]
        if token_id is None:
            raise TextError(f"The vocabulary has no {entry[:40]!r}.")
        return int(token_id)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        request = {"do": "encode", "text": checked(text), "pair": pair and checked(pair)}
        if self.reads_special and pair is None:
            request["do"] = "prompt"
        return tuple(Token(*row) for row in self._ask(request)["tokens"])

    def reading_prompts(self) -> "PublishedTokenizer":
        """The same tokenizer, but it reads special tokens that are written in a text.

        It adds none around the text, since a chat prompt has its own.
        """
        tokenizer = copy(self)
        tokenizer.reads_special, tokenizer._stepped = True, ("", ())
        return tokenizer

    def render(
        self, template: str, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool
    ) -> str:
        """The chat prompt of these messages, rendered from a Jinja template.

        The child process renders it. TextError says in a sentence why there is none.
        """
        request = {
            "do": "render",
            "template": template,
            "messages": [{k: checked(v) for k, v in message.items()} for message in messages],
            "generation": add_generation_prompt,
        }
        try:
            with CHILDREN.child(self._source) as child:
                return str(child.ask(request, READING_SECONDS)["text"])
        except ChildError as error:
            raise TextError(f"{NO_PROMPT}: {error}; send the plain text instead.") from None

    def steps(self, text: str) -> tuple[TokenizerStep, ...]:
        """Every step from the typed text to `encode`; those of the last text are cached."""
        text_before, steps = self._stepped
        if text_before != text or not steps:
            steps = steps_from_json(self._ask({"do": "steps", "text": checked(text)}))
            self._stepped = (text, steps)
        return steps

    def decode(self, ids: list[int]) -> str:
        """The text of these tokens; with two vocabularies, that of the target language."""
        return str(self._ask({"do": "decode", "ids": _numbers(ids)})["text"])

    def label(self, token_id: int) -> str:
        return self.labels([token_id])[0]

    def labels(self, ids: Sequence[int]) -> list[str]:
        """Many labels in one request."""
        ids = _numbers(ids)
        labels = {token_id: self._labels.get(token_id) for token_id in ids}
        unknown = [token_id for token_id, label in labels.items() if label is None]
        if unknown:
            answer = self._ask({"do": "labels", "ids": unknown})["labels"]
            labels.update(zip(unknown, answer, strict=True))
            if len(self._labels) > LABELS_KEPT:
                self._labels = {}
            self._labels.update(zip(unknown, answer, strict=True))
        return [labels[token_id] or "" for token_id in ids]

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
    """A published tokenizer with the methods that training needs."""

    _specials: Mapping[str, int]

    @abstractmethod
    def to_json(self) -> str | None:
        """The tokenizer.json to store with a model; None where its own files are stored."""

    def id_of(self, entry: str) -> int:
        """The ID of an entry; that of a special token needs no request."""
        token_id = self._specials.get(entry)
        return super().id_of(entry) if token_id is None else token_id

    def many_ids(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """The IDs of each of many texts, with the special tokens around them or without."""
        ids: list[list[int]] = []
        for some in _requests(texts):
            ids += self._ask({"do": "ids", "texts": some, "special": special})["ids"]
        return ids

    def corpus_ids(self, text: str) -> list[int]:
        """The IDs of a long text to train on, without special tokens; tokenized part by part."""
        return [*chain.from_iterable(self.many_ids(list(_parts(text)), special=False))]


class ParentTokenizer(TrainingTokenizer):
    """The tokenizer of a published model that is trained further; it reads as that model does.

    `specials` are the model's IDs for `<pad>`, `<s>` and the like.
    """

    def __init__(self, published: PublishedTokenizer, specials: Mapping[str, int]) -> None:
        super().__init__(published._source)
        self._specials = specials

    def __eq__(self, other: object) -> bool:
        """Whether it reads the same files in the same way; a task is then made only once."""
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
        """None: its files are stored as they are."""


NAMED = {PAD: "padding", BOS: "the beginning of a text", EOS: "the end of a text"}


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups, one for each request: the child has a second for a request."""
    some: list[str] = []
    for text in texts:
        if some and sum(map(len, some)) + len(text) > MAX_CHARACTERS:
            yield some
            some = []
        some.append(checked(text))
    if some:
        yield some


def _parts(text: str) -> Iterator[str]:
    """The text in parts that fit into one request, cut after lines where possible."""
    while text:
        cut = text.rfind("\n", 0, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
        cut = len(text) if len(text) <= MAX_CHARACTERS else cut
        yield text[:cut]
        text = text[cut:]
