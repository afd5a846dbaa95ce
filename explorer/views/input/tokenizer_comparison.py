"""Every token of the sentence with its ID, and the sentence under several tokenizers."""

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

import streamlit as st

from explorer.app import address, widget_state
from explorer.app.context import PageContext, config_of
from explorer.app.controls import note_invalid, say_invalid
from explorer.app.messages import say
from explorer.app.session import redraw
from explorer.catalog import ModelError, in_a_sentence
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.opened_model import OpenModel
from explorer.catalog.tokenizers import tokenizer_in
from explorer.charts.figure_data import WINDOW
from explorer.components.chips import chips
from explorer.inference import trained_tokenizers
from explorer.text import AnyTokenizer, TextError, Token
from explorer.text.plain_tokenizer import PlainTokenizer
from explorer.text.token_labels import texts
from explorer.text.visible_text import cut, in_quotes, readable
from explorer.views.shared import tokenizer_source, widgets
from explorer.views.shared.tables import table
from models.loading.checkpoint import CheckpointError

LONGEST_DIFFERENCE = 24
ROWS_IN_SIGHT = 15
"""The most tokens whose table is no higher than a small window."""
WORDS_COMPARED = 50
"""Words after the first difference that are compared: the cost is their square."""


def difference(text: str, back: str) -> str:
    """In one sentence; empty if the decoded text is the same."""
    if text == back:
        return ""
    if "".join(text.split()) == "".join(back.split()):
        return "Decoding loses or adds spaces; every other character is the same."
    if text.casefold() == back.casefold():
        return "Decoding loses capitals; every letter is otherwise the same."
    words, decoded = text.split(), back.split()
    pairs = enumerate(zip(words, decoded, strict=False))
    shorter = min(len(words), len(decoded))
    start = next((at for at, (word, decoded_word) in pairs if word != decoded_word), shorter)
    before, after = words[start : start + WORDS_COMPARED], decoded[start : start + WORDS_COMPARED]
    _, _, end, _, new_end = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()[0]
    old, new = (
        in_quotes(cut(readable(" ".join(part)), LONGEST_DIFFERENCE)) if part else "nothing"
        for part in (before[:end], after[:new_end])
    )
    if not before[:end]:
        return f"Decoding adds {new} before word {start + 1}."
    return f"The first difference is at word {start + 1}: {old} is decoded as {new}."


TRAINED_HERE = "Trained here: "
MOST_BYTES = 12
LONGEST_NAME = 30


def draw_token_table(context: PageContext) -> None:
    """Every token with its ID, its characters and their bytes; then the decoded text."""
    forward = context.forward
    tokens, text = forward.placed, forward.typed
    columns = {
        "position": list(range(len(tokens))),
        "token": texts(tokens),
        "token ID": [token.id for token in tokens],
        "characters": [
            "special token" if token.start == token.end else f"{token.start}–{token.end - 1}"
            for token in tokens
        ],
        "bytes of the characters": [_bytes(text[token.start : token.end]) for token in tokens],
    }
    height = {"height": WINDOW} if len(tokens) > ROWS_IN_SIGHT else {"most_rows": ROWS_IN_SIGHT}
    table(columns, key="tokens_table", **height)
    if context.choice.pair:
        return
    try:
        st.text(decoding_note(context.opened.tokenizer.decode, forward.tokens, forward.text))
    except TextError as error:
        st.text(str(error))


def _bytes(characters: str) -> str:
    encoded = characters.encode()
    return encoded[:MOST_BYTES].hex(" ") + (" …" if len(encoded) > MOST_BYTES else "")


def draw_comparison(context: PageContext) -> None:
    """The chosen tokenizers one below the other; nothing is computed while the panel is closed."""
    title, is_named = "Compare with other tokenizers", address.is_named("beside")
    with st.expander(title, is_named, key="beside_open", on_change="rerun") as panel:
        if panel.open:
            _draw_tokenizers(context)


def _draw_tokenizers(context: PageContext) -> None:
    mine, text = context.choice.model, context.forward.text
    trained = [TRAINED_HERE + algorithm for algorithm in tokenizer_source.ALGORITHMS]
    chosen = _choose([*trained, *(name for name in context.models if name != mine)], mine)
    st.caption(tokenizer_source.training_summary())
    widgets.page_links("tokenizer_training")
    for place, name in enumerate((mine, *chosen)):
        try:
            tokenizer = _tokenizer(name, context.models)
            tokens = tokenizer.encode(text)
            st.text(f"{name} · {len(tokens):,} tokens, vocabulary of {tokenizer.vocab_size:,}")
            chips(tokens, key=f"beside_{place}")
            st.caption(decoding_note(tokenizer.decode, tokens, text))
        except (TextError, ModelError) as error:
            st.text(name)
            say(str(error))


def _choose(names: Sequence[str], mine: str) -> list[str]:
    """The tokenizers to compare with the chosen model's; a note names those that do not exist."""
    is_chosen, most = widget_state.has("beside"), address.row_of("beside").most
    usual = list(names[: len(tokenizer_source.ALGORITHMS)])
    requested = widget_state.get("beside") if is_chosen else address.values_of("beside")
    in_address = [value for name, value in address.everything() if name == "beside"]
    if not is_chosen and requested != in_address:
        address.write("beside", requested)
        redraw()  # a widget takes from the address what it had when the run began
    if requested:
        widget_state.put("beside", [name for name in requested if name in names][:most])
    picked: list[str] = st.multiselect(
        options=names,
        default=usual,
        max_selections=most,
        persist_state="session",
        **address.bound("beside"),
    )
    if notes := invalid_names(requested, names, mine):
        note_invalid("beside", (mine, picked), " ".join(notes))
    say_invalid("beside", (mine, picked))
    return picked


def invalid_names(requested: Sequence[str], names: Sequence[str], mine: str) -> list[str]:
    """A sentence for each name that cannot be compared with the chosen model's tokenizer."""
    notes = [
        f"{name} is the chosen model now, so its tokenizer comes first."
        if name == mine
        else f"“Compare with” has no “{cut(name, LONGEST_NAME)}” here."
        for name in dict.fromkeys(requested)
        if name not in names
    ]
    most = address.row_of("beside").most
    beyond = [name for name in dict.fromkeys(requested) if name in names][most:]
    if beyond:
        left = ", ".join(in_quotes(cut(name, LONGEST_NAME)) for name in beyond)
        notes.append(f"At most {most} can be compared; left out: {left}.")
    return notes


def decoding_note(decode: Callable[[list[int]], str], tokens: Sequence[Token], text: str) -> str:
    """Whether the token IDs without the special ones decode to the same text."""
    decoded = decode([token.id for token in tokens if not token.special])
    return difference(text, decoded) or "The token IDs decode back to exactly your text."


def _tokenizer(name: str, models: Mapping[str, ModelEntry]) -> AnyTokenizer | PlainTokenizer:
    if name.startswith(TRAINED_HERE):
        text, most = tokenizer_source.chosen_training()
        return trained_tokenizers.trained_tokenizer(text, name.removeprefix(TRAINED_HERE), most)
    entry = models[name]
    try:
        return tokenizer_in(entry.folder, entry.family, config_of(entry))
    except (CheckpointError, OSError) as error:
        why = in_a_sentence(error)
        raise ModelError(f"The model {entry.title} cannot be opened: {why}") from error


def tokens_code(opened: OpenModel, text: str, pair: str) -> None:
    tokens = opened.tokenizer.encode(text, pair or None)
    ids = [token.id for token in tokens]
    print(ids, [token.label for token in tokens])
