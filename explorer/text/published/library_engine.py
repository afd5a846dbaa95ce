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
    """A tokenizer of the library; `merge_list` as in its file, `renamed` as in `PreparedJson`."""

    def __init__(self, stored: dict[str, Any], roles: Roles, more: frozenset[str]) -> None:
        check_bounds(stored)
        kind, self.merge_list = _kind(stored), stored["model"].get("merges") or []
        prepared = prepare_json(stored, roles, more)
        try:
            self.library = tokenizers.Tokenizer.from_str(json.dumps(prepared.stored))
        except Exception as error:
            raise TextError("it does not describe a tokenizer.") from error
        self.library.encode_special_tokens = True
        self.library.no_padding()
        self.library.no_truncation()
        decoder: dict[int, tokenizers.AddedToken] = self.library.get_added_tokens_decoder()
        self.added = {token_id: token.content for token_id, token in decoder.items()}
        self.renamed = frozenset(prepared.renamed)
        ids = {text: token_id for token_id, text in self.added.items()} | prepared.renamed
        for name in roles.values():
            token_id = self.library.token_to_id(name)
            if name not in ids and token_id is not None:
                ids[name] = token_id
        texts = {ids[text]: text for text in prepared.special if text in ids}
        vocabulary = prepared.stored["model"]["vocab"]
        largest = len(vocabulary) - 1 if isinstance(vocabulary, list) else max(vocabulary.values())
        special = SpecialTokens.of(roles, ids, texts, prepared.strips)
        super().__init__(kind, max([largest, *self.added]) + 1, special)

    def normalized(self, text: str) -> str:
        normalizer = self.library.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def around(self, text: str, pair: str | None) -> list[EncodedToken]:
        return _tokens_of(self.library.encode(text, pair))

    def plain(self, text: str) -> list[EncodedToken]:
        return _tokens_of(self.library.encode(text, add_special_tokens=False))

    def part(self, text: str, at: int) -> list[EncodedToken]:
        encoding = self.library.encode(text, add_special_tokens=False)
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        return [EncodedToken(i, at + start, at + end, 0) for i, (start, end) in spans]

    def decode(self, ids: Sequence[int]) -> str:
        plain_ids = [token_id for token_id in ids if token_id not in self.special_ids]
        return str(self.library.decode(plain_ids, skip_special_tokens=False))

    def piece_label(self, token_id: int) -> str | None:
        token = self.library.id_to_token(token_id)
        if token is None:
            return None
        return readable(token) if token_id in self.added else self.token_label(token)

    def token_label(self, token: str) -> str:
        """The label of a token of the model, or of letters before any merge."""
        if self.kind == "bytes" and byte_alphabet().keys() >= set(token):
            return readable_bytes(bytes_of(token))
        if self.kind == "sentencepiece":
            token = token.replace(WORD_START, " ")
        return readable(token)

    def piece_id(self, entry: str) -> int | None:
        token_id = self.library.token_to_id(entry)
        return None if token_id is None else int(token_id)


def _tokens_of(encoding: tokenizers.Encoding) -> list[EncodedToken]:
    columns = (
        encoding.ids,
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
