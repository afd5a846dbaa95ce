"""Small published folders, made here: every form, trained on a few sentences."""

import io
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

_DRAW = random.Random(0)
CORPUS = [
    "the cat sat on the mat. the dog saw the cat; the dog sat. Ein Frosch ist ein Tier "
    "und quakt. 東京 は 大きい。 naïve café, it's 12345 ok!?"
] * 40 + ["".join(_DRAW.choices("abcdefghijklmnopqrstuvwxyz ", k=60)) for _ in range(200)]

TEXTS = (
    "the cat sat", "  the  cat ", "The Cat sat on the MAT.", "naïve café e\u0301",
    "🙂 the 🙂🙂cat👩\u200d👩\u200d👧", "東京は大きい。the東", "שלום עולם the", "a\u202eb\u200fc",
    "line one\nline two\r\n\ttab", "\x00a\x01b\x7f", "it's 12345 1,000.50", "ﬁne ½ ① Å ㎏",
    "a" * 150, "x", "!!! ...\nno!\n", "don't  stop\n\n\n now   ", "\ufffd\ufeffbom",
    "Ünïcödé ẞß İ", "a\u0301\u0302b", "\u3000全角\u3000スペース", "<notspecial> [x] ## ▁ Ġ",
    "\u00a0nbsp\u00a0", "🏳\ufe0f\u200d🌈", " ", "\n",
)  # fmt: skip
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
END = ["<|endoftext|>"]
Form = tuple[str, str, Callable[[Path], None]]
"""The family, the reference library's class for it, and how its folder is made."""


def settings(folder: Path, **said: Any) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(said), "utf-8")


def word_pieces(folder: Path, **said: Any) -> None:
    library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer(lowercase=False)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.train_from_iterator(
        CORPUS + [line.lower() for line in CORPUS] + ["cafe naive 大東京きい"] * 20,
        trainers.WordPieceTrainer(vocab_size=200, special_tokens=BERT, show_progress=False),
    )
    vocabulary = library.get_vocab()
    lines = sorted(vocabulary, key=lambda token: vocabulary[token])
    (folder / "vocab.txt").write_text("\n".join(lines) + "\n", "utf-8")
    settings(folder, tokenizer_class="BertTokenizer", **said)


def byte_level(folder: Path, special: list[str], **said: Any) -> None:
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    library.train_from_iterator(CORPUS, trainer)
    library.model.save(str(folder))
    settings(folder, **said)


def qwen2(folder: Path) -> None:
    """With a rule over a line's end, which only this family's splitting lets be used."""
    byte_level(folder, [*END, "<|im_end|>"], eos_token="<|im_end|>", pad_token="<|endoftext|>")
    numbered = json.loads((folder / "vocab.json").read_text("utf-8"))
    numbered["!Ċ"] = len(numbered)
    (folder / "vocab.json").write_text(json.dumps(numbered), "utf-8")
    with open(folder / "merges.txt", "a", encoding="utf-8") as file:
        file.write("! Ċ\n")


def pieces(path: Path, size: int = 120, kind: str = "unigram", **options: Any) -> None:
    made = io.BytesIO()
    options |= {"vocab_size": size, "model_type": kind, "hard_vocab_limit": False, "minloglevel": 3}
    train = sentencepiece.SentencePieceTrainer.train
    train(sentence_iterator=iter(CORPUS), model_writer=made, **options)
    path.write_bytes(made.getvalue())


def unigram(folder: Path, name: str, said: dict[str, Any], **options: Any) -> None:
    pieces(folder / name, **options)
    settings(folder, **said)


