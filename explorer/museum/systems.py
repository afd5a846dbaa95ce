"""The documents' systems as models to open: untrained, with words of their own, made when asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from explorer.museum.documents import size_of
from explorer.places import UPLOAD
from explorer.text import Tokenizer, word_tokenizer
from explorer.text.special import CLASSIFIER, SOURCE
from models import Transformer, TransformerConfig, save_checkpoint
from models.presets import PRESETS

SENTENCES = {
    "paper": "the black cat sleeps",
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
"""The notebook has eleven tokens, four of which are special."""


@dataclass(frozen=True)
class System:
    """One document's model, the task that it can learn here in minutes, and at what rate."""

    preset: str
    document: str
    task: str
    lr: float

    @property
    def config(self) -> TransformerConfig:
        """As the document has it; the ids of special tokens are those of `words_of`."""
        tokenizer = words_of(self.preset)
        return PRESETS[self.preset]().replace(
            pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id
        )


SYSTEMS = (
    System("lecture handout", "lecture handout", "reverse", 1e-3),
    System("notebook tutorial", "notebook tutorial", "copy", 1e-3),
    System("web tutorial, encoder", "web tutorial", "negation", 1e-3),
    System("web tutorial, classifier", "web tutorial", "negation", 1e-3),
    System("paper", "README", "translation", 1e-3),
)


def words_of(preset: str) -> Tokenizer:
    """As many words as the preset has tokens; those beyond a few are called t100, t101, …"""
    config = PRESETS[preset]()
    reads = SOURCE if config.kind == "encoder-decoder" else CLASSIFIER
    words = FEW_WORDS if config.vocab_size < len(WORDS) else sorted(set(WORDS))
    specials = len(word_tokenizer([], reads).special_ids) + 1
    missing = config.vocab_size - specials - len(words)
    return word_tokenizer([*words, *(f"t{number}" for number in range(missing))], reads)


def size(system: System) -> tuple[int, int]:
    """Its parameters and bytes, known before it is made."""
    return size_of(system.config)


def folder_of(system: System, root: Path) -> Path:
    """Where it lies, or would: everybody who makes it gets the same."""
    digest = hashlib.sha256(f"{system.preset} {system.config.to_json()}".encode()).hexdigest()
    return root / f"{UPLOAD}{digest[:24]}"


def make(system: System, root: Path) -> Path:
    """The untrained model as a checkpoint, weights from seed 0. OSError where there is no room."""
    folder = folder_of(system, root)
    if not folder.is_dir():
        example = SENTENCES[system.preset]
        run = {"title": f"{system.preset}, untrained", "example": example, "examples": [example]}
        words = words_of(system.preset).to_json()
        save_checkpoint(folder, Transformer(system.config), tokenizer=words, run=run)
    return folder
