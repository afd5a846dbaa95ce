"""One setting of a published tokenizer changed, opened by the reference library and by us.

Equal, refused by us, or named as not followed: nothing else is right. A value that the reference
cannot open may be anything to us.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import transformers

from explorer.text.checked_text import TextError
from explorer.text.published.engine import Engine
from tests.text.published.conftest import engine_of

EQUAL, NAMED, REFUSED, ALONE, DIFFERENT = "equal", "named", "refused", "ours alone", "DIFFERENT"
CONFIG, MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
NEW, WORD = "<new>", "the"
"""A token that no vocabulary has, and one that most have."""
TEXTS = (
    "the cat", " the  cat ", "The Cát sat", "naïve café e\u0301", "東京は大", "a\nb\r\n\tc  d",
    "it's 12 , no ! ok .", "", " ", "🙂 x▁y", "ﬁne ½", f"a{NEW}b {NEW}  c", "themthe the", "the",
    "\nthe\x01 \u00a0\u3000x", "▁the ▁ ", ">>fr<< the", "a<turn> the",
)  # fmt: skip
FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")
ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
EITHER = (
    "add_bos_token add_eos_token add_prefix_space do_lower_case strip_accents verbose legacy "
    "tokenize_chinese_chars do_basic_tokenize clean_up_tokenization_spaces split_special_tokens "
    "use_default_system_prompt trim_offsets from_slow use_fast add_dummy_prefix remove_space "
    "spaces_between_special_tokens keep_accents is_fast fix_mistral_regex add_special_tokens"
).split()
CLASSES = (
    "PreTrained GPT2 GPT2Fast Bert Llama LlamaFast T5Fast XLMRoberta Gemma Qwen2 GPTNeoX Strange "
    "Roberta CodeGen Camembert Bart"
).split()
STRIPPED = {"content": NEW, "lstrip": True, "__type": "AddedToken"}
VALUES: dict[str, Sequence[Any]] = {
    **dict.fromkeys(EITHER, (True, False, None)),
    **dict.fromkeys(("model_max_length", "max_length", "max_len"), (3, None)),
    **dict.fromkeys(("padding_side", "truncation_side"), ("left", "right")),
    **dict.fromkeys(("stride", "pad_to_multiple_of", "pad_token_type_id", "unk_id"), (1,)),
    **dict.fromkeys(("name_or_path", "processor_class", "vocab_file", "not_known"), ("other",)),
    **dict.fromkeys(("src_lang", "tgt_lang"), ("de_DE", "en_XX")),
    "additional_special_tokens": ([], [NEW], [STRIPPED], None),
    "extra_special_tokens": ([], [NEW], {"image_token": NEW}, {}),
    "image_token": (NEW, None),
    "model_specific_special_tokens": ({"image_token": NEW}, {}),
    "tokenizer_class": (*(f"{n.removesuffix('Fast')}Tokenizer" for n in CLASSES), "", None),
    "truncation_strategy": ("longest_first",),
    "errors": ("strict", "ignore"),
    "sp_model_kwargs": ({}, {"enable_sampling": True, "alpha": 0.1, "nbest_size": -1}),
    "model_input_names": (["input_ids"],),
    "never_split": ([WORD], None),
    "extra_ids": (0, 5, 100),
    "backend": ("tokenizers", "sentencepiece"),
    "chat_template": ("{{ bos_token }}{{ messages }}",),
}


class Change(NamedTuple):
    """A key of one file with another value; ... leaves it out."""

    file: str
    key: str
    value: Any

    def make(self, folder: Path) -> None:
        values = read(folder, self.file) | {self.key: self.value}
        values = {key: value for key, value in values.items() if value is not ...}
        (folder / self.file).write_text(json.dumps(values), "utf-8")


def changes_of(folder: Path) -> Iterator[Change]:
    """Every key that the three files of the folder have, or may have."""
    stored = read(folder, CONFIG)
    texts = dict.fromkeys([NEW, *(str(stored[key]) for key in ROLES if stored.get(key))])
    flags = {"lstrip": True, "rstrip": True, "normalized": False, "__type": "AddedToken"}
    values = [None, *texts, *({"content": text, **flags} for text in texts)]
    for key in ROLES:
        yield from (Change(file, key, value) for file in (CONFIG, MAP) for value in values)
        yield Change(CONFIG, key, ...)
    for key, others in VALUES.items():
        yield from (Change(CONFIG, key, value) for value in (*others, ...))
    for key in ("additional_special_tokens", "extra_special_tokens", "image_token", "not_known"):
        yield from (Change(MAP, key, value) for value in VALUES[key])
    known = reference(folder).get_vocab()
    following = max(known.values()) + 1
    decoder = stored.get("added_tokens_decoder") or {}
    entries: list[tuple[Any, ...]] = [(following, NEW, {}, flag) for flag in FLAGS]
    entries.append((following + 5, NEW, {}, "special"))
    entries += [(known[WORD], WORD, {}, flag) for flag in FLAGS[:4] if WORD in known]
    entries += [(n, e["content"], e, flag) for n, e in [*decoder.items()][:4] for flag in FLAGS]
    for number, text, old, flag in entries:
        entry = {"content": text, **dict.fromkeys(FLAGS, False), **old, flag: not old.get(flag)}
        yield Change(CONFIG, "added_tokens_decoder", {**decoder, str(number): entry})
    yield Change(CONFIG, "added_tokens_decoder", {})
    yield from (Change(ADDED, NEW, number) for number in (following, following + 3, 0))


def read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    values: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return values


def reference(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoTokenizer.from_pretrained(folder)


Answer = dict[str, list[int]]


def their_answer(theirs: Any, special: Sequence[str]) -> Answer:
    """The IDs of texts as they are typed, and of prompts.

    A typed text is left out where it becomes a special token, which ours never does, or where
    it names the unknown token, which is plain text to ours.
    """
    answer = {}
    never = set(theirs.all_special_ids) - {theirs.unk_token_id}
    for text in TEXTS:
        typed = {"text": text, "split_special_tokens": True}
        plain = theirs(**typed, add_special_tokens=False)["input_ids"]
        unknown = theirs.unk_token_id in plain and theirs.unk_token in text
        if never.isdisjoint(plain) and not unknown and (theirs.mask_token or "\0") not in text:
            answer[f"plain {text!r}"] = plain
            answer[f"around {text!r}"] = theirs(**typed)["input_ids"]
            answer[f"pair {text!r}"] = theirs(**typed, text_pair="a b")["input_ids"]
    for text in prompts(special):
        said = theirs(text, add_special_tokens=False, split_special_tokens=False)
        answer[f"prompt {text!r}"] = said["input_ids"]
    return answer


def our_answer(ours: Engine, special: Sequence[str]) -> Answer:
    answer = {}
    for text in TEXTS:
        (answer[f"plain {text!r}"],) = ours.many_ids([text], False)
        (answer[f"around {text!r}"],) = ours.many_ids([text], True)
        answer[f"pair {text!r}"] = [token.id for token in ours.encode(text, "a b")]
    for text in prompts(special):
        answer[f"prompt {text!r}"] = [token.id for token in ours.encode_prompt(text)]
    return answer


def prompts(special: Sequence[str]) -> Iterator[str]:
    yield from TEXTS
    for text in special:
        yield from (f"{text}the cat{text}", f"a {text} b\n{text}\nc", f"a{text}")


def typed_specials(ours: Engine, special: Sequence[str]) -> list[str]:
    """The special tokens that a typed text became, which must be none."""
    known = {ours.special.roles.get("mask"), ours.special.roles.get("unk")}
    known |= {*ours.many_ids(["\U000f0000"], False)[0]}  # the model's own unknown token
    return [
        f"{text} typed is {token.id}"
        for text in special
        for shape in (text, f"a {text} b", f"a{text}")
        for token in ours.encode(shape)
        if token.start < token.end and token.id in ours.special_ids and token.id not in known
    ]


def judge(folder: Path, family: str, key: str) -> tuple[str, str]:
    """What became of a folder, and the words that say why."""
    theirs, expected, special, why = None, Answer(), list[str](), ""
    try:
        theirs = reference(folder)
        special = list(dict.fromkeys(theirs.all_special_tokens))[:9]
        if isinstance(theirs, transformers.RobertaTokenizer) and theirs.mask_token in special:
            special.remove(theirs.mask_token)  # it lost the space before a mask
        expected = their_answer(theirs, special)
    except Exception as error:  # noqa: BLE001  whatever a strange value ends in
        theirs, why = None, f"{type(error).__name__}: {error}"
    try:
        ours = engine_of(folder, family)
        answer = our_answer(ours, special)
    except TextError as error:
        return REFUSED, str(error)
    if faults := typed_specials(ours, special):
        return DIFFERENT, faults[0]
    if theirs is None:
        return ALONE, why
    wrong = [name for name, ids in expected.items() if answer[name] != ids]
    if not wrong:
        return EQUAL, ""
    named = key in ours.facts().get("unfollowed", ())
    return (NAMED if named else DIFFERENT), f"{wrong[0]}: {answer[wrong[0]]}"
