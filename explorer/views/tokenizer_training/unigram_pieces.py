"""A Unigram before one's eyes: fewer and fewer pieces, and the likeliest cuts of a sentence."""

from __future__ import annotations

import math

import streamlit as st

from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.components import chips
from explorer.inference import trained_tokenizers
from explorer.text import TextError
from explorer.text.plain_tokenizer import token_label, unigram_tokenizer
from explorer.text.unigram import (
    MAX_UNIGRAM_TEXT,
    UNIGRAM,
    Segmentation,
    UnigramPieces,
    segmentations,
)
from explorer.views.shared import widgets
from explorer.views.shared.step_slider import stepper

BUSY = "Learning from the text: some seconds for 100,000 characters"
TABLE_HEIGHT = 388
WORDS_SHOWN = 40
UNREADABLE = "has an unknown character"


def draw_unigram(text: str, most: int) -> int:
    """One size of the vocabulary; a larger one lies before it."""
    every = trained_tokenizers.unigram_sizes(text, most)
    names = [f"at most {size:,} pieces" for size in every]
    step = stepper("Size", "learn_size", names, 0, arrows=True)
    with st.spinner(BUSY):
        found = trained_tokenizers.unigram_pieces(text, every[step])
        larger = trained_tokenizers.unigram_pieces(text, every[step - 1]) if step else None
    notes = [
        "The library begins with the parts that stand at least twice in the different words of the "
        "text and drops those that the text misses least. It shows only what is left, so each size "
        "here is learnt anew.",
        f"{len(found.pieces):,} pieces, the unknown one among them. Every character stays.",
        "A score is the logarithm of a probability, but the library does not divide anew by what "
        f"is left: e^score sums to {sum(map(math.exp, found.scores.values())):.3g} over these "
        "pieces.",
    ]
    if len(text) > MAX_UNIGRAM_TEXT:
        notes.append(f"Learnt from the first {MAX_UNIGRAM_TEXT:,} of {len(text):,} characters.")
    widgets.notes(notes)
    kept, dropped = widgets.side_by_side(1, 1)
    with kept:
        st.markdown("**The pieces, the likeliest first**")
        _pieces(found.pieces[1:], "learn_pieces")
    with dropped:
        st.markdown("**Dropped since the larger size**")
        scores = found.scores
        gone = [piece for piece in (larger.pieces[1:] if larger else ()) if piece[0] not in scores]
        _pieces(gone, "learn_dropped")
    _sentence(found)
    return step


def _pieces(pieces: list[tuple[str, float]] | tuple[tuple[str, float], ...], key: str) -> None:
    table = {
        "piece": [token_label(piece, UNIGRAM) for piece, _ in pieces],
        "score": [f"{score:.3f}" for _, score in pieces],
        "e^score": [f"{math.exp(score):.3g}" for _, score in pieces],
    }
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key=key)


def _sentence(found: UnigramPieces) -> None:
    st.subheader("Your sentence by these pieces", anchor=False)
    text = page_context().choice.text
    if not text.strip():
        say("There is nothing to read yet: type a sentence.")
        return
    try:
        tokens = unigram_tokenizer(found).encode(text)
    except TextError as error:
        say(str(error))
        return
    chips(tokens, key="learn_sentence", text=text)
    words = text.split()[:WORDS_SHOWN]
    ways = {word: segmentations(f"▁{word}", found.scores) for word in dict.fromkeys(words)}
    table = {
        "word": list(ways),
        "likeliest cut": [_cut(way[0]) if way else UNREADABLE for way in ways.values()],
        "sum of scores": [f"{way[0].score:.3f}" if way else "" for way in ways.values()],
        "next": [_cut(way[1]) if len(way) > 1 else "no other" for way in ways.values()],
        "its sum": [f"{way[1].score:.3f}" if len(way) > 1 else "" for way in ways.values()],
    }
    st.caption(
        "Each word is cut so that the sum of the scores of its pieces is the largest. A score is "
        "the logarithm of a probability."
    )
    st.dataframe(table, hide_index=True, key="learn_cuts")


def _cut(way: Segmentation) -> str:
    return "  ".join(
        f"{token_label(piece, UNIGRAM)} {score:.3f}"
        for piece, score in zip(way.pieces, way.scores, strict=True)
    )
