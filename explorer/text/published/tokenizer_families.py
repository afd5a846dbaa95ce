"""How each family reads its files: its special tokens, and what its older files mean.

A vocab.txt, or a vocab.json with merges.txt, becomes a tokenizer.json that reads the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.text.checked_text import TextError
from explorer.text.published.added_tokens import (
    FLAGS,
    AddedToken,
    Settings,
    declared_tokens,
    extra_count,
    extra_tokens,
    gathered,
    named_tokens,
    token_text,
)
from explorer.text.published.rebuilt_parts import LISTED, PARTS, Part, around, ends
from explorer.text.published.tokenizer_files import Files, file_lines, json_object

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""In the order in which the reference adds their tokens."""

FAMILIES = {
    "bert": "Bert",
    "distilbert": "Bert",
    "electra": "Bert",
    "mobilebert": "Bert",
    "gpt2": "GPT2",
    "gptj": "GPT2",
    "gpt_neo": "GPT2",
    "phi": "GPT2",
    "starcoder2": "GPT2",
    "opt": "GPT2",
    "gpt_neox": "GPTNeoX",
    "roberta": "Roberta",
    "bart": "Roberta",
    "blenderbot": "Blenderbot",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "mbart": "MBart",
    "pegasus": "Pegasus",
    "marian": "Marian",
    "t5": "T5",
    "mt5": "T5",
    "llama": "Llama",
    "mistral": "Llama",
    "phi3": "Llama",
    "gemma": "Gemma",
    "gemma2": "Gemma",
    "gemma3_text": "Gemma",
    "qwen2": "Qwen2",
    "qwen3": "Qwen2",
    "bloom": "Bloom",
}
"""The kind of tokenizer of each family; a folder may name another one."""
UNREGISTERED = ("llama", "bloom")
"""Families of which the reference builds a tokenizer anew only where the folder names its class."""
AS_STORED = ("mistral", "phi3", "gpt_bigcode", "stablelm")
"""Families whose tokenizer.json counts as it is, whatever class the folder names."""
AS_REGISTERED = ("qwen2",)
"""Families of which the folder's class never counts."""

SAME = {
    "DistilBert": "Bert",
    "Electra": "Bert",
    "MobileBert": "Bert",
    "Bart": "Roberta",
    "Longformer": "Roberta",
    "CodeGen": "GPT2",
}
"""Classes that the reference has under two names."""
ALIKE = {"CodeLlama": "Llama", "MT5": "T5", "Qwen3": "Qwen2"}
"""Names of classes whose older files are read as those of another."""
GENERAL = {"PreTrained", "PreTrainedTokenizer", "TokenizersBackend", "Tokenizers", ""}

