"""Unigram in training: fewer and fewer pieces, and the likeliest segmentations of a sentence."""

import math
from collections.abc import Sequence

import streamlit as st

from explorer.charts.figure_data import WINDOW
from explorer.components.chips import chips
from explorer.inference import trained_tokenizers
from explorer.text.plain_tokenizer import unigram_tokenizer, visible_token
from explorer.text.unigram import (
    MAX_UNIGRAM_TEXT,
    UNIGRAM,
    Segmentation,
    UnigramPieces,
    segmentations,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Expression, Script, script
from explorer.views.shared.step_slider import stepper
from explorer.views.shared.tables import table
from explorer.views.tokenizer_training.merges import encode_sentence

UNIGRAM_COST = "Training on the text: some seconds for 100,000 characters"
WORDS_SHOWN = 40
UNKNOWN_CHARACTER = "has an unknown character"
LONGEST_PRINTED = 2_500
"""Characters of a text that the script may contain."""


def draw_unigram(text: str, most: int, sentence: str) -> int:
    """The pieces of one vocabulary size, trained on `text`, and the sentence in these pieces."""
    sizes = trained_tokenizers.unigram_sizes(text, most)
    names = [f"at most {size:,} pieces" for size in sizes]
    step = stepper("learn_size", len(sizes), len(sizes) // 2, names=names, arrows=True)
    with st.spinner(UNIGRAM_COST):
        trained = trained_tokenizers.unigram_pieces(text, sizes[step])
        larger = trained_tokenizers.unigram_pieces(text, sizes[step - 1]) if step else None
    total = sum(map(math.exp, trained.scores.values()))
    left, right = widgets.side_by_side(1, 1)
    with left:
        _draw_pieces(trained.pieces[1:], "piece, likeliest first", "learn_pieces")
    with right:
        before = larger.pieces[1:] if larger else ()
        dropped = [piece for piece in before if piece[0] not in trained.scores]
        _draw_pieces(dropped, "dropped from the larger size", "learn_dropped")
    notes = [
        "The tokenizers library starts from substrings that occur at least twice among the "
        "distinct words of the text and drops those whose removal lowers the likelihood least. "
        "It returns only the final pieces, so each size is trained separately.",
        f"{len(trained.pieces):,} pieces, the unknown token among them. Single characters are "
        "never dropped.",
        "A score is a log-probability, but the library does not renormalize what is left: e^score "
        f"sums to {total:.3g} over these pieces.",
    ]
    if len(text) > MAX_UNIGRAM_TEXT:
        notes.append(f"Trained on the first {MAX_UNIGRAM_TEXT:,} of {len(text):,} characters.")
    widgets.notes(notes)
    _draw_segmentations(trained, sentence)
    return step


def _draw_pieces(pieces: Sequence[tuple[str, float]], title: str, key: str) -> None:
    columns = {
        title: [visible_token(piece, UNIGRAM) for piece, _ in pieces],
        "score": [f"{score:.3f}" for _, score in pieces],
        "e^score": [f"{math.exp(score):.3g}" for _, score in pieces],
    }
    table(columns, height=WINDOW, key=key)


def _draw_segmentations(trained: UnigramPieces, sentence: str) -> None:
    st.header("Your sentence in these pieces", anchor=False)
    tokens = encode_sentence(sentence, unigram_tokenizer(trained).encode)
    if not tokens:
        return
    chips(tokens, key="learn_sentence", text=sentence)
    words = dict.fromkeys(sentence.split()[:WORDS_SHOWN])
    best = [(word, segmentations(f"▁{word}", trained.scores)) for word in words]
    rows = [
        {
            "word": word,
            "likeliest": _pieces_text(ways[0]) if ways else UNKNOWN_CHARACTER,
            "sum of scores": f"{ways[0].score:.3f}" if ways else "",
            "second": _pieces_text(ways[1]) if len(ways) > 1 else "none",
            "its sum": f"{ways[1].score:.3f}" if len(ways) > 1 else "",
        }
        for word, ways in best
    ]
    st.caption(
        "Each word is segmented so that the sum of the scores of its pieces is largest. A score "
        "is a log-probability."
    )
    table(rows, key="learn_cuts")


def _pieces_text(segmentation: Segmentation) -> str:
    pieces = zip(segmentation.pieces, segmentation.scores, strict=True)
    return "  ".join(f"{visible_token(piece, UNIGRAM)} {score:.3f}" for piece, score in pieces)


def training_code(name: str, text: str, algorithm: str, most: int, step: int) -> Script:
    """The code that trains on the text of this name and prints this step."""
    if name in trained_tokenizers.TEXTS:
        text = Expression(f"trained_tokenizers.shipped_text({name!r})")
    elif len(text) > LONGEST_PRINTED:
        text = Expression('open("your text.txt", encoding="utf-8-sig", newline="").read()')
    if algorithm == UNIGRAM:
        return script(pieces_code, text, most, step)
    return script(merges_code, text, algorithm, most, step)


def merges_code(text: str, algorithm: str, most: int, step: int) -> None:
    training = trained_tokenizers.trained_merges(text, most, algorithm)
    counts = training.counts_after(step)
    for pair in counts.pairs:
        print(training.tokens[pair.left], training.tokens[pair.right], pair.count)
    print(counts.tokens)


def pieces_code(text: str, most: int, step: int) -> None:
    size = trained_tokenizers.unigram_sizes(text, most)[step]
    pieces = trained_tokenizers.unigram_pieces(text, size).pieces
    print(pieces[1:13])
