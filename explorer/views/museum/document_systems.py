"""The documents' systems as models to open: untrained, made on request."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from explorer.text import Tokenizer, word_tokenizer
from explorer.text.token import CLASSIFIER, SOURCE
from explorer.views.museum.document_numbers import parameters_and_bytes
from models import GenerationConfig, Transformer, TransformerConfig, save_checkpoint
from models.presets import PRESETS

SENTENCES = {
    "repository README": "the black cat sleeps",
    "lecture handout": "the black cat sleeps",
    "notebook tutorial": "I am a student",
    "web tutorial, encoder": "Dog is crossing the street because it saw the kitchen",
    "web tutorial, classifier": "the food was not very good",
}
WORDS = (
    "the a black white cat dog sleeps eats does not le la un une chat chien noir dort mange ne pas "
    "Dog is crossing street because it saw kitchen I am student you are we were was food film "
    "hotel very good bad really pleasant boring never awful great place service"
).split()
FEW_WORDS = "I am a student street kitchen dog".split()
"""The notebook has eleven tokens, four of them special."""


@dataclass(frozen=True)
class System:
    """One document's model, the task that it learns here in minutes, and the learning rate."""

    preset: str
    document: str
    task: str
    lr: float

    @property
    def config(self) -> TransformerConfig:
        """As the document has it; the ids of special tokens are those of `tokenizer_for`."""
        return _config_of(self.preset)


SYSTEMS = (
    System("lecture handout", "lecture handout", "reverse", 1e-3),
    System("notebook tutorial", "notebook tutorial", "copy", 1e-3),
    System("web tutorial, encoder", "web tutorial", "negation", 1e-3),
    System("web tutorial, classifier", "web tutorial", "negation", 1e-3),
    System("repository README", "repository README", "translation", 1e-3),
)


MASK_FILLS = {
    "lecture handout": "−1e9",
    "notebook tutorial": "−1e20",
    "web tutorial": "−∞",
    "repository README": "−∞",
}
"""The score that each document gives to masked keys."""


def choices(system: System) -> dict[str, str]:
    """The settings on which the documents disagree, as the model here has them."""
    config = system.config
    last = ", and a final one" if config.final_norm else ""
    return {
        "embedding × √d_model": "yes" if config.scale_embedding else "no",
        "mask fill, as written": MASK_FILLS[system.document],
        "norm": config.norm_position + last,
        "dropout": f"{config.dropout:g}",
        "Q, K, V": "with bias" if config.qkv_bias else "without bias",
        "longest input": f"{config.max_len:,}",
    }


def tokenizer_for(preset: str) -> Tokenizer:
    """As many words as the preset has tokens; those beyond a few are called t100, t101, …"""
    config = PRESETS[preset]
    reads = SOURCE if config.kind == "encoder-decoder" else CLASSIFIER
    words = FEW_WORDS if config.vocab_size < len(WORDS) else sorted(set(WORDS))
    specials = len(word_tokenizer([], reads).special_ids) + 1
    missing = config.vocab_size - specials - len(words)
    return word_tokenizer([*words, *(f"t{number}" for number in range(missing))], reads)


@cache
def _config_of(preset: str) -> TransformerConfig:
    """The tokenizer is made for its special ids and dropped: some have 32,000 tokens."""
    words = tokenizer_for(preset)
    return PRESETS[preset].replace(
        pad_id=words.pad_id,
        bos_id=words.bos_id,
        generation=GenerationConfig.ending_with(words.eos_id),
    )


def system_size(system: System) -> tuple[int, int]:
    """Its number of parameters and their bytes, known before it is made."""
    return parameters_and_bytes(system.config)


def folder_of(system: System, root: Path) -> Path:
    """Its folder, made or not: the same for every reader."""
    return root / re.sub("[^a-z]+", "-", system.preset.lower())


def is_made(system: System, root: Path) -> bool:
    """Whether it is made already, as this version of the app would make it."""
    config = folder_of(system, root) / "config.json"
    return config.is_file() and config.read_text() == system.config.to_json()


def make_system(system: System, root: Path) -> Path:
    """The untrained model as a checkpoint, weights from seed 0. OSError where there is no room.

    Made once for all readers, and not counted as an upload.
    """
    folder = folder_of(system, root)
    if not is_made(system, root):
        example = SENTENCES[system.preset]
        run = {"title": f"{system.preset}, untrained", "example": example, "untrained": True}
        words = tokenizer_for(system.preset).to_json()
        save_checkpoint(folder, Transformer(system.config), tokenizer=words, run=run)
    return folder
