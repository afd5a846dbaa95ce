"""Small untrained models in checkpoint folders, one of each kind, for tests that only read."""

from collections.abc import Mapping
from pathlib import Path

from explorer.text import Tokenizer, byte_tokenizer, character_tokenizer, word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from models import Transformer, TransformerConfig, save_checkpoint
from models.config import GenerationConfig

WORDS = (
    "the a black white cat dog sleeps eats does not le la un chat chien noir dort ne pas".split()
)
NAMES = ("translation", "letters", "reviews", "reverse")
TINY = TransformerConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16, max_len=24)


def shelf(folder: Path) -> Path:
    """Models called translation, letters, reviews and reverse in this folder."""
    words = word_tokenizer(WORDS, SOURCE)
    more = {"examples": ["a white dog eats", "line one\nline two", 3]}
    put(folder, "translation", words, "the black cat sleeps", more, kind="encoder-decoder")
    letters = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    put(folder, "letters", letters, "the cat", kind="decoder", n_layers=2, n_heads=4)
    labelled = word_tokenizer(WORDS, CLASSIFIER)
    classes = {"classes": ["negative", "positive"]}
    put(folder, "reviews", labelled, "not a cat", classes, kind="encoder", head="classifier")
    digits = character_tokenizer("0123456789", DECODER)
    put(folder, "reverse", digits, "31415", kind="encoder", head="language-model")
    return folder


def put(
    folder: Path,
    name: str,
    tokenizer: Tokenizer,
    example: str,
    run: Mapping[str, object] | None = None,
    **changes: object,
) -> None:
    """One untrained model with its tokenizer."""
    config = TINY.replace(
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        generation=GenerationConfig.ending_with(tokenizer.eos_id),
    ).replace(**changes)
    run = {"title": name.capitalize(), "example": example, **(run or {})}
    save_checkpoint(folder / name, Transformer(config), tokenizer=tokenizer.to_json(), run=run)
