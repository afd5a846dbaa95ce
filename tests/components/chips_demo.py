"""Tokens as chips: `streamlit run tests/components/chips_demo.py`, ?show=words or strange."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import chips


@dataclass(frozen=True)
class Token:
    id: int
    label: str
    start: int
    end: int
    special: bool


def characters(text: str) -> list[Token]:
    return [Token(100 + i, c, i, i + 1, False) for i, c in enumerate(text)]


def words(text: str) -> list[Token]:
    found, at = [Token(1, "<s>", 0, 0, True)], 0
    for word in text.split(" "):
        start = max(0, at - 1)
        found.append(
            Token(10 + len(found), text[start : at + len(word)], start, at + len(word), False)
        )
        at += len(word) + 1
    return [*found, Token(2, "</s>", len(text), len(text), True)]


st.set_page_config(layout="wide")
st.title("Chips")
show = st.query_params.get("show", "words")
if show == "words":
    text = "the small black cat sat on the mat and slept while nobody was looking at it, they say"
    picked = chips(words(text), key="c", text=text, highlight=4, on_pick=lambda place: None)
    st.text(f"picked {picked}")
elif show == "strange":
    text = (
        "<script>document.title='hacked'</script> <img src=x onerror=alert(1)> "
        "שלום עולם مرحبا \U0001f469\u200d\U0001f469\u200d\U0001f467 \u202eevil\ttab\nline"
    )
    chips(words(text), key="c", text=text)
    chips(["plain", "strings", "ok"], key="p")
else:
    text = ("to be or not to be " * 6000)[: int(show)]
    chips(characters(text), key="c", text=text, height=400)
