"""The engine for sentencepiece models, each read by the library that made it.

The families number the same pieces differently and put different tokens around a text:
`Numbering` has these differences.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentencepiece import SentencePieceProcessor

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import (
    declared_tokens,
    extra_count,
    extra_tokens,
    source_language,
    token_text,
)
from explorer.text.published.engine import WORD_START, EncodedToken, Engine, SpecialTokens
from explorer.text.published.mbart_languages import MBART, MBART_50
from explorer.text.published.tokenizer_families import Roles
from explorer.text.published.tokenizer_files import Files, file_bytes, json_object
from explorer.text.visible_text import readable

Around = tuple[int | str, ...]
FAIRSEQ = {
    "XLMRoberta": (("<s>", "<pad>", "</s>", "<unk>"), 1, ()),
    "MBart": (("<s>", "<pad>", "</s>", "<unk>"), 1, MBART),
    "MBart50": (("<s>", "<pad>", "</s>", "<unk>"), 1, MBART_50),
    "Camembert": (("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>"), 4, ()),
}
"""The first tokens, the shift of the pieces' IDs, and the languages at the end."""

LARGEST_ID = 4_000_000


@dataclass
class Numbering:
    """Pieces to token IDs and back. `single` and `pair` have the tokens around `$A` and `$B`.

    `shift` is added to the model's own IDs. Where the family has a vocabulary of its own,
    `listed` replaces them, and `target_pieces` has the pieces of the target language.
    """

    processor: SentencePieceProcessor
    special: SpecialTokens = field(default_factory=lambda: SpecialTokens({}, {}))
    unknown: int = 0
    size: int = 0
    single: Around = ("$A",)
    pair: Around = ("$A", "$B")
    shift: int = 0
    listed: Mapping[str, int] | None = None
    target_pieces: Mapping[int, str] | None = None

    def family_id(self, piece: str, token_id: int) -> int:
        """The family's token ID of a piece to which the model gives this one."""
        if self.listed is not None:
            return self.listed.get(piece, self.unknown)
        return self.unknown if token_id == self.processor.unk_id() else token_id + self.shift

    def piece_of(self, token_id: int) -> str | None:
        """The piece of a token ID; None where there is none."""
        if self.target_pieces is not None:
            return self.target_pieces.get(token_id)
        if token_id == self.unknown:
            token_id = self.processor.unk_id() + self.shift
        if not 0 <= token_id - self.shift < self.processor.get_piece_size():
            return None
        piece: str = self.processor.id_to_piece(token_id - self.shift)
        return piece

    def id_of_piece(self, piece: str) -> int | None:
        """The token ID of a piece; None if it is not in the vocabulary."""
        if self.listed is not None:
            return self.listed.get(piece)
        token_id = self.processor.piece_to_id(piece)
        is_known = self.processor.id_to_piece(token_id) == piece
        return self.family_id(piece, token_id) if is_known else None

    def id_of_code(self, code: str) -> int:
        return (self.listed or {}).get(code, self.unknown)

    def code_at_start(self, text: str) -> str | None:
        """The language that a Marian text may name before it begins: `>>fr<<`."""
        if self.listed is None or not text.startswith(">>") or "<<" not in text:
            return None
        return text[: text.index("<<") + 2]


def numbering_of(
    files: Files,
    way: str,
    settings: Mapping[str, Any],
    roles: Roles,
    processor: SentencePieceProcessor,
) -> Numbering:
    """The numbering of a kind of tokenizer; TextError where it is not known."""
    if "source.spm" in files:
        return _marian(files, roles, processor)
    makers = {"T5": _t5, "Llama": _llama, "Gemma": _llama} | dict.fromkeys(FAIRSEQ, _fairseq)
    if way not in makers:
        named = way[:40] or "this family"
        raise TextError(f"a sentencepiece model as {named} reads it is not known here.")
    numbering = makers[way](processor, way, settings, roles)
    special = filter(None, map(token_text, extra_tokens(settings)))
    added = [
        (token_id, token["content"], token["special"])
        for token_id, token in declared_tokens(files, settings, (), special)
    ]
    following = iter(range(numbering.size, LARGEST_ID))
    beyond = [
        text
        for token_id, text, special in sorted(added)
        if (not special and not _is_own(processor, numbering, token_id, text))
        or (token_id >= numbering.size and token_id != next(following))
    ]
    if beyond:
        raise TextError(
            f"{beyond[0][:40]!r} was added to its vocabulary, and only a tokenizer.json says how "
            "that is read; save the folder anew, so that it has one."
        )
    texts = dict(numbering.special.texts)
    for token_id, text, special in added:
        if special and token_id < LARGEST_ID and token_id not in texts:
            texts[token_id] = text
    numbering.special = SpecialTokens(numbering.special.roles, texts)
    numbering.size = max([numbering.size - 1, *texts]) + 1
    return numbering


