"""A published tokenizer for a model that is trained here, with the special tokens it needs.

The app stores the published tokenizer.json with two changes: our models' `<pad>`, start and end
tokens are added to the vocabulary unless it has them, and they replace the tokens around a text.
It is opened as every published tokenizer is: in a process of its own.
"""

import json
from functools import lru_cache
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.published_tokenizer import TrainingTokenizer
from explorer.text.published.tokenizer_files import TokenizerText
from explorer.text.token import BOS, CLS, EOS, PAD, SPECIALS, Reads
from explorer.text.tokenizer import Tokenizer, special_entry, template_of

MOST_ADOPTED_TOKENS = 60_000
"""Every token is a row of the trained embedding."""
LARGEST = 12_000_000
"""Characters of the file, which is stored with every snapshot."""
UNREADABLE_TOKENIZER = "The tokenizer file is not readable JSON: choose another one."
ROLES = {PAD: "pad", BOS: "bos", EOS: "eos", CLS: "cls"}


def adopted_json(text: str, reads: Reads) -> str:
    """A tokenizer.json with the special tokens of `reads`; TextError says why there is none.

    Only the IDs of its tokens are used here; the child process checks the rest.
    """
    stored = _parse(text)
    model = stored["model"]
    entries, added = model.get("vocab"), stored.get("added_tokens") or []
    try:
        names = [entry[0] for entry in entries] if isinstance(entries, list) else None
        ids = {name: at for at, name in enumerate(names)} if names else dict(entries)
        ids |= {str(token["content"]): token["id"] for token in added}
        following = max(ids.values()) + 1
        # The library numbers added tokens by their place, which a gap in the vocabulary shifts.
        is_whole = names is None and all(token["content"] in entries for token in added)
        added = [token for token in added if token["content"] not in SPECIALS[reads]]
        for name in SPECIALS[reads]:
            if name not in ids:
                ids[name], following = following, following + 1
            if is_whole:
                entries[name] = ids[name]
            added.append(special_entry(name, ids[name]))
        added.sort(key=lambda token: int(token["id"]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise TextError("The tokenizer file does not describe a tokenizer.") from None
    if following > MOST_ADOPTED_TOKENS:
        raise TextError(
            f"This tokenizer has {following:,} tokens; at most {MOST_ADOPTED_TOKENS:,} are "
            "trained with here, so choose another one."
        )
    around = {
        name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in reads if name != "$A"
    }
    both = [{"Sequence": {"id": side, "type_id": at}} for at, side in enumerate("AB")]
    stored |= {
        "added_tokens": added,
        "padding": None,
        "truncation": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template_of(reads),
            "pair": both,
            "special_tokens": around,
        },
    }
    return json.dumps(stored, ensure_ascii=False)


def is_adopted(text: str) -> bool:
    """Whether `adopted_json` may have written it: our special tokens are around a text."""
    try:
        return bool(_reads_of(_parse(text)))
    except TextError:
        return False


class AdoptedTokenizer(TrainingTokenizer):
    """The tokenizer that `adopted_json` wrote, with the methods that training needs."""

    def __init__(self, text: str) -> None:
        stored = _parse(text)
        reads = _reads_of(stored)
        if reads is None:
            raise TextError("The tokenizer file lacks the special tokens of a model made here.")
        self._text = text
        roles = {f"{ROLES[name]}_token": name for name in SPECIALS[reads]}
        if unknown := _unknown(stored["model"]):
            roles["unk_token"] = unknown
        super().__init__(TokenizerText.of(text, json.dumps(roles)))
        added = {token["content"]: token["id"] for token in stored["added_tokens"]}
        self._specials: dict[str, int] = {}
        ids = {name: self.id_of(name) for name in SPECIALS[reads]}
        entries = stored["model"]["vocab"]
        pieces = {entry[0] for entry in entries} if isinstance(entries, list) else entries
        beyond = [number for text, number in added.items() if text not in pieces]
        if beyond != [*range(len(pieces), len(pieces) + len(beyond))]:
            raise TextError(
                "The tokens of this tokenizer are not numbered one after another, so none can be "
                "added: choose another one."
            )
        self._specials = ids

    def to_json(self) -> str:
        """The tokenizer.json that it was opened from."""
        return self._text


def _parse(text: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise TextError(
            f"The tokenizer file has {len(text):,} characters; at most {LARGEST:,} are stored with "
            "a run, so choose another one."
        )
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        raise TextError(UNREADABLE_TOKENIZER) from None
    if not isinstance(stored, dict) or not isinstance(stored.get("model"), dict):
        raise TextError("The tokenizer file cannot be used: it has no model.")
    return stored


def _reads_of(stored: dict[str, Any]) -> Reads | None:
    """The special tokens around a text, if they are those of a model made here; else None."""
    processor, added = stored.get("post_processor"), stored.get("added_tokens")
    if not isinstance(processor, dict) or not isinstance(added, list):
        return None
    names = {token.get("content") for token in added if isinstance(token, dict)}
    for reads, specials in SPECIALS.items():
        if processor.get("single") == template_of(reads) and names >= set(specials):
            return reads
    return None


def _unknown(model: dict[str, Any]) -> str | None:
    entries, at = model.get("vocab"), model.get("unk_id")
    if isinstance(entries, list) and isinstance(at, int) and 0 <= at < len(entries):
        return str(entries[at][0])
    named = model.get("unk_token")
    return named if isinstance(named, str) and named else None


TrainedWith = Tokenizer | TrainingTokenizer
ENGINES_KEPT = 16


@lru_cache(maxsize=ENGINES_KEPT)
def trained_with(text: str) -> TrainedWith:
    """The tokenizer that `to_json` of either class wrote; TextError for anything else."""
    try:
        return Tokenizer.from_json(text)
    except TextError:
        if not is_adopted(text):
            raise
        return AdoptedTokenizer(text)


def adopted(text: str, reads: Reads) -> TrainedWith:
    """The tokenizer of any tokenizer.json, with the special tokens of `reads`; else TextError."""
    try:
        own = Tokenizer.from_json(text)
        if all(own.library.token_to_id(name) is not None for name in SPECIALS[reads]):
            return own
    except TextError:
        pass  # it was not made here
    return trained_with(adopted_json(text, reads))
