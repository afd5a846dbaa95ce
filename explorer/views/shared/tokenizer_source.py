"""What a tokenizer is learnt from, and of how many rules: chosen here, known on other pages too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.app import url
from explorer.app.context import TEXT_LIMIT
from explorer.app.controls import one_of
from explorer.inference import trained_tokenizers
from explorer.text import TextError
from explorer.text.bpe_training import BPE, WORDPIECE
from explorer.text.limits import checked
from explorer.text.unigram import UNIGRAM

WAYS = (BPE, WORDPIECE, UNIGRAM)
OWN, FILE = "Words of your own", "A file of your own"
RULES = ("20", "50", "100", "200", "500", "1000")
FIRST_RULES = "100"
CHOICES = {"learn_from": trained_tokenizers.SHIPPED[0], "learn_rules": FIRST_RULES, "learn_own": ""}
MOST_BYTES = 4 * trained_tokenizers.MOST_CHARACTERS
"""No longer file of UTF-8 can fit; it is refused unread."""

KEPT = "_learn_file"
"""Where the session keeps the text of a file, which no address holds."""

KEPT_HERE: dict[str, Any] = {"persist_state": "session"}


@dataclass(frozen=True)
class Brought:
    """The text of a file, and which upload it came by: only another one is read again."""

    upload: str
    text: str


def chosen() -> tuple[str, int]:
    """The same text and number for a page that does not draw these choices; in its address too."""
    found = {key: _standing(key, first) for key, first in CHOICES.items()}
    most = found["learn_rules"] if found["learn_rules"] in RULES else FIRST_RULES
    name = found["learn_from"]
    if name == FILE:
        return _kept(), int(most)
    if name == OWN:
        return _fits(found["learn_own"]), int(most)
    return trained_tokenizers.shipped(
        name if name in trained_tokenizers.SHIPPED else trained_tokenizers.SHIPPED[0]
    ), int(most)


def summary() -> str:
    """What stands behind `chosen`, in one sentence."""
    name, most = (_standing(key, CHOICES[key]) for key in ("learn_from", "learn_rules"))
    is_known = name in (*trained_tokenizers.SHIPPED, OWN, FILE)
    return (
        f"Learnt here: from “{name if is_known else trained_tokenizers.SHIPPED[0]}”, at most "
        f"{most if most in RULES else FIRST_RULES} rules. No tokens are added at the ends; what "
        "cannot be read is one unknown token."
    )


def _standing(key: str, first: str) -> str:
    found = url.current(key) or first
    if found != first:
        url.write(key, found)
    return found


def source() -> str:
    """The text that is learnt from; TextError says why it cannot be."""
    chosen = one_of(
        "Learn from", "learn_from", (*trained_tokenizers.SHIPPED, OWN, FILE), **KEPT_HERE
    )
    if chosen == OWN:
        return _own()
    if chosen == FILE:
        return _file()
    return trained_tokenizers.shipped(chosen)


def most_rules() -> int:
    return int(one_of("Learn at most", "learn_rules", RULES, FIRST_RULES, **KEPT_HERE))


def way() -> str:
    return one_of("How", "learn_how", WAYS, **KEPT_HERE)


def _own() -> str:
    typed = st.text_area(
        "Your words",
        **url.bound("learn_own"),
        persist_state="session",
        placeholder="Type or paste a text; a longer one can be brought as a file",
    )
    return _fits(str(typed or ""))


def _fits(words: str) -> str:
    """Words of one's own, which are refused rather than cut, on every page."""
    if len(words) > TEXT_LIMIT:
        raise TextError(
            f"Your words have {len(words):,} characters; {TEXT_LIMIT:,} fit into the "
            "address, so bring a longer text as a file."
        )
    return words


def _file() -> str:
    """The text of a file; it is too long for the address, so a link does not hold it."""
    st.caption(
        f"A plain text of at most {trained_tokenizers.MOST_CHARACTERS:,} characters. "
        "A link does not hold it: who opens it brings the file again."
    )
    brought = st.file_uploader("A text file", key="learn_file", on_change=_forget)
    if brought is None:  # removed, or brought before another page was looked at
        return _kept()
    kept: Brought | None = st.session_state.get(KEPT)
    if kept is None or kept.upload != brought.file_id:
        _forget()  # what is refused is not kept
        if brought.size > MOST_BYTES:
            raise TextError(
                f"The file has {brought.size:,} bytes; at most "
                f"{trained_tokenizers.MOST_CHARACTERS:,} characters fit, so bring a part of it."
            )
        st.session_state[KEPT] = Brought(brought.file_id, _read(brought.getvalue()))
    return _kept()


def _read(content: bytes) -> str:
    try:
        return checked(content.decode("utf-8-sig"), trained_tokenizers.MOST_CHARACTERS)
    except UnicodeDecodeError:
        raise TextError(
            "The file is not text in UTF-8; save it as plain text in UTF-8 and bring it again."
        ) from None


def _kept() -> str:
    kept: Brought | None = st.session_state.get(KEPT)
    return kept.text if kept else ""


def _forget() -> None:
    """For the callback: the file was removed, or another was brought."""
    st.session_state.pop(KEPT, None)