_FAIRSEQ = {
    "bos": "<s>",
    "eos": "</s>",
    "unk": "<unk>",
    "sep": "</s>",
    "pad": "<pad>",
    "cls": "<s>",
    "mask": "<mask>",
}
_END = "<|endoftext|>"
_DEFAULTS: dict[str, dict[str, str]] = {
    "Bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "GPT2": {"bos": _END, "eos": _END, "unk": _END},
    "GPTNeoX": {"bos": _END, "eos": _END, "unk": _END, "pad": "<|padding|>"},
    "Roberta": _FAIRSEQ,
    "Blenderbot": _FAIRSEQ,
    "XLMRoberta": _FAIRSEQ,
    "Camembert": _FAIRSEQ,
    "MBart": _FAIRSEQ,
    "MBart50": {role: text for role, text in _FAIRSEQ.items() if role != "bos"},
    "Pegasus": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask_2>"},
    "Marian": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "T5": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "Llama": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "Gemma": {"pad": "<pad>", "bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "mask": "<mask>"},
    "Qwen2": {"pad": _END, "eos": _END, "unk": _END},
    "Bloom": {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>"},
}
_MASKS_LIKE_WORDS = ("Roberta", "Blenderbot", "Camembert", "MBart", "MBart50")
"""Kinds whose mask takes the place of a word and its space; Roberta's tokenizer.json says so."""


MBART = tuple(
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT "
    "lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN".split()
)
MBART_50 = (
    *MBART,
    *(
        "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF "
        "pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI".split()
    ),
)
"""The languages of mBART, in the order of their token IDs."""


def reading_of(family: str, settings: Mapping[str, Any]) -> str:
    """The kind of tokenizer that the folder names, else its family's."""
    named = settings.get("tokenizer_class")
    name = _class_name(named) if isinstance(named, str) else ""
    if name in GENERAL or family in AS_REGISTERED:
        return FAMILIES.get(family, family)
    return SAME.get(name, ALIKE.get(name, name))


def _class_name(name: str) -> str:
    return name.removesuffix("Fast").removesuffix("Tokenizer")


def rebuilt_class(family: str, settings: Settings, stored: Part) -> str | None:
    """The kind in `PARTS` that the reference builds anew; None where it follows tokenizer.json.

    `stored` is empty for a sentencepiece model.
    """
    named, own = settings.get("tokenizer_class"), FAMILIES.get(family)
    if family in AS_STORED:
        return None
    if family not in AS_REGISTERED and isinstance(named, str):
        name = _class_name(named)
        own = SAME.get(name, name if stored else ALIKE.get(name, name))
        parts = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
        if own == "Llama" and "'ByteLevel'" in str([stored.get(part) for part in parts]):
            return None
    elif family in UNREGISTERED:
        return None
    return own if own in PARTS else None


def known_class(name: Any) -> bool:
    """Whether a class that the settings name is read as the reference reads it."""
    short = _class_name(name) if isinstance(name, str) else ""
    return short in GENERAL | PARTS.keys() | SAME.keys() | {"Marian", "Bloom"}


class Roles(dict[str, str]):
    """The text of the token that plays each role."""


def special_roles(way: str, settings: Settings) -> Roles:
    """The roles of the settings, then of the family. No token has a role that is null there."""
    roles = Roles(_DEFAULTS.get(way, {}))
    for role in ROLES:
        if f"{role}_token" in settings:
            roles[role] = token_text(settings[f"{role}_token"]) or ""
    return Roles({role: text for role, text in roles.items() if text})


def whole_file(files: Files, family: str, settings: Settings) -> tuple[Part, Roles]:
    """tokenizer.json as the reference reads it, and the roles.

    The classes in `PARTS` take only the vocabulary from it. Tokens that only the files beside it
    name are added.
    """
    stored = json_object(files, "tokenizer.json")
    model, own = stored.get("model"), stored.get("added_tokens") or []
    kind = rebuilt_class(family, settings, stored)
    roles = special_roles(kind or reading_of(family, settings), settings)
    if not isinstance(model, dict) or not _are_tokens(own):
        return stored, roles
    vocabulary = model.get("vocab")
    if kind and isinstance(vocabulary, list) != (kind in LISTED):
        raise TextError(f"its vocabulary is not one that {kind}'s tokenizer reads.")
    return complete(files, kind, settings, roles, stored, stored.get("post_processor")), roles


def _are_tokens(own: Any) -> bool:
    return isinstance(own, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and type(token.get("id")) is int
        for token in own
    )


def word_pieces(files: Files, way: str, settings: Settings, roles: Roles) -> Part:
    """vocab.txt: one token for each line; its ID is the number of the line."""
    if way != "Bert":
        raise TextError(f"a vocab.txt as {_name(way)} reads it is not known here.")
    vocabulary = {token: number for number, token in enumerate(file_lines(files, "vocab.txt"))}
    return complete(files, way, settings, roles, {"model": {"vocab": vocabulary}}, None)


BYTE_LEVEL = ("GPT2", "GPTNeoX", "Roberta", "Blenderbot", "Qwen2")


def byte_level(files: Files, way: str, settings: Settings, roles: Roles) -> Part:
    """vocab.json has the token IDs, merges.txt one merge per line in the order of training."""
    if way not in BYTE_LEVEL:
        raise TextError(f"vocab.json and merges.txt as {_name(way)} reads them are not known here.")
    lines = file_lines(files, "merges.txt")
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    model = {"vocab": json_object(files, "vocab.json"), "merges": merges}
    return complete(files, way, settings, roles, {"model": model}, None)


def complete(
    files: Files,
    kind: str | None,
    settings: Settings,
    roles: Roles,
    stored: Part,
    ends_of: Any,
    of_pieces: Sequence[AddedToken] | None = None,
) -> Part:
    """The file with all added tokens and, of a kind that is built anew, its other parts.

    `of_pieces` are the tokens of a sentencepiece model that are found before all others.
    """
    vocabulary = stored["model"].get("vocab")
    if isinstance(vocabulary, list):
        pieces = {p[0]: i for i, p in enumerate(vocabulary) if isinstance(p, list) and p}
    else:
        pieces = vocabulary if isinstance(vocabulary, dict) else {}
    own: list[AddedToken] = stored.get("added_tokens") or []
    extra = [*extra_tokens(settings), *_of_class(kind, settings, of_pieces)]
    is_whole = "tokenizer.json" in files
    named = _named("" if is_whole and kind == "Roberta" else kind, settings, roles)
    special = {*roles.values(), *map(str, map(token_text, extra))}
    declared = [token for _, token in declared_tokens(files, settings, own, special)]
    kept = [] if kind else own
    added = [*gathered(declared, named, extra, kept, pieces)]
    if kind == "Qwen2":  # which adds its special tokens once more, without options
        plain = set(map(token_text, [*named, *extra]))
        usual = dict.fromkeys((*FLAGS, "normalized"), False) | {"special": True}
        added = [token | usual if token["content"] in plain else token for token in added]
    numbers = pieces | {token["content"]: token["id"] for token in added}
    whole = stored | {"added_tokens": added}
    if kind is not None:
        whole |= PARTS[kind](stored, settings, roles)
        whole["post_processor"] = around(kind, settings, roles, numbers, ends_of)
    if not is_whole and whole.get("post_processor") is None:
        whole["post_processor"] = ends(settings, roles, numbers)
    return whole


def _named(kind: str | None, settings: Settings, roles: Roles) -> list[Any]:
    """The tokens with a role or another name, with their options where the files say them."""
    named: list[Any] = []
    for role in ROLES:
        token = settings.get(f"{role}_token", roles.get(role) if kind is not None else None)
        if isinstance(token, str) and role == "mask" and kind in _MASKS_LIKE_WORDS:
            token = {"content": token, "lstrip": True, "special": True}
        if token is not None:
            named.append(token)
    return [*named, *named_tokens(settings, ROLES).values()]


def _of_class(
    kind: str | None, settings: Settings, of_pieces: Sequence[AddedToken] | None
) -> Sequence[Any]:
    """Special tokens that a class has where the settings list none."""
    extra, own = settings.get("extra_special_tokens", {}), of_pieces or ()
    if not isinstance(extra, dict):
        return MBART_50 if kind == "MBart50" else ()
    match kind:
        case "T5":
            return [*own, *[f"<extra_id_{place}>" for place in range(extra_count(settings))]]
        case "Camembert" if of_pieces is None:
            return ["<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"]
        case "MBart":
            return [*MBART, *own]
        case "MBart50":
            return [*own, *MBART_50]
        case "Pegasus":
            return ["<mask_1>", *[f"<unk_{place}>" for place in range(2, 103)]]
    return own


def more_special(settings: Settings) -> frozenset[str]:
    """Special tokens of the settings that have no role."""
    tokens = [*extra_tokens(settings), *named_tokens(settings, ROLES).values()]
    declared = settings.get("added_tokens_decoder")
    for token in declared.values() if isinstance(declared, dict) else []:
        if isinstance(token, dict) and token.get("special") is True:
            tokens.append(token)
    return frozenset(text for text in map(token_text, tokens) if text)


def _name(way: str) -> str:
    return way[:40] or "this family"
