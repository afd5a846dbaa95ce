"""Chat prompts: a model's template is rendered, and its special tokens are read as such."""

from dataclasses import dataclass, replace
from pathlib import Path

from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import cached
from explorer.text import READS_SPECIAL, PublishedTokenizer, TextError, Token
from explorer.text.checked_text import LARGEST_TEMPLATE
from models.loading.checkpoint import CheckpointError
from models.loading.checkpoint_tokenizer import chat_template

UNREADABLE = "The chat template of this model cannot be read: type a text instead."
TOO_LARGE = (
    f"The chat template of this model has {{length:,}} characters, and at most "
    f"{LARGEST_TEMPLATE:,} are read: type a text instead."
)


@dataclass(frozen=True)
class ChatPrompt:
    """The text that a template makes of messages, and its tokens, special tokens among them."""

    text: str
    tokens: tuple[Token, ...]


def template_of(opened: OpenModel, folder: Path) -> str | None:
    """The chat template that comes with a model; None where there is none.

    TextError says why it cannot be read, or that it is too long to be shown.
    """
    if not isinstance(opened.tokenizer, PublishedTokenizer):
        return None
    try:
        template = cached(opened, ("chat template",), lambda: chat_template(folder))
    except CheckpointError as error:
        raise TextError(str(error)) from error
    except OSError as error:  # its message names a path of this machine
        raise TextError(UNREADABLE) from error
    if template is not None and len(template) > LARGEST_TEMPLATE:
        raise TextError(TOO_LARGE.format(length=len(template)))
    return template


def render_chat(
    opened: OpenModel, template: str, system: str, user: str, *, add_generation_prompt: bool
) -> ChatPrompt:
    """The prompt of a user's message, after the system's message unless that is empty.

    TextError says in a sentence why the template makes none.
    """
    tokenizer = opened.tokenizer
    assert isinstance(tokenizer, PublishedTokenizer), "others come without a template"
    texts = {"system": system, "user": user} if system.strip() else {"user": user}
    messages = [{"role": role, "content": text} for role, text in texts.items()]

    def make() -> ChatPrompt:
        text = tokenizer.render(template, messages, add_generation_prompt=add_generation_prompt)
        return ChatPrompt(text, tokenizer.reading_prompts().encode(text))

    key = ("chat", template, system, user, add_generation_prompt)
    return cached(opened, key, make)


def reading_prompts(opened: OpenModel) -> OpenModel:
    """The same model, with a tokenizer that reads special tokens in a text as such."""
    tokenizer = opened.tokenizer
    if not isinstance(tokenizer, READS_SPECIAL):
        return opened
    reader = replace(opened, tokenizer=tokenizer.reading_prompts())
    return cached(opened, ("reading prompts",), lambda: reader, lambda _: 0)


def typed_as_letters(opened: OpenModel, text: str) -> tuple[str, ...]:
    """The names of special tokens in a text that the model reads as letters; each name once."""

    def special_names(reader: OpenModel) -> dict[str, None]:
        try:
            tokens = reader.tokenizer.encode(text)
        except TextError:
            return {}
        spans = [text[token.start : token.end].strip() for token in tokens if token.special]
        return dict.fromkeys(filter(None, spans))

    def names() -> tuple[str, ...]:
        as_special = special_names(opened)
        return tuple(n for n in special_names(reading_prompts(opened)) if n not in as_special)

    return cached(opened, ("typed special tokens", text), names)
