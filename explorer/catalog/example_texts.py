"""Example texts for a model that came without any."""

from pathlib import Path

from models import TransformerConfig
from models.loading.checkpoint_tokenizer import has_tokenizer

ANGLED_MASKS = ("roberta", "camembert", "xlm", "bart")
MASKED = ("The capital of France is {mask}.", "She opened the door with her {mask}.")
CLASSIFIED = ("A wonderful little film, not a minute too long.", "I would not see it again.")
ANY_EXAMPLE = "To be, or not to be"
CONTINUED = (
    "When Mary and John went to the store, John gave a drink to",
    "The keys to the cabinet are on the table, so the cabinet",
    ANY_EXAMPLE,
)
WHOLE_SENTENCES = ("I am a student.", "The cat that the dog chased is tired.")


def examples_for(config: TransformerConfig, family: str, folder: Path) -> tuple[str, ...]:
    """Sentences in which there is something to see; numbers where nothing makes tokens.

    A model that reads little gets as many characters as it reads tokens at least.
    """
    return tuple(_begun(text, config.max_len - 2) for text in _sentences(config, family, folder))


def _begun(text: str, most: int) -> str:
    """Whole words from the beginning of a text, of so many characters; one word in any case."""
    return text if len(text) <= most else text[: most + 1].rpartition(" ")[0] or text.split()[0]


def _sentences(config: TransformerConfig, family: str, folder: Path) -> tuple[str, ...]:
    if not has_tokenizer(folder):
        return (" ".join(str(i % config.vocab_size) for i in (5, 17, 3, 29, 17, 3, 8, 5, 17)),)
    if config.head == "masked-language-model":
        mask = "<mask>" if any(name in family for name in ANGLED_MASKS) else "[MASK]"
        return tuple(text.format(mask=mask) for text in MASKED)
    if config.kind == "encoder-decoder":
        prefix = "translate English to German: " if "t5" in family else ""
        return tuple(prefix + text for text in WHOLE_SENTENCES)
    if config.head == "classifier":
        return CLASSIFIED
    return CONTINUED if config.kind == "decoder" else WHOLE_SENTENCES[::-1]
