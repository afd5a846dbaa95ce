"""The engine for Marian, whose two sentencepiece models the library that made them reads."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sentencepiece import SentencePieceProcessor

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import Settings, declared_tokens
from explorer.text.published.engine import WORD_START, EncodedToken, Engine, SpecialTokens
from explorer.text.published.tokenizer_families import Roles
from explorer.text.published.tokenizer_files import Files, json_object, parsed_piece_model
from explorer.text.visible_text import readable

LARGEST_ID = 4_000_000
SIDES = ("source", "target")


class MarianEngine(Engine):
    """The pieces of the source language, by the numbers in vocab.json; `</s>` ends a text.

    A piece that has no number is unknown. `target_pieces` has the pieces of the target language.
    """

    def __init__(self, files: Files, settings: Settings, roles: Roles) -> None:
        self._source, self._target = (_processor(files, f"{side}.spm") for side in SIDES)
        self._ids = _id_list(files, "vocab.json")
        target = _id_list(files, "target_vocab.json") if "target_vocab.json" in files else self._ids
        self._target_pieces = {token_id: piece for piece, token_id in target.items()}
        declared = declared_tokens(files, settings, (), roles.values())
        added = {token["content"]: number for number, token in declared}
        _check_ids(added.values(), "its settings")
        taken = {number: text for text, number in self._ids.items()}
        if any(taken.get(number, text) != text for text, number in added.items()):
            raise TextError("a token that was added has the ID of another one in vocab.json.")
        more = {number: token["content"] for number, token in declared if token["special"]}
        special = SpecialTokens.of(roles, self._ids, more)
        end, unknown = special.roles.get("eos"), special.roles.get("unk")
        if end is None or unknown is None:
            raise TextError("vocab.json has no </s> or no <unk>.")
        self._end, self._unknown = end, unknown
        self._found = {text: number for number, text in special.texts.items() if text}
        self._found |= added
        numbers = [*self._ids.values(), *self._found.values()]
        super().__init__("sentencepiece", max(numbers) + 1, special)

    def normalized(self, text: str) -> str:
        return str(self._source.normalize(text))

    def around(self, text: str, pair: str | None) -> list[EncodedToken]:
        second = [] if pair is None else self._tokens_of(pair, 0, 1)
        return [*self.plain(text), *second, EncodedToken(self._end)]

    def plain(self, text: str) -> list[EncodedToken]:
        return self._tokens_of(text, 0, 0)

    def prompt(self, text: str) -> list[EncodedToken]:
        ways = "|".join(map(re.escape, sorted(self._found, key=len, reverse=True)))
        tokens, at = list[EncodedToken](), 0
        for match in re.finditer(ways, text):
            tokens += self._tokens_of(text[at : match.start()], at, 0)
            tokens.append(EncodedToken(self._found[match.group()], *match.span(), 0))
            at = match.end()
        return tokens + self._tokens_of(text[at:], at, 0)

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._target_pieces.get(i) for i in ids if i not in self.special_ids]
        decoded: str = self._target.decode([piece for piece in pieces if piece is not None])
        if WORD_START in decoded:  # in a piece that only vocab.json knows
            return decoded.replace(WORD_START, " ").strip()
        return decoded

    def piece_label(self, token_id: int) -> str | None:
        piece = self._target_pieces.get(token_id)
        return None if piece is None else readable(piece.replace(WORD_START, " "))

    def piece_id(self, entry: str) -> int | None:
        return self._ids.get(entry)

    def _tokens_of(self, text: str, at: int, of: int) -> list[EncodedToken]:
        """The tokens of a text, which may name a language first: `>>fr<<`."""
        tokens = list[EncodedToken]()
        if text.startswith(">>") and "<<" in text:
            code, text = text[: text.index("<<") + 2], text[text.index("<<") + 2 :]
            tokens.append(EncodedToken(self._id(code), at, at + len(code), of))
            at += len(code)
        encoding = self._source.encode(text, return_type="offset_mapping")
        for piece, (start, end) in zip(encoding["pieces"], encoding["offsets"], strict=True):
            # Of a character that becomes several pieces (its bytes, or the two letters of a
            # ligature), the library gives all but the last an empty span: each spans all of it.
            end += start == end and piece != WORD_START
            tokens.append(EncodedToken(self._id(piece), at + start, at + end, of))
        return tokens

    def _id(self, piece: str) -> int:
        """The token ID of a typed piece, which is no special token."""
        token_id = self._ids.get(piece, self._unknown)
        return self._unknown if token_id in self.special_ids else token_id


def _check_ids(ids: Iterable[Any], name: str) -> None:
    if not all(type(token_id) is int and 0 <= token_id < LARGEST_ID for token_id in ids):
        raise TextError(f"a token of {name} has no usable ID.")


def _id_list(files: Files, name: str) -> dict[str, int]:
    listed = json_object(files, name)
    _check_ids(listed.values(), name)
    if not listed:
        raise TextError(f"{name} is empty.")
    return listed


def _processor(files: Files, name: str) -> SentencePieceProcessor:
    processor = parsed_piece_model(
        files, name, lambda stored: SentencePieceProcessor(model_proto=stored)
    )
    if not processor.get_piece_size():
        raise TextError(f"{name} is empty.")
    return processor
