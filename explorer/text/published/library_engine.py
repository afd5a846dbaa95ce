"""The engine for everything the `tokenizers` library reads."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import tokenizers

from explorer.text.checked_text import TextError
from explorer.text.published.engine import WORD_START, EncodedToken, Engine, SpecialTokens
from explorer.text.published.tokenizer_families import Roles
from explorer.text.published.tokenizer_json import check_bounds, model_type, prepare_json
from explorer.text.visible_text import byte_alphabet, bytes_of, readable, readable_bytes

_LIBRARY_KINDS = {"WordPiece": "wordpiece", "Unigram": "sentencepiece", "WordLevel": "words"}


class LibraryEngine(Engine):
    """A tokenizer of the library.

    `merge_list` is as in its file; `added` has all added tokens, `found` those that a typed text
    may have, by the library's IDs; the entries of those in `renamed` have other texts there.
    """

    def __init__(self, stored: dict[str, Any], roles: Roles, more: frozenset[str]) -> None:
        check_bounds(stored)
        kind, self.merge_list = _kind(stored), stored["model"].get("merges") or []
        added, renamed, special_texts = prepare_json(stored, roles, more)
        try:
            self.library = tokenizers.Tokenizer.from_str(json.dumps(stored))
        except Exception as error:
            raise TextError("it does not describe a tokenizer.") from error
        self.library.encode_special_tokens = True
        self.library.no_padding()
        self.library.no_truncation()
        self.added = {number: text for text, number in added.items()}
        decoder: dict[int, tokenizers.AddedToken] = self.library.get_added_tokens_decoder()
        self.found = {number: t.content for number, t in decoder.items() if not t.special}
        self.renamed = frozenset(renamed.values())
        pairs = ((self.library.token_to_id(text), n) for text, n in added.items())
        self._number = {own: number for own, number in pairs if own is not None}
        vocabulary = stored["model"]["vocab"]
        listed = isinstance(vocabulary, list)
        pieces = {p[0]: i for i, p in enumerate(vocabulary)} if listed else vocabulary
        ids = {text: pieces[new] for new, text in renamed.items()}
        ids |= {text: pieces[text] for text in roles.values() if text in pieces} | added
        texts = {ids[text]: text for text in special_texts if text in ids}
        special = SpecialTokens.of(roles, ids, texts)
        super().__init__(kind, max([*pieces.values(), *self.added]) + 1, special)

    def normalized(self, text: str) -> str:
        normalizer = self.library.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def around(self, text: str, pair: str | None) -> list[EncodedToken]:
        return self._tokens_of(self.library.encode(text, pair))

    def plain(self, text: str) -> list[EncodedToken]:
        return self._tokens_of(self.library.encode(text, add_special_tokens=False))

    def prompt(self, text: str) -> list[EncodedToken]:
        self.library.encode_special_tokens = False
        try:
            return self.plain(text)
        finally:
            self.library.encode_special_tokens = True

    def decode(self, ids: Sequence[int]) -> str:
        own = {number: own for own, number in self._number.items()}
        plain_ids = [own.get(number, number) for number in ids if number not in self.special_ids]
        return str(self.library.decode(plain_ids, skip_special_tokens=False))

    def piece_label(self, token_id: int) -> str | None:
        if token_id in self.added:
            return readable(self.added[token_id])
        token = self.library.id_to_token(token_id) if token_id < self.size else None
        return None if token is None else self.token_label(token)

    def token_label(self, token: str) -> str:
        """The label of a token of the model, or of letters before any merge."""
        if self.kind == "bytes" and byte_alphabet().keys() >= set(token):
            return readable_bytes(bytes_of(token))
        if self.kind == "sentencepiece":
            token = token.replace(WORD_START, " ")
        return readable(token)

    def piece_id(self, entry: str) -> int | None:
        token_id = self.library.token_to_id(entry)
        return None if token_id is None else self._number.get(token_id, int(token_id))

    def _tokens_of(self, encoding: tokenizers.Encoding) -> list[EncodedToken]:
        columns = (
            [self._number.get(token_id, token_id) for token_id in encoding.ids],
            encoding.offsets,
            encoding.special_tokens_mask,
            encoding.sequence_ids,
            encoding.type_ids,
        )
        return [
            EncodedToken(token_id, *span, of=None if special else of or 0, segment=segment)
            for token_id, span, special, of, segment in zip(*columns, strict=True)
        ]


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
