"""The engine for sentencepiece models, each read by the library that made it.

The families number the same pieces differently and put different tokens around
a text; that is all that is written here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sentencepiece

from explorer.text.checked_text import TextError
from explorer.text.labels import readable
from explorer.text.published.child_wire import (
    EncodedToken,
    SpecialTokens,
    StepCollector,
    prompt_parts,
    short_label,
    to_wire,
    unused_label,
)
from explorer.text.published.numbering import Numbering, numbering_of
from explorer.text.published.roles import Roles
from explorer.text.published.tokenizer_files import Files, file_bytes
from explorer.text.token import TYPED

WORD_START = "▁"


def piece_engine(
    files: Files, way: str, settings: Mapping[str, Any], roles: Roles
) -> "PieceEngine":
    """The engine for the sentencepiece files that are there."""
    name = next(name for name in files if name.endswith((".spm", ".model")))
    source = _processor(files, name)
    target = _processor(files, "target.spm") if "target.spm" in files else source
    return PieceEngine(source, target, numbering_of(files, way, settings, roles, source))


class PieceEngine:
    """A sentencepiece model with the token IDs and the template of one family."""

    def __init__(
        self,
        source: sentencepiece.SentencePieceProcessor,
        target: sentencepiece.SentencePieceProcessor,
        numbering: Numbering,
    ) -> None:
        self._source, self._target = source, target
        self._numbering = numbering
        self._special: SpecialTokens = numbering.special
        self._special_ids = self._special.ids
        mask = self._special.roles.get("mask")
        self._mask_id = mask
        self._mask = None if mask is None else self._special.texts[mask]

    @property
    def special(self) -> SpecialTokens:
        return self._special

    def facts(self) -> dict[str, Any]:
        lowered = self._source.normalize("A")
        return {
            "kind": "sentencepiece",
            "vocab_size": self._numbering.size,
            "lowercase": "a" in lowered and "A" not in lowered,
            "roles": dict(self._special.roles),
            "special_ids": sorted(self._special_ids),
        }

    def encode(self, text: str, pair: str | None) -> dict[str, Any]:
        tokens: list[EncodedToken] = []
        around = self._numbering.single if pair is None else self._numbering.pair
        for item in around:
            if isinstance(item, int):
                tokens.append(EncodedToken(item))
            else:
                of = 0 if item == "$A" else 1
                tokens += self._typed(pair or "" if of else text, of)
        return to_wire(tokens, [text, pair or ""], self, self._special)

    def many_ids(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        def ids(text: str) -> list[int]:
            return [each.id for each in self._typed(text, 0)]

        return [self.encode(text, None)["ids"] if special else ids(text) for text in texts]

    def encode_prompt(self, text: str) -> dict[str, Any]:
        tokens = list[EncodedToken]()
        for start, end, special in prompt_parts(text, self._special, {}):
            if special is not None:
                tokens.append(EncodedToken(special, start, end, 0))
            else:
                tokens += self._pieces(text[start:end], start, 0)
        return to_wire(tokens, [text], self, self._special, self._special_ids)

    def steps(self, text: str) -> dict[str, Any]:
        """The library does not say how it cuts: the text, its pieces, and what is read."""
        found = StepCollector(text)
        found.add(TYPED, [(readable(text), 0, len(text), None, False)])
        spoken = to_wire(self._typed(text, 0), [text], self, self._special)
        found.tokens("Cut into the pieces that sentencepiece finds.", spoken)
        return found.answer(self.encode(text, None))

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._numbering.written(number) for number in ids if self._is_text(number)]
        decoded: str = self._target.decode([piece for piece in pieces if piece is not None])
        if WORD_START in decoded:  # in a piece that only the family's list knows
            return decoded.replace(WORD_START, " ").strip()
        return decoded

    def label(self, token_id: int) -> str:
        special = self._special.texts.get(token_id)
        if special is not None:
            return short_label(readable(special))
        piece = self._numbering.written(token_id)
        if piece is None:
            return unused_label(token_id)
        return short_label(readable(piece.replace(WORD_START, " ")))

    def id_of(self, entry: str) -> int | None:
        for number, text in self._special.texts.items():
            if text == entry:
                return number
        return self._numbering.id_of_piece(entry)

    def _is_text(self, number: int) -> bool:
        return number not in self._special_ids

    def _typed(self, text: str, of: int) -> list[EncodedToken]:
        """The tokens of a text; a mask that was typed is one, any other special token is not."""
        code = self._numbering.code_at_start(text)
        tokens = (
            []
            if code is None
            else [EncodedToken(self._numbering.id_of_code(code), 0, len(code), of)]
        )
        at = len(code or "")
        parts = text[at:].split(self._mask) if self._mask else [text[at:]]
        for index, part in enumerate(parts):
            if index and self._mask and self._mask_id is not None:
                tokens.append(EncodedToken(self._mask_id, at, at + len(self._mask), of))
                at += len(self._mask)
            tokens += self._pieces(part, at, of)
            at += len(part)
        return tokens

    def _pieces(self, text: str, at: int, of: int) -> list[EncodedToken]:
        if not text:
            return []
        made = self._source.encode(text, return_type="offset_mapping")
        spans = whole_spans(made["pieces"], made["offsets"])
        tokens = []
        for piece, number, (start, end) in zip(made["pieces"], made["ids"], spans, strict=True):
            token_id = self._numbering.typed(piece, number)
            if token_id in self._special_ids:
                token_id = self._numbering.unknown
            tokens.append(EncodedToken(token_id, at + start, at + end, of))
        return tokens


def whole_spans(pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans with every part of a character over all of it.

    The library puts a character that became several pieces (its bytes, or the two
    letters of a ligature) on the last of them and leaves the others empty.
    """
    return [
        (start, end + 1) if start == end and piece != WORD_START else (start, end)
        for piece, (start, end) in zip(pieces, spans, strict=True)
    ]


def _processor(files: Files, name: str) -> sentencepiece.SentencePieceProcessor:
    stored = file_bytes(files, name)
    if stored[:1] == b"\x80":
        raise TextError(f"{name} is a pickle, which could run code; it is not read.")
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=stored)
        pieces = processor.get_piece_size()
    except Exception as error:
        raise TextError(f"{name} is not a sentencepiece model.") from error
    if not pieces:
        raise TextError(f"{name} is empty.")
    return processor
