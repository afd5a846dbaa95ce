"""Which tokens are padding, mask, end and so on: by the files, else by the family."""

from collections.abc import Iterator, Mapping
from typing import Any

from explorer.text.checked_text import TextError

ROLES = ("pad", "bos", "eos", "unk", "cls", "sep", "mask")
LONGEST_SPECIAL = 1_000

FAMILIES = {
    "bert": "Bert",
    "distilbert": "Bert",
    "electra": "Bert",
    "mobilebert": "Bert",
    "gpt2": "GPT2",
    "gptj": "GPT2",
    "gpt_neo": "GPT2",
    "gpt_neox": "GPTNeoX",
    "opt": "OPT",
    "roberta": "Roberta",
    "bart": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "mbart": "MBart",
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

SAME = {
    "DistilBert": "Bert",
    "Electra": "Bert",
    "MobileBert": "Bert",
    "Bart": "Roberta",
    "Longformer": "Roberta",
    "CodeLlama": "Llama",
    "MT5": "T5",
    "Qwen3": "Qwen2",
}
GENERAL = {"PreTrained", "PreTrainedTokenizer", "TokenizersBackend", "Tokenizers", ""}

_FAIRSEQ = {
    "pad": "<pad>",
    "bos": "<s>",
    "eos": "</s>",
    "unk": "<unk>",
    "cls": "<s>",
    "sep": "</s>",
    "mask": "<mask>",
}
_END = "<|endoftext|>"
_DEFAULTS: dict[str, dict[str, str]] = {
    "Bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "GPT2": {"bos": _END, "eos": _END, "unk": _END},
    "GPTNeoX": {"bos": _END, "eos": _END, "unk": _END},
    "OPT": {"pad": "<pad>", "bos": "</s>", "eos": "</s>", "unk": "</s>"},
    "Roberta": _FAIRSEQ,
    "XLMRoberta": _FAIRSEQ,
    "Camembert": _FAIRSEQ,
    "MBart": _FAIRSEQ,
    "MBart50": _FAIRSEQ,
    "Marian": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "T5": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "Llama": {"bos": "<s>", "eos": "</s>", "unk": "<unk>"},
    "Gemma": {"pad": "<pad>", "bos": "<bos>", "eos": "<eos>", "unk": "<unk>"},
    "Qwen2": {"pad": _END, "eos": _END},
    "Bloom": {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>"},
}


def reading_of(family: str, settings: Mapping[str, Any]) -> str:
    """The kind of tokenizer that the folder names, else its family's."""
    named = settings.get("tokenizer_class")
    name = named if isinstance(named, str) else ""
    name = name.removesuffix("Fast").removesuffix("Tokenizer")
    own = FAMILIES.get(family, family)
    if name in GENERAL or (own == "OPT" and name == "GPT2"):
        return own
    return SAME.get(name, name)


class Roles(dict[str, str]):
    """The text of the token that plays each role."""


def special_roles(way: str, settings: Mapping[str, Any], special: Mapping[str, Any]) -> Roles:
    """What tokenizer_config.json says, then special_tokens_map.json, then the family.

    A role that is null in a file is taken by nobody.
    """
    roles = Roles(_DEFAULTS.get(way, {}))
    for source in (special, settings):
        for role in ROLES:
            if f"{role}_token" in source:
                text = token_text(source[f"{role}_token"])
                if text is None:
                    roles.pop(role, None)
                else:
                    roles[role] = text
    return roles


def token_text(token: Any) -> str | None:
    """The text of a special token as the files write it: plain, or with its options."""
    text = token.get("content") if isinstance(token, dict) else token
    if text is None or text == "":
        return None
    if not isinstance(text, str) or len(text) > LONGEST_SPECIAL:
        raise TextError("a special token in its settings is not a short text.")
    return text


def added_entries(
    settings: Mapping[str, Any], added: Mapping[str, Any]
) -> Iterator[tuple[int, str, bool]]:
    """The tokens that were added to a vocabulary: ID, text and whether it is special."""
    declared = settings.get("added_tokens_decoder")
    listed: dict[Any, Any] = declared if isinstance(declared, dict) else {}
    extra = settings.get("additional_special_tokens")
    special = {token_text(token) for token in extra} if isinstance(extra, list) else set()
    for number, token in listed.items():
        text = token_text(token)
        if text is not None and str(number).isdecimal() and len(str(number)) < 9:
            yield int(number), text, bool(isinstance(token, dict) and token.get("special"))
    known = {token_text(token) for token in listed.values()}
    for text, number in added.items():
        if text not in known and type(number) is int and 0 <= number < 10**8:
            yield number, text[:LONGEST_SPECIAL], text in special
