"""Which of the app's models can read all of a text; no weights are loaded for that."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from explorer.catalog import in_a_sentence
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pretrained_models import FIRST
from explorer.catalog.tokenizers import tokenizer_in
from explorer.inference.forward_pass import ForwardPassError, encode_text, unknown, unknown_words
from explorer.inference.results_cache import cached
from explorer.text import READS_SPECIAL, TextError
from models.loading.checkpoint import CheckpointError
from models.loading.folder_config import OURS

MOST_TRIED = 12
"""Each tokenizer must be opened, and those of published models are large."""


@dataclass(frozen=True)
class Unknown:
    """The words of a text that a model does not know."""

    sentences: tuple[str, ...]
    """They name the unknown words; empty where the model cannot read the text at all."""
    reader: str
    """The name of a model that reads all of it; empty if there is none."""


def unknown_of(
    opened: OpenModel,
    text: str,
    pair: str,
    models: Mapping[str, ModelEntry],
    pair_of: Callable[[ModelEntry], str],
) -> Unknown | None:
    """The words of one or two texts that an open model does not know; None where it knows all.

    Looked up once for each text and list of models.
    """
    if not text.strip():
        return None

    def look_up() -> Unknown | None:
        try:
            tokens = encode_text(opened.tokenizer, opened.config, text, pair)
        except ForwardPassError:
            sentences: tuple[str, ...] = ()
        else:
            sentences = unknown(opened, text, pair, tokens)
            if not sentences:
                return None
        reader = find_reader(models.values(), models[opened.name], text, pair_of)
        return Unknown(sentences, reader.name if reader else "")

    return cached(opened, ("unknown", text, pair, tuple(models)), look_up)


def find_reader(
    models: Iterable[ModelEntry], here: ModelEntry, text: str, pair_of: Callable[[ModelEntry], str]
) -> ModelEntry | None:
    """The first other model that reads all of a text, with the second text that it takes.

    Published models of the same kind and head are tried first, then the first pretrained model,
    then other published models, then all others in their order. At most twelve tokenizers are
    opened, and no weights are read.
    """
    others = [entry for entry in models if entry.name != here.name and entry.config is not None]
    for entry in sorted(others, key=lambda entry: _unlike(here, entry))[:MOST_TRIED]:
        if not why_unreadable(entry, text, pair_of(entry)):
            return entry
    return None


def _unlike(here: ModelEntry, entry: ModelEntry) -> tuple[bool, bool, bool]:
    """A sort key: entries that are most like `here` come first."""
    is_ours = entry.family == OURS
    return is_ours or _made_for(entry) != _made_for(here), entry.name != FIRST, is_ours


def _made_for(entry: ModelEntry) -> tuple[str, str] | None:
    return None if entry.config is None else (entry.config.kind, entry.config.head)


def why_unreadable(
    entry: ModelEntry, text: str, pair: str = "", *, reads_prompts: bool = False
) -> str:
    """Why this model cannot read all of a text, or pair of texts; empty if it can.

    The text is too long, a word is unknown, or the model cannot be opened. With `reads_prompts`
    special tokens in the text are read as such.
    """
    if entry.config is None:
        return str(entry.fault)
    try:
        tokenizer = tokenizer_in(entry.folder, entry.family, entry.config)
        if reads_prompts and isinstance(tokenizer, READS_SPECIAL):
            tokenizer = tokenizer.reading_prompts()
        tokens = encode_text(tokenizer, entry.config, text, pair, reader=entry.title)
        words, name = unknown_words(tokenizer, text, pair, tokens)
    except (ForwardPassError, TextError, CheckpointError, OSError) as error:
        return in_a_sentence(error)
    return f"{entry.title} does not know {words} and reads {name} instead." if words else ""