def bpe_pieces(folder: Path, said: dict[str, Any], **options: Any) -> None:
    options |= {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    pieces(folder / "tokenizer.model", size=500, kind="bpe", byte_fallback=True, **options)
    settings(folder, **said)


def marian(folder: Path) -> None:
    pieces(folder / "source.spm")
    pieces(folder / "target.spm", size=80)
    made = [str(folder / f"{side}.spm") for side in ("source", "target")]
    source, target = (sentencepiece.SentencePieceProcessor(model_file=each) for each in made)
    listed = {source.id_to_piece(n) for n in range(10, source.get_piece_size())}
    listed |= {target.id_to_piece(n) for n in range(3, target.get_piece_size())}
    names = ["</s>", "<unk>", *sorted(listed), ">>fr<<", "<pad>"]
    numbered = {name: number for number, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(numbered), "utf-8")
    settings(folder, tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de")


SPM = "sentencepiece.bpe.model"
T5: dict[str, Any] = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
GEMMA: dict[str, Any] = {
    "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>",
    "eos_piece": "<eos>", "add_dummy_prefix": False,
    "user_defined_symbols": ["<mask>", "<start_of_turn>"],
}  # fmt: skip
BEGUN: dict[str, Any] = {"add_bos_token": True}
ROLES_OF_OPT: dict[str, Any] = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "</s>")


def of_class(name: str, **said: Any) -> dict[str, Any]:
    return {"tokenizer_class": name, **said}


def made(family: str, reference: str, how: Callable[..., None], **options: Any) -> Form:
    return family, reference, partial(how, **options)


def of_pieces(family: str, reference: str, **said: Any) -> Form:
    """A unigram model of pieces, as the family of XLM-RoBERTa keeps it."""
    return made(family, reference, unigram, name=SPM, said=of_class(reference, **said))


FOLDERS: dict[str, Form] = {
    "bert": made("bert", "BertTokenizer", word_pieces),
    "bert-cased": made("bert", "BertTokenizer", word_pieces, do_lower_case=False),
    "distilbert": made(
        "distilbert", "BertTokenizer", word_pieces,
        strip_accents=False, tokenize_chinese_chars=False,
    ),
    "gpt2": made("gpt2", "GPT2Tokenizer", byte_level, special=END),
    "gpt2-prefix": made("gpt2", "GPT2Tokenizer", byte_level, special=END, add_prefix_space=True),
    "roberta": made("roberta", "RobertaTokenizer", byte_level, special=FAIRSEQ),
    "bart": made(
        "bart", "BartTokenizer", byte_level, special=FAIRSEQ, tokenizer_class="BartTokenizer",
    ),
    "opt": made(
        "opt", "GPT2Tokenizer", byte_level, special=FAIRSEQ[:4], tokenizer_class="GPT2Tokenizer",
        pad_token="<pad>", **BEGUN, **ROLES_OF_OPT,
    ),
    "qwen2": made("qwen2", "Qwen2Tokenizer", qwen2),
    "xlm-roberta": of_pieces("xlm-roberta", "XLMRobertaTokenizer"),
    "camembert": of_pieces("camembert", "CamembertTokenizer"),
    "mbart": of_pieces("mbart", "MBartTokenizer", src_lang="de_DE"),
    "mbart50": of_pieces("mbart", "MBart50Tokenizer", src_lang="de_DE"),
    "t5": made(
        "t5", "T5Tokenizer", unigram, name="spiece.model", said=of_class("T5Tokenizer"), **T5,
    ),
    "pegasus": made("pegasus", "PegasusTokenizer", unigram, name="spiece.model", said={}, **T5),
    "llama": made("llama", "LlamaTokenizer", bpe_pieces, said=of_class("LlamaTokenizer", **BEGUN)),
    "llama-legacy": made(
        "llama", "LlamaTokenizer", bpe_pieces, said=of_class("LlamaTokenizer", legacy=True),
        user_defined_symbols=["<turn>"],
    ),
    "mistral-unigram": made(
        "mistral", "TokenizersBackend", unigram, name="tokenizer.model", said={},
    ),
    "mistral": made(
        "mistral", "TokenizersBackend", bpe_pieces, said=BEGUN | {"add_eos_token": True},
    ),
    "gemma": made(
        "gemma", "GemmaTokenizer", bpe_pieces, said=of_class("GemmaTokenizer", **BEGUN), **GEMMA,
    ),
    "marian": made("marian", "MarianTokenizer", marian),
}  # fmt: skip
"""By the name of the folder."""
