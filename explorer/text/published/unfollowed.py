"""The settings of a tokenizer that are not followed here, by their names."""

from collections.abc import Iterator
from typing import Any

from explorer.text.published.added_tokens import (
    FLAGS,
    LISTS,
    NAMED,
    Settings,
    extra_tokens,
    token_text,
)
from explorer.text.published.engine import Engine
from explorer.text.published.library_engine import LibraryEngine
from explorer.text.published.tokenizer_families import FAMILIES, MBART_50, known_class, reading_of

FOLLOWED = frozenset(
    f"add_bos_token add_eos_token added_tokens_decoder additional_special_tokens {NAMED} "
    "extra_special_tokens extra_ids src_lang chat_template do_lower_case strip_accents "
    "tokenize_chinese_chars do_basic_tokenize never_split add_prefix_space legacy "
    "trim_offsets".split()
)
WITHOUT_EFFECT = frozenset(
    "auto_map backend errors from_slow is_fast is_local local_files_only max_len max_length "
    "merges_file model_input_names model_max_length name_or_path pad_to_multiple_of "
    "pad_token_type_id padding_side processor_class remove_space keep_accents response_schema "
    "response_template separate_vocabs source_lang spaces_between_special_tokens "
    "special_tokens_map_file stride target_lang tgt_lang tokenizer_file truncation_side "
    "truncation_strategy use_default_system_prompt use_fast "
    "verbose vocab_file tokenizer_type unk_id".split()
)
"""Settings that change no token of a text, here as in the reference library."""
NEUTRAL: tuple[Any, ...] = (None, False, 0, "", [], {})
MOST, LONGEST = 50, 200
"""Names that are told, and characters of each."""


def unfollowed(settings: Settings, family: str, engine: Engine) -> list[str]:
    """The names of the settings that would have an effect and have none, in their order."""
    names = [*_unfollowed(settings, reading_of(family, settings), engine)]
    if not isinstance(engine, LibraryEngine):
        names += _unfollowed_of_marian(settings, family)
    return [name[:LONGEST] for name in dict.fromkeys(names)][:MOST]


def _unfollowed_of_marian(settings: Settings, family: str) -> Iterator[str]:
    """What the reference reads of Marian's settings and `MarianEngine` does not."""
    if reading_of(family, settings) != FAMILIES.get(family):
        yield "tokenizer_class"
    declared = settings.get("added_tokens_decoder")
    tokens = declared.values() if isinstance(declared, dict) else []
    if any(isinstance(token, dict) and any(map(token.get, FLAGS)) for token in tokens):
        yield "added_tokens_decoder"


def _unfollowed(settings: Settings, way: str, engine: Engine) -> Iterator[str]:
    ends = {token.id for token in engine.around("", None)}
    texts = set(engine.special.texts.values())
    is_of_pieces = engine.kind == "sentencepiece"
    for name, value in settings.items():
        if name in ("add_bos_token", "add_eos_token"):
            number = engine.special.roles.get(name[4:7])
            is_ignored = isinstance(value, bool) and value != (number in ends)
        elif name == "tokenizer_class":
            is_ignored = not known_class(value)
        elif name == "clean_up_tokenization_spaces":  # of a text that is made of tokens
            is_ignored = is_of_pieces and value is True
        elif name.endswith("_token"):
            is_ignored = _is_lost(value, texts)
        elif name in (*LISTS, NAMED):
            more = value.values() if isinstance(value, dict) else extra_tokens(settings)
            is_ignored = any(_is_lost(token, texts) for token in more)
            if way == "MBart50" and not isinstance(value, dict):  # its languages are text there
                is_ignored |= not {*MBART_50} <= {token_text(token) for token in more}
        else:
            is_ignored = name not in FOLLOWED | WITHOUT_EFFECT and value not in NEUTRAL
        if is_ignored:
            yield name


def _is_lost(token: Any, texts: set[str]) -> bool:
    """Whether the tokenizer does not have a special token that the settings name."""
    text = token_text(token) if isinstance(token, (str, dict)) else None
    return text is not None and text not in texts
