"""A sentencepiece model without a tokenizer.json, as the reference reads it.

The reference does not read it with the library that made it: it takes its pieces and its table
of characters, and builds a tokenizer anew.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from sentencepiece import sentencepiece_model_pb2

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import (
    AddedToken,
    Settings,
    declared_tokens,
    extra_count,
    token_text,
)
from explorer.text.published.rebuilt_parts import BYTES_BACK, LISTED, SPACES, SPACES_BACK, Part
from explorer.text.published.tokenizer_families import (
    MBART,
    MBART_50,
    Roles,
    complete,
    reading_of,
    rebuilt_class,
    special_roles,
)
from explorer.text.published.tokenizer_files import Files, parsed_piece_model

_FORMS: Mapping[str, tuple[str | None, ...]] = {
    "tokenizer.model": ("Llama", "Gemma", None),
    "spiece.model": ("T5", "Pegasus"),
    "sentencepiece.bpe.model": ("XLMRoberta", "Camembert", "MBart", "MBart50"),
}
"""The kinds that look for a file of this name; None is the reference's general class."""
_UNIGRAM, _CONTROL, _USER_DEFINED = 1, 3, 4
LONGEST_PIECE, MOST_LETTERS = 512, 8_000_000
"""Bounds of the pieces that merges are made from, in letters: time grows with them."""
_OFFSET = 103
"""The tokens of Pegasus before those of its model."""
Pieces = list[list[Any]]


def piece_file(files: Files, family: str, settings: Settings) -> tuple[Part, Roles]:
    """The tokenizer.json that the reference builds of the model, and the roles of its tokens."""
    name = next(name for name in files if name.endswith(".model"))
    kind = rebuilt_class(family, settings, {})
    if kind not in _FORMS[name]:
        named = (kind or reading_of(family, settings))[:40] or "this family"
        raise TextError(
            f"{name} as {named} reads it is not known here; correct the tokenizer_class in "
            "tokenizer_config.json."
        )
    proto = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
    model = parsed_piece_model(files, name, proto.FromString)
    if not model.pieces:
        raise TextError(f"{name} is empty.")
    trained = model.trainer_spec
    if kind is None:  # whose tokens are the model's own
        own = {
            f"{role}_token": getattr(trained, f"{role}_piece") or usual
            for role, usual in (("bos", "<s>"), ("eos", "</s>"), ("unk", "<unk>"))
            if getattr(trained, f"{role}_id") >= 0
        }
        settings = {**own, **settings}
    roles = special_roles(kind or "", settings)
    pieces: Pieces = [[piece.piece, piece.score] for piece in model.pieces]
    table = model.normalizer_spec.precompiled_charsmap
    encoded = {"type": "Precompiled", "precompiled_charsmap": b64encode(table).decode()}
    if kind in LISTED or (kind is None and trained.model_type == _UNIGRAM):
        vocabulary: Part = {"vocab": _numbered(kind, settings, roles, pieces)}
    else:
        vocabulary = {"vocab": {piece: number for number, (piece, _) in enumerate(pieces)}}
        vocabulary["merges"] = _merges(vocabulary["vocab"], name)
    stored: Part = {"model": vocabulary, "normalizer": encoded if table else None}
    if kind is None:
        _rename(vocabulary["vocab"], files, settings, roles)
        stored |= _general_parts(stored, trained)
    added: list[AddedToken] = [
        {"content": piece.piece, "normalized": False, "special": piece.type == _CONTROL}
        for piece in model.pieces
        if piece.type in (_CONTROL, _USER_DEFINED)
    ]
    return complete(files, kind, settings, roles, stored, None, added), roles


def _numbered(kind: str | None, settings: Settings, roles: Roles, pieces: Pieces) -> Pieces:
    """The pieces in the order of the kind's token IDs, with the tokens that its model lacks."""
    front: Sequence[str]
    back: Sequence[str] = ()

    def of(*names: str) -> list[str]:
        return [roles.get(role, "None") for role in names]  # as the reference writes null

    match kind:
        case "T5":
            front, kept = (), pieces
            back = [f"<extra_id_{place}>" for place in reversed(range(extra_count(settings)))]
        case "Camembert":
            pad, unknown = of("pad", "unk")
            front = ["<s>NOTUSED", pad, "</s>NOTUSED", unknown]
            kept, back = [["<unk>NOTUSED", -100.0], *pieces[1:]], of("mask")
        case "Pegasus":
            mask = token_text(settings.get("mask_token", "<mask_1>")) or "None"
            masks = [text for text in dict.fromkeys([mask, "<mask_2>"]) if text != "None"]
            unused = [[f"<unk_{place}>", -100.0] for place in range(2, _OFFSET)]
            front, kept = [*of("pad", "eos"), *masks], [*unused, *pieces[2:]]
        case "XLMRoberta" | "MBart" | "MBart50":
            front = of("cls" if kind == "MBart50" else "bos", "pad", "eos", "unk")
            codes = {"MBart": MBART, "MBart50": MBART_50}.get(kind, ())
            kept, back = pieces[3:], [*codes, *of("mask")]
        case _:
            front, kept = (), pieces
    return [*([text, 0.0] for text in front), *kept, *([text, 0.0] for text in back)]


def _merges(ids: Mapping[str, int], name: str) -> list[list[str]]:
    """Every pair of pieces that makes a third, in the order of the third's ID."""
    if sum(map(len, ids)) > MOST_LETTERS or max(map(len, ids)) > LONGEST_PIECE:
        raise TextError(f"{name} has more or longer pieces than any vocabulary.")
    return [
        [left, right]
        for piece in sorted(ids, key=ids.__getitem__)
        for at in range(1, len(piece))
        if (left := piece[:at]) in ids and (right := piece[at:]) in ids
    ]


def _rename(vocabulary: Any, files: Files, settings: Settings, roles: Roles) -> None:
    """Give pieces the texts that the settings declare for their IDs, as the general class does."""
    if isinstance(vocabulary, dict):
        by_id = {number: piece for piece, number in vocabulary.items()}
        for number, token in declared_tokens(files, settings, (), roles.values()):
            text = token["content"]
            if number in by_id and text not in vocabulary:
                vocabulary[text] = vocabulary.pop(by_id[number])
                by_id[number] = text


def _general_parts(stored: Part, trained: Any) -> Part:
    bytes_back = BYTES_BACK if trained.byte_fallback else ()
    table = [stored["normalizer"]] if stored["normalizer"] else []
    more: Part = {"type": "Unigram", "unk_id": trained.unk_id}
    if isinstance(stored["model"]["vocab"], dict):
        more = {"type": "BPE", "unk_token": trained.unk_piece, "fuse_unk": True, "dropout": None}
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*table, SPACES]},
        "decoder": {"type": "Sequence", "decoders": [SPACES_BACK, *bytes_back]},
        "model": {**more, "byte_fallback": trained.byte_fallback, **stored["model"]},
    }
