"""The engine for everything the `tokenizers` library reads."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import tokenizers

from explorer.text.checked_text import TextError
from explorer.text.labels import byte_alphabet, bytes_of, readable, readable_bytes
from explorer.text.published.child_wire import (
    EncodedToken,
    SpecialTokens,
    prompt_parts,
    short_label,
    special_tokens,
    to_wire,
    unused_label,
)
from explorer.text.published.roles import Roles
from explorer.text.published.steps import MOST_UNITS, LibrarySteps
from explorer.text.published.tokenizer_json import check_bounds, model_type, prepare_json

WORD_START = "▁"
_LIBRARY_KINDS = {"WordPiece": "wordpiece", "Unigram": "sentencepiece", "WordLevel": "words"}


class LibraryEngine:
    """A tokenizer of the library with labels, spans in the typed text and special tokens."""

    def __init__(
        self,
        stored: dict[str, Any],
        roles: Roles,
        more: frozenset[str],
        most_units: int = MOST_UNITS,
    ) -> None:
        check_bounds(stored)
        self._kind = _kind(stored)
        merge_list = stored["model"].get("merges")
        prepared = prepare_json(stored, roles, more)
        text = json.dumps(prepared.stored)
        try:
            library = tokenizers.Tokenizer.from_str(text)
        except Exception as error:
            raise TextError("it does not describe a tokenizer.") from error
        library.encode_special_tokens = True
        library.no_padding()
        library.no_truncation()
        self._library = library
        added = {token_id: token.content for token_id, token in _added(library).items()}
        ids = {text: token_id for token_id, text in added.items()} | prepared.renamed
        for name in roles.values():
            found = library.token_to_id(name)
            if name not in ids and found is not None:
                ids[name] = found
        texts = {ids[text]: text for text in prepared.special if text in ids}
        self._special: SpecialTokens = special_tokens(roles, ids, texts)
        self._special_ids = self._special.ids
        self._added, self._strips = added, prepared.strips
        vocabulary = prepared.stored["model"]["vocab"]
        largest = len(vocabulary) - 1 if isinstance(vocabulary, list) else max(vocabulary.values())
        self._size = max([largest, *added]) + 1
        self._steps = LibrarySteps(
            self, library, self._kind, merge_list, prepared.renamed, most_units
        )

    @property
    def special(self) -> SpecialTokens:
        return self._special

    def facts(self) -> dict[str, Any]:
        normalizer = self._library.normalizer
        lowered = normalizer.normalize_str("A") if normalizer is not None else "A"
        return {
            "kind": self._kind,
            "vocab_size": self._size,
            "lowercase": "a" in lowered and "A" not in lowered,
            "roles": dict(self._special.roles),
            "special_ids": sorted(self._special_ids),
        }

    def encode(self, text: str, pair: str | None) -> dict[str, Any]:
        return self._wired(self._library.encode(text, pair), text, pair)

    def many_ids(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        encode = self._library.encode
        return [encode(text, add_special_tokens=special).ids for text in texts]

    def encode_prompt(self, text: str) -> dict[str, Any]:
        tokens = list[EncodedToken]()
        for start, end, special in prompt_parts(text, self._special, self._strips):
            if special is not None:
                tokens.append(EncodedToken(special, start, end, 0))
                continue
            read = self._library.encode(text[start:end], add_special_tokens=False)
            tokens += [
                EncodedToken(token_id, start + span[0], start + span[1], 0)
                for token_id, span in zip(read.ids, read.offsets, strict=True)
            ]
        return to_wire(tokens, [text], self, self._special, self._special_ids)

    def spoken(self, text: str) -> dict[str, Any]:
        """The tokens of the text without those around it."""
        return self._wired(self._library.encode(text, add_special_tokens=False), text)

    def steps(self, text: str) -> dict[str, Any]:
        return self._steps.of(text)

    def _wired(
        self, read: tokenizers.Encoding, text: str, pair: str | None = None
    ) -> dict[str, Any]:
        tokens = [
            EncodedToken(token_id, *span, of=None if special else of or 0, segment=segment)
            for token_id, span, special, of, segment in zip(
                read.ids,
                read.offsets,
                read.special_tokens_mask,
                read.sequence_ids,
                read.type_ids,
                strict=True,
            )
        ]
        return to_wire(tokens, [text, pair or ""], self, self._special)

    def decode(self, ids: Sequence[int]) -> str:
        kept = [token_id for token_id in ids if token_id not in self._special_ids]
        return str(self._library.decode(kept, skip_special_tokens=False))

    def label(self, token_id: int) -> str:
        special = self._special.texts.get(token_id)
        if special is not None:
            return short_label(readable(special))
        token = self._library.id_to_token(token_id)
        if token is None:
            return unused_label(token_id)
        if token_id in self._added:
            return short_label(readable(token))
        return short_label(self.written(token))

    def written(self, token: str) -> str:
        """How to show a token of the model, or what is not one yet."""
        if self._kind == "bytes" and byte_alphabet().keys() >= set(token):
            return readable_bytes(bytes_of(token))
        if self._kind == "sentencepiece":
            token = token.replace(WORD_START, " ")
        return readable(token)

    def id_of(self, entry: str) -> int | None:
        for token_id, text in self._special.texts.items():
            if text == entry:
                return token_id
        found = self._library.token_to_id(entry)
        return None if found is None else int(found)


def _added(library: tokenizers.Tokenizer) -> dict[int, tokenizers.AddedToken]:
    found: dict[int, tokenizers.AddedToken] = library.get_added_tokens_decoder()
    return found


def _kind(stored: dict[str, Any]) -> str:
    """What a token is: "bytes", "sentencepiece", "characters", "wordpiece", "words" or "pieces"."""
    parts = list(_parts([stored.get(n) for n in ("normalizer", "pre_tokenizer", "decoder")]))
    model = model_type(stored["model"])
    types = {part.get("type") for part in parts if isinstance(part.get("type"), str)}
    if "ByteLevel" in types:
        return "bytes"
    if "Metaspace" in types or any(WORD_START in part.values() for part in parts):
        return "sentencepiece"
    if model == "WordLevel" and "Split" in types:
        return "characters"
    return _LIBRARY_KINDS.get(model, "pieces")


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in it; the depth was checked."""
    if isinstance(value, dict):
        yield {key: inner for key, inner in value.items() if isinstance(inner, str)}
    inner_values = value.values() if isinstance(value, dict) else value
    for inner in inner_values:
        if isinstance(inner, (dict, list)):
            yield from _parts(inner)
