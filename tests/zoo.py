"""Small folders as the reference library saves them: with a tokenizer, without, damaged."""

import os
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors

from tests.text.published.making import byte_level, settings, unigram

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "the capital of france is paris . she opened door with her key hand a man who sold world "
    "he saw cat dog and it was not good"
).split()
VOCABULARY = [*SPECIAL, *WORDS, *"abcdefghijklmnopqrstuvwxyz?,!'", *map("##{}".format, "aeglnrst")]


def zoo(folder: Path) -> Path:
    """Folders called bert, gpt2, t5 and torn; the last one cannot be opened."""
    bert(folder / "bert")
    gpt2(folder / "gpt2")
    t5(folder / "t5")
    torn(folder / "torn")
    return folder


def bert(folder: Path, seed: int = 0, **sizes: int) -> Path:
    """A masked language model that tells two sentences apart, with its tokenizer.json."""
    config = reference().BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=sizes.pop("hidden_size", 24),
        num_hidden_layers=sizes.pop("num_hidden_layers", 3),
        num_attention_heads=sizes.pop("num_attention_heads", 4),
        intermediate_size=40,
        max_position_embeddings=64,
        **sizes,
    )
    _saved(folder, reference().BertForMaskedLM, config, seed)
    word_pieces(folder)
    return folder


def classifier(folder: Path) -> Path:
    """The same family as a classifier whose config names its two classes."""
    config = reference().BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=40,
        max_position_embeddings=64,
        id2label={0: "gloomy", 1: "cheerful"},
        label2id={"gloomy": 0, "cheerful": 1},
    )
    _saved(folder, reference().BertForSequenceClassification, config)
    word_pieces(folder)
    return folder


def gpt2(folder: Path, seed: int = 0, shards: bool = False, **sizes: int) -> Path:
    """A decoder without any file of a tokenizer."""
    usual = {"vocab_size": 50, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 3}
    config = reference().GPT2Config(**(usual | sizes), bos_token_id=0, eos_token_id=0)
    return _saved(folder, reference().GPT2LMHeadModel, config, seed, "20KB" if shards else "1GB")


def long_gpt2(folder: Path) -> Path:
    """One that reads 2,048 tokens of any bytes, with twelve layers of twelve heads, and chats."""
    gpt2(folder, vocab_size=400, n_positions=2_048, n_layer=12, n_head=12)
    template = "{% for message in messages %}{{ message.content }}<|endoftext|>\n{% endfor %}"
    named = {"tokenizer_class": "GPT2Tokenizer", "chat_template": template}
    byte_level(folder, ["<|endoftext|>"], **named)
    return folder


CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As SmolLM2 and Qwen have it."""


def chat_gpt2(folder: Path, template: str = CHATML) -> Path:
    """One that reads any bytes, and comes with a chat template."""
    gpt2(folder, vocab_size=400, n_positions=256)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    named = {"additional_special_tokens": special[1:], "chat_template": template}
    byte_level(folder, special, tokenizer_class="GPT2Tokenizer", **named)
    return folder


def t5(folder: Path) -> Path:
    """An encoder-decoder with relative positions and a sentencepiece tokenizer."""
    config = reference().T5Config(
        vocab_size=300,
        d_model=24,
        d_kv=8,
        d_ff=40,
        num_layers=2,
        num_heads=3,
        decoder_start_token_id=0,
    )
    _saved(folder, reference().T5ForConditionalGeneration, config)
    special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    unigram(folder, "spiece.model", {"tokenizer_class": "T5Tokenizer"}, **special)
    return folder


def torn(folder: Path) -> Path:
    """A folder whose weights end too early."""
    weights = gpt2(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    return folder


def word_pieces(folder: Path) -> None:
    """A tokenizer.json that reads one sentence or two, as BERT does."""
    numbered = {token: number for number, token in enumerate(VOCABULARY)}
    library = tokenizers.Tokenizer(models.WordPiece(numbered, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    library.add_special_tokens(SPECIAL)
    library.save(str(folder / "tokenizer.json"))
    settings(folder, tokenizer_class="BertTokenizer", mask_token="[MASK]", pad_token="[PAD]")


def reference() -> Any:
    """The reference library, which fetches nothing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    return transformers


def _saved(folder: Path, kind: Any, config: Any, seed: int = 0, largest: str = "1GB") -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = kind(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.save_pretrained(folder, max_shard_size=largest)
    return folder
