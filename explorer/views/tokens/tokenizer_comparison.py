"""One sentence under several tokenizers: those of models, and those that were learnt here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from explorer.app import url
from explorer.app.context import page_context
from explorer.app.controls import say_invalid
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog.entries import LibraryError
from explorer.catalog.tokenizers import tokenizer_in
from explorer.components import chips
from explorer.inference import trained_tokenizers
from explorer.inference.forward_pass import ForwardPass
from explorer.text import AnyTokenizer, TextError, Token
from explorer.text.labels import cut
from explorer.text.own_tokenizers import MadeHere
from explorer.text.round_trip import lost
from explorer.views.shared import tokenizer_source, widgets
from models.loading.checkpoint import CheckpointError

HERE = "Learnt here: "
MOST, MOST_BYTES = 6, 12
LONGEST_WISH = 30
Reader = AnyTokenizer | MadeHere


def one_by_one(forward: ForwardPass) -> None:
    """Every token with its number, its characters and their bytes; and the way back."""
    st.subheader("Token by token", anchor=False)
    tokens, text = forward.placed, forward.typed
    st.dataframe(
        {
            "position": list(range(len(tokens))),
            "token": [token.label for token in tokens],
            "number": [token.id for token in tokens],
            "characters": [_characters(token) for token in tokens],
            "bytes of the characters": [_bytes(text[token.start : token.end]) for token in tokens],
        },
        hide_index=True,
        height=min(420, 38 + 35 * len(tokens)),
        key="tokens_table",
    )
    if not page_context().choice.pair:
        st.text(f"Back from numbers to text: {_back(forward)}")


def _back(forward: ForwardPass) -> str:
    try:
        return back_again(page_context().opened.tokenizer.decode, forward.tokens, forward.text)
    except TextError as error:
        return str(error)


def _characters(token: Token) -> str:
    if token.start == token.end:
        return "added for the model"
    return f"{token.start}–{token.end - 1}"


def _bytes(characters: str) -> str:
    found = characters.encode()
    return found[:MOST_BYTES].hex(" ") + (" …" if len(found) > MOST_BYTES else "")


def beside(text: str) -> None:
    """The chosen tokenizers below each other: pieces, how many, and whether the text comes back.

    Closed, and nothing of it made, until somebody wants to see it or a link has it open.
    """
    is_asked = url.is_asked("beside")
    title = "The same sentence under other tokenizers"
    with st.expander(title, is_asked, key="beside_open", on_change="rerun") as panel:
        if panel.open:
            _beside(text)


def _beside(text: str) -> None:
    mine = page_context().choice.model
    here = [HERE + way for way in tokenizer_source.WAYS]
    chosen = _choose([*here, *(name for name in page_context().shelf if name != mine)], mine)
    st.caption(tokenizer_source.summary())
    widgets.ways_on("tokenizer_training")
    for place, name in enumerate((mine, *chosen)):
        try:
            _one(name, text, place)
        except (TextError, LibraryError) as error:
            st.text(name)
            say(str(error))


def _choose(names: Sequence[str], mine: str) -> list[str]:
    """Beside the chosen model's; what was wished for and does not stand there is said."""
    state, usual = st.session_state, list(names[: len(tokenizer_source.WAYS)])
    wishes = list(state["beside"] if "beside" in state else url.asked_all("beside"))
    found = [name for name in wishes if name in names][:MOST]
    if "beside" in state or found:
        state["beside"] = found
    picked: list[str] = st.multiselect(
        "Beside it",
        names,
        default=usual,
        max_selections=MOST,
        **url.bound("beside"),
        persist_state="session",
    )
    if vain := in_vain(wishes, names, mine):
        session().invalid["beside"] = (mine, picked), " ".join(vain)
    say_invalid("beside", (mine, picked))
    return picked


def in_vain(wishes: Sequence[str], names: Sequence[str], mine: str) -> list[str]:
    """What is wished for and cannot stand beside the chosen model's, in a sentence each."""
    notes = [
        f"{wish} is the chosen model now, so its tokenizer stands first."
        if wish == mine
        else f"“Beside it” has no “{cut(wish, LONGEST_WISH)}” here."
        for wish in dict.fromkeys(wishes)
        if wish not in names
    ]
    beyond = [wish for wish in dict.fromkeys(wishes) if wish in names][MOST:]
    if beyond:
        left = ", ".join(f"“{cut(wish, LONGEST_WISH)}”" for wish in beyond)
        notes.append(f"At most {MOST} stand beside it; left out: {left}.")
    return notes


def _one(name: str, text: str, place: int) -> None:
    tokenizer = _tokenizer(name)
    tokens = tokenizer.encode(text)
    st.text(f"{name} · {len(tokens):,} tokens of {tokenizer.vocab_size:,}")
    chips(tokens, key=f"beside_{place}")
    st.caption(back_again(tokenizer.decode, tokens, text))


def back_again(decode: Callable[[list[int]], str], tokens: Sequence[Token], text: str) -> str:
    """What the numbers give when they are read back, special tokens left out."""
    what = lost(text, decode([token.id for token in tokens if not token.special]))
    return what or "The numbers give back exactly this text."


def _tokenizer(name: str) -> Reader:
    if name.startswith(HERE):
        text, most = tokenizer_source.chosen()
        return trained_tokenizers.tokenizer(text, name.removeprefix(HERE), most)
    entry = page_context().shelf[name]
    if entry.config is None:
        raise LibraryError(f"The model {name} cannot be opened: {entry.fault}")
    try:
        return tokenizer_in(entry.folder, entry.family, entry.config)
    except (CheckpointError, OSError) as error:
        raise LibraryError(f"The model {name} cannot be opened: {error}") from error