def _is_own(
    processor: SentencePieceProcessor, numbering: Numbering, token_id: int, text: str
) -> bool:
    """Whether an added token is one that the model finds in texts before all others."""
    number = token_id - numbering.shift
    return (
        0 <= number < processor.get_piece_size()
        and processor.id_to_piece(number) == text
        and processor.get_score(number) == 0
    )


def _marian(files: Files, roles: Roles, processor: SentencePieceProcessor) -> Numbering:
    """Token IDs from vocab.json; what is not in it is unknown. `</s>` ends a text."""
    listed = _id_list(files, "vocab.json")
    target = _id_list(files, "target_vocab.json") if "target_vocab.json" in files else listed
    special = SpecialTokens.of(roles, listed, {})
    end, unknown = special.roles.get("eos"), special.roles.get("unk")
    if end is None or unknown is None:
        raise TextError("vocab.json has no </s> or no <unk>.")
    return Numbering(
        processor,
        special,
        unknown,
        max(listed.values()) + 1,
        ("$A", end),
        ("$A", "$B", end),
        listed=listed,
        target_pieces={token_id: piece for piece, token_id in target.items()},
    )


def _id_list(files: Files, name: str) -> dict[str, int]:
    listed = json_object(files, name)
    for token_id in listed.values():
        if type(token_id) is not int or not 0 <= token_id < LARGEST_ID:
            raise TextError(f"a token of {name} has no usable ID.")
    if not listed:
        raise TextError(f"{name} is empty.")
    return listed


def _fairseq(
    processor: SentencePieceProcessor, way: str, settings: Mapping[str, Any], roles: Roles
) -> Numbering:
    """XLM-R and relatives: four tokens, then the pieces, then languages and the mask."""
    front, shift, codes = FAIRSEQ[way]
    beyond = processor.get_piece_size() + shift
    ids = {text: processor.piece_to_id(text) + shift for text in ("<s>", "</s>")}
    ids |= {text: token_id for token_id, text in enumerate(front)}
    ids |= {code: beyond + place for place, code in enumerate(codes)}
    ids["<mask>"] = beyond + len(codes)
    special = SpecialTokens.of(roles, ids, {token_id: text for text, token_id in ids.items()})
    start, end = ids["<s>"], ids["</s>"]
    single: Around = (start, "$A", end)
    pair: Around = (start, "$A", end, end, "$B", end)
    if codes:
        code = ids[source_language(settings, codes)]
        around = ((code,), (end,)) if way == "MBart50" else ((), (end, code))
        single = (*around[0], "$A", *around[1])
        pair = (*around[0], "$A", "$B", *around[1])
    size = max(ids.values()) + 1
    return Numbering(processor, special, ids["<unk>"], size, single, pair, shift)


def _t5(
    processor: SentencePieceProcessor, way: str, settings: Mapping[str, Any], roles: Roles
) -> Numbering:
    """The model's own IDs, then the sentinel tokens, the last one first."""
    pieces = processor.get_piece_size()
    extra = extra_count(settings)
    places = {pieces + extra - 1 - place: f"<extra_id_{place}>" for place in range(extra)}
    ids = _controls(processor, roles)
    special = SpecialTokens.of(
        roles, ids, {token_id: text for text, token_id in ids.items()} | places
    )
    end = special.roles.get("eos")
    if end is None:
        raise TextError("its model has no </s>.")
    return Numbering(
        processor,
        special,
        processor.unk_id(),
        pieces + extra,
        ("$A", end),
        ("$A", end, "$B", end),
    )


def _llama(
    processor: SentencePieceProcessor, way: str, settings: Mapping[str, Any], roles: Roles
) -> Numbering:
    """The model's own IDs, and the ends around each text that the settings ask for."""
    ids = _controls(processor, roles)
    special = SpecialTokens.of(roles, ids, {token_id: text for text, token_id in ids.items()})
    around: list[Around] = []
    for role in ("bos", "eos"):
        token_id = special.roles.get(role)
        is_added = token_id is not None and settings.get(f"add_{role}_token") is True
        around.append((token_id,) if is_added and token_id is not None else ())
    before, after = around
    return Numbering(
        processor,
        special,
        processor.unk_id(),
        processor.get_piece_size(),
        (*before, "$A", *after),
        (*before, "$A", *after, *before, "$B", *after),
    )


