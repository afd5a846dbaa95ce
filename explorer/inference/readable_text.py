"""Whether a model of the list can read all of a text, and which can; found without weights."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from explorer.catalog import in_a_sentence
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pretrained_models import FIRST
from explorer.catalog.tokenizers import tokenizer_in
from explorer.inference.forward_pass import ForwardPassError, encode_text, unknown, unknown_words
from explorer.inference.results_cache import kept
from explorer.text import PublishedTokenizer, TextError
from models.loading.checkpoint import CheckpointError
from models.loading.folder_config import OURS

MOST_TRIED = 12
"""Each tokenizer has to be read, and those of published models are large."""


@dataclass(frozen=True)
class Unknown:
    """What a model does not know of a text."""

    said: tuple[str, ...]
    """The unknown words in a sentence; empty where the model reads none of the text."""
    reader: str
    """The name of a model that reads all of it; empty if there is none."""


def unknown_of(
    opened: OpenModel,
    text: str,
    pair: str,
    models: Mapping[str, ModelEntry],
    pair_of: Callable[[ModelEntry], str],
) -> Unknown | None:
    """What an opened model does not know of a text, or two; None where it reads all, or nothing is.

    Looked up once for a text and the models that there are.
    """
    if not text.strip():
        return None

    def look_up() -> Unknown | None:
        try:
            tokens = encode_text(opened.tokenizer, opened.config, text, pair)
        except ForwardPassError:
            said: tuple[str, ...] = ()
        else:
            said = unknown(opened, text, pair, tokens)
            if not said:
                return None
        found = find_reader(models.values(), models[opened.name], text, pair_of)
        return Unknown(said, found.name if found else "")

    return kept(opened, ("unknown", text, pair, tuple(models)), look_up)


def find_reader(
    models: Iterable[ModelEntry],
    here: ModelEntry,
    text: str,
    pair_of: Callable[[ModelEntry], str],
) -> ModelEntry | None:
    """The first other model that reads all of a text, with the second text that it takes.

    First those that were published for the same as this one, then the pretrained model that is met
    first, then other published ones, then all others in their order. No weights are read; the
    tokenizers of at most twelve are.
    """
    others = [entry for entry in models if entry.name != here.name and entry.config is not None]
    for entry in sorted(others, key=lambda each: _unlike(here, each))[:MOST_TRIED]:
        if not why_unreadable(entry, text, pair_of(entry)):
            return entry
    return None


def _unlike(here: ModelEntry, entry: ModelEntry) -> tuple[bool, bool, bool]:
    """Sorted by this, what is most like the first comes first."""
    is_ours = entry.family == OURS
    return is_ours or _made_for(entry) != _made_for(here), entry.name != FIRST, is_ours


def _made_for(entry: ModelEntry) -> tuple[str, str] | None:
    return None if entry.config is None else (entry.config.kind, entry.config.head)


def why_unreadable(
    entry: ModelEntry, text: str, pair: str = "", *, reads_prompts: bool = False
) -> str:
    """What this model cannot read of a text, or pair of texts, in a sentence; empty if nothing.

    A text that is too long is not read at all, an unknown word as the token for such words.
    Of a model that cannot be opened it is why not. With `reads_prompts` the special tokens that
    are written in the text are read as such.
    """
    if entry.config is None:
        return str(entry.fault)
    try:
        tokenizer = tokenizer_in(entry.folder, entry.family, entry.config)
        if reads_prompts and isinstance(tokenizer, PublishedTokenizer):
            tokenizer = tokenizer.reading_prompts()
        tokens = encode_text(tokenizer, entry.config, text, pair, reader=entry.short_name)
        words, name = unknown_words(tokenizer, text, pair, tokens)
    except (ForwardPassError, TextError, CheckpointError, OSError) as error:
        return in_a_sentence(error)
    return f"{entry.short_name} does not know {words} and reads {name} instead." if words else ""
