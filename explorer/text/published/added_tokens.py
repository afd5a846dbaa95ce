"""The tokens that are found in a text before it is cut: which, with which ID and options.

A folder names them in up to four files, and the reference gathers them in a fixed order. A token
that the vocabulary lacks gets the next free ID, whatever the files say.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.tokenizer_files import Files, json_object

LONGEST_SPECIAL = 1_000
MOST_EXTRA = 10_000
FLAGS = ("single_word", "lstrip", "rstrip")
LISTS = ("extra_special_tokens", "additional_special_tokens")
NAMED = "model_specific_special_tokens"
Settings = Mapping[str, Any]
AddedToken = dict[str, Any]
"""An added token as tokenizer.json has it, without its ID until it is known."""


def all_settings(files: Files) -> dict[str, Any]:
    """tokenizer_config.json, and what special_tokens_map.json says in its place.

    The second is read only where the first does not list the added tokens.
    """
    settings = json_object(files, "tokenizer_config.json")
    extra, older = LISTS
    if older in settings and not settings.get(extra):
        settings[extra] = settings[older]
    if "added_tokens_decoder" not in settings:
        special = json_object(files, "special_tokens_map.json")
        for name, value in special.items():
            if name == extra and isinstance(value, list):
                value = [*_listed(settings.get(extra)), *value]
            elif isinstance(value, dict) and name != extra:
                value = {**value, "special": True}
            settings[name] = value
    if older in settings and extra not in settings and not any(n.endswith(".model") for n in files):
        settings[extra] = settings[older]  # the tokens of a sentencepiece model replace them
    return settings


def token_text(token: Any) -> str | None:
    """The text of a special token as the files write it: plain, or with its options."""
    text = token.get("content") if isinstance(token, dict) else token
    if text is None or text == "":
        return None
    if not isinstance(text, str) or len(text) > LONGEST_SPECIAL:
        raise TextError("a special token in its settings is not a short text.")
    return text


def token_of(token: Any, *, special: bool) -> AddedToken | None:
    """A token as the files write it, with all of its options; None where there is none.

    `special`: whether one without options is.
    """
    if (text := token_text(token)) is None:
        return None
    options: Mapping[str, Any] = token if isinstance(token, dict) else {"special": special}
    is_special = options.get("special") is True
    flags = {name: options.get(name) is True for name in FLAGS}
    normalized = options.get("normalized", not is_special) is True
    return {"content": text, **flags, "normalized": normalized, "special": is_special}


def named_tokens(settings: Settings, roles: Iterable[str]) -> dict[str, Any]:
    """Special tokens with a name of their own, as a chat template calls them: `boi_token`."""
    usual = {f"{role}_token" for role in roles}
    named = {name: token for name, token in settings.items() if name.endswith("_token")}
    for name in (NAMED, LISTS[0]):
        more = settings.get(name)
        named |= more if isinstance(more, dict) else {}
    return {
        name: token
        for name, token in named.items()
        if name not in usual and isinstance(token, (str, dict)) and token_text(token)
    }


def extra_tokens(settings: Settings) -> list[Any]:
    """Special tokens without a name."""
    return [token for token in _listed(settings.get(LISTS[0])) if token_text(token)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def extra_count(settings: Settings) -> int:
    """How many tokens `<extra_id_0>`, `<extra_id_1>` … T5 has."""
    count = settings.get("extra_ids", 100)
    if type(count) is not int or not 0 <= count <= MOST_EXTRA:
        raise TextError(f"extra_ids in its settings is not a number up to {MOST_EXTRA:,}.")
    return count


def source_language(settings: Settings, known: Container[str]) -> str:
    """The language of the text, one of those with a token."""
    language = settings.get("src_lang") or "en_XX"
    if not isinstance(language, str) or language not in known:
        raise TextError("src_lang in its settings is none of its languages.")
    return language


def declared_tokens(
    files: Files, settings: Settings, own: Sequence[AddedToken], special: Iterable[str]
) -> list[tuple[int, AddedToken]]:
    """The tokens that the files give an ID, in the order of these.

    `own` are those of tokenizer.json; texts in `special` are special.
    """
    numbered: dict[int, AddedToken | None] = {}
    if isinstance(declared := settings.get("added_tokens_decoder"), dict):
        for number, token in declared.items():
            if str(number).isdecimal() and len(str(number)) < 9:
                numbered[int(number)] = token_of(token, special=False)
    else:
        texts = frozenset(special)
        for text, number in json_object(files, "added_tokens.json").items():
            if type(number) is int and 0 <= number < 10**8:
                numbered[number] = token_of(text, special=text in texts)
        numbered |= {token["id"]: token_of(token, special=False) for token in own}
    return [(number, token) for number, token in sorted(numbered.items()) if token is not None]


def gathered(
    declared: Sequence[AddedToken],
    named: Iterable[Any],
    extra: Iterable[Any],
    own: Sequence[AddedToken],
    vocabulary: Mapping[str, int],
) -> Iterator[AddedToken]:
    """All added tokens with their IDs, as the reference adds them to those that it has (`own`).

    `declared` comes first, then the tokens with a name, then others.
    """
    by_text = {token["content"]: token for token in declared}
    known = {token["content"]: token for token in own}
    ids = {text: token["id"] for text, token in known.items()}
    usual = {text: token_of(token, special=False) for text, token in known.items()}
    waiting = [token for text, token in by_text.items() if token != usual.get(text)]
    texts, seen, names = {*known, *by_text}, set[str](), set[str]()
    for some, has_name in ((named, True), (extra, False)):
        for token in some:
            if (one := token_of(token, special=True)) is None:
                continue
            text = one["content"]
            if has_name:
                names.add(text)
            written = json.dumps(token, sort_keys=True)
            if text not in texts and written not in seen:
                waiting.append(one)
                seen.add(written)
    following = max(max(ids.values(), default=-1) + 1, len(vocabulary))
    for token in waiting:
        text = token["content"]
        if text not in ids:
            ids[text] = vocabulary.get(text, following)
            following = max(following, ids[text] + 1)
        is_special = token["special"] or text in names
        known[text] = {**token, "id": ids[text], "special": is_special}
    yield from known.values()