def _controls(processor: SentencePieceProcessor, roles: Roles) -> dict[str, int]:
    """The control pieces, which no text contains, and the pieces with a role."""
    everything = range(processor.get_piece_size())
    ids = {processor.id_to_piece(n): n for n in everything if processor.is_control(n)}
    for text in roles.values():
        token_id = processor.piece_to_id(text)
        if token_id >= 0 and processor.id_to_piece(token_id) == text:
            ids[text] = token_id
    return ids


def piece_engine(
    files: Files, way: str, settings: Mapping[str, Any], roles: Roles
) -> "PieceEngine":
    """The engine for the sentencepiece files that are there."""
    name = next(name for name in files if name.endswith((".spm", ".model")))
    source = _processor(files, name)
    target = _processor(files, "target.spm") if "target.spm" in files else source
    return PieceEngine(source, target, numbering_of(files, way, settings, roles, source))


class PieceEngine(Engine):
    """A sentencepiece model with the token IDs and the template of one family."""

    def __init__(
        self, source: SentencePieceProcessor, target: SentencePieceProcessor, numbering: Numbering
    ) -> None:
        super().__init__("sentencepiece", numbering.size, numbering.special)
        self._source, self._target, self._numbering = source, target, numbering
        self._mask_id = self.special.roles.get("mask")
        self._mask = None if self._mask_id is None else self.special.texts[self._mask_id]

    def normalized(self, text: str) -> str:
        return str(self._source.normalize(text))

    def around(self, text: str, pair: str | None) -> list[EncodedToken]:
        tokens = list[EncodedToken]()
        for item in self._numbering.single if pair is None else self._numbering.pair:
            if isinstance(item, int):
                tokens.append(EncodedToken(item))
            else:
                of = 0 if item == "$A" else 1
                tokens += self._tokens_of(pair or "" if of else text, of)
        return tokens

    def plain(self, text: str) -> list[EncodedToken]:
        return self._tokens_of(text, 0)

    def prompt(self, text: str) -> list[EncodedToken]:
        ids = {special: token_id for token_id, special in self.special.texts.items() if special}
        ways = "|".join(re.escape(special) for special in sorted(ids, key=len, reverse=True))
        tokens, at = list[EncodedToken](), 0
        for match in re.finditer(ways, text) if ways else ():
            tokens += self._pieces(text[at : match.start()], at, 0)
            tokens.append(EncodedToken(ids[match.group()], *match.span(), 0))
            at = match.end()
        return tokens + self._pieces(text[at:], at, 0)

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._numbering.piece_of(i) for i in ids if i not in self.special_ids]
        decoded: str = self._target.decode([piece for piece in pieces if piece is not None])
        if WORD_START in decoded:  # in a piece that only the family's list knows
            return decoded.replace(WORD_START, " ").strip()
        return decoded

    def piece_label(self, token_id: int) -> str | None:
        piece = self._numbering.piece_of(token_id)
        return None if piece is None else readable(piece.replace(WORD_START, " "))

    def piece_id(self, entry: str) -> int | None:
        return self._numbering.id_of_piece(entry)

    def _tokens_of(self, text: str, of: int) -> list[EncodedToken]:
        """The tokens of a text; a typed mask is special, any other typed special token is not."""
        tokens, at = list[EncodedToken](), 0
        if (code := self._numbering.code_at_start(text)) is not None:
            at = len(code)
            tokens.append(EncodedToken(self._numbering.id_of_code(code), 0, at, of))
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
        encoding = self._source.encode(text, return_type="offset_mapping")
        pieces = encoding["pieces"]
        columns = pieces, encoding["ids"], whole_spans(pieces, encoding["offsets"])
        tokens = []
        for piece, number, (start, end) in zip(*columns, strict=True):
            token_id = self._numbering.family_id(piece, number)
            if token_id in self.special_ids:
                token_id = self._numbering.unknown
            tokens.append(EncodedToken(token_id, at + start, at + end, of))
        return tokens


def whole_spans(pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans, where every piece of one character spans all of it.

    Where a character becomes several pieces (its bytes, or the two letters of a ligature), the
    library gives its span to the last piece and an empty span to the others.
    """
    return [
        (start, end + 1) if start == end and piece != WORD_START else (start, end)
        for piece, (start, end) in zip(pieces, spans, strict=True)
    ]


def _processor(files: Files, name: str) -> SentencePieceProcessor:
    stored = file_bytes(files, name)
    if stored[:1] == b"\x80":
        raise TextError(f"{name} is a pickle, which could run code; it is not read.")
    try:
        processor = SentencePieceProcessor(model_proto=stored)
        pieces = processor.get_piece_size()
    except Exception as error:
        raise TextError(f"{name} is not a sentencepiece model.") from error
    if not pieces:
        raise TextError(f"{name} is empty.")
    return processor
