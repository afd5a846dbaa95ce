"""One step of a tokenizer's training: the merges of BPE and WordPiece, the pieces of Unigram."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from explorer.app.messages import say
from explorer.charts.figure_data import WINDOW
from explorer.components.chips import chips
from explorer.inference import trained_tokenizers
from explorer.text import TextError, steps
from explorer.text.bpe_training import (
    BPE,
    WORDPIECE,
    CountedPair,
    MergeTraining,
    PairCounts,
    beginning,
)
from explorer.text.plain_tokenizer import tokenizer_after, unigram_tokenizer, visible_token
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

MERGES_COST = "Training on the text: about a second per megabyte"
PAIRS_IN_SIGHT = 15
EXCERPT = 400
"""Characters of the training text that are shown in tokens."""

Piece = TypeVar("Piece")


@dataclass(frozen=True)
class ExcerptToken:
    """A token of the training text as a chip; none of them is special."""

    label: str
    id: int
    special: bool = False


def draw_merges(text: str, most: int, algorithm: str, sentence: str) -> int:
    """One step of the training on `text`, and the sentence encoded with the merges so far."""
    with st.spinner(MERGES_COST):
        training = trained_tokenizers.trained_merges(text, most, algorithm)
        training.keep_states()
    count = len(training.merges)
    step = stepper("learn_step", count + 1, count // 2, arrows=True)
    counts = training.counts_after(step)
    _draw_excerpt(training, text, step)
    pairs, vocabulary = widgets.side_by_side(1, 1)
    with pairs:
        st.markdown("**Pairs counted now**")
        columns = {
            "first": [_label(training, pair.left) for pair in counts.pairs],
            "second": [_label(training, pair.right) for pair in counts.pairs],
            "token IDs": [f"{pair.left}, {pair.right}" for pair in counts.pairs],
            "count": [pair.count for pair in counts.pairs],
        }
        if training.algorithm == WORDPIECE:
            columns["textbook score"] = [f"{pair.score:.3g}" for pair in counts.pairs]
        table(columns, most_rows=PAIRS_IN_SIGHT, key="learn_pairs")
    with vocabulary:
        st.markdown("**Merged so far, newest first**")
        merges = [*enumerate(training.merges[:step], 1)][::-1]
        labels = [[_label(training, token) for token in merge] for _, merge in merges]
        merged = {
            "merge": [at for at, _ in merges],
            "token": [new for *_, new in labels],
            "token ID": [new for _, (*_, new) in merges],
            "merged from": [f"{left}  {right}" for left, right, _ in labels],
        }
        table(merged, height=WINDOW, key="learn_vocabulary")
    if count < most:
        some = "1 merge" if count == 1 else f"{count:,} merges"
        st.caption(
            f"Training ends after {some}, though {most:,} were allowed: by then every word of "
            "the text is one token."
        )
    widgets.notes(_summary(training, counts, step))
    st.caption("A token ID is an index into the vocabulary, not a byte.")
    st.header("Your sentence with these merges", anchor=False)
    encoder = tokenizer_after(training, step)
    if encoding := encode_sentence(sentence, lambda sentence: steps(encoder, sentence)):
        at = stepper("learn_encode", len(encoding), len(encoding) - 1)
        st.text(encoding[at].action)
        changed = [place for place, piece in enumerate(encoding[at].pieces) if piece.changed]
        chips(encoding[at].pieces, key="learn_sentence", highlight=changed)
    return step


def _summary(training: MergeTraining, counts: PairCounts, step: int) -> list[str]:
    """The last merge, the size of the vocabulary, and the next merge."""
    sentences = []
    if step:
        left, right, new = (_label(training, token) for token in training.merges[step - 1])
        sentences.append(f"Merge {step}: {left} and {right} became {new}.")
    start = "bytes" if training.algorithm == BPE else "letters"
    alphabet = training.alphabet - (training.algorithm == WORDPIECE)
    unknown = ", the unknown token" if training.algorithm == WORDPIECE else ""
    size = len(training.vocabulary(step))
    sentences.append(
        f"The vocabulary has {alphabet:,} {start}{unknown} and {size - training.alphabet:,} merged "
        f"tokens, {size:,} in all. The text is {counts.tokens:,} tokens long."
    )
    if not counts.pairs:
        return [*sentences, "No pair is left: every word is one token, so training ends."]
    first = counts.pairs[0]
    next_merge = (
        f"Next, {_pair(training, first)} are merged: they occur together {_times(first.count)}"
    )
    if counts.ties == 1:
        sentences.append(f"{next_merge}, more often than any other of {counts.n_pairs:,} pairs.")
    else:
        others = counts.ties - 1
        tied = "does one other pair" if others == 1 else f"do {others:,} other pairs"
        sentences.append(
            f"{next_merge}, and so {tied} of {counts.n_pairs:,}. A tie goes to the lowest ID of "
            f"the first token, then of the second: here {first.left} and {first.right}."
        )
    if training.algorithm == WORDPIECE:
        best = counts.scored[0]
        would = "the same pair"
        if (first.left, first.right) != (best.left, best.right):
            would = f"{_pair(training, best)}, found together {_times(best.count)}"
        sentences.append(
            "The tokenizers library trains WordPiece by merging the most frequent pair. Textbooks "
            "divide the count of a pair by those of its two tokens, which would merge "
            f"{would} (score {best.score:.3g}, against {first.score:.3g})."
        )
    return sentences


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _draw_excerpt(training: MergeTraining, text: str, step: int) -> None:
    excerpt = beginning(text, EXCERPT)
    ids = training.ids_of(excerpt, step)
    newest = training.merges[step - 1][2] if step else None
    marked = [place for place, token in enumerate(ids) if token == newest]
    part = f", first {len(excerpt):,} of {len(text):,} characters" if excerpt != text else ""
    note = f"{len(marked):,} marked, from the newest merge" if step else "no merge yet"
    st.caption(f"**The text so far**{part}: {note}.")
    chips(
        [ExcerptToken(_label(training, token), token) for token in ids],
        key="learn_text",
        highlight=marked,
        height=200,
    )


def encode_sentence(sentence: str, encode: Callable[[str], Sequence[Piece]]) -> Sequence[Piece]:
    """The encoded sentence; empty, and the page says why, if it cannot be encoded."""
    try:
        if sentence.strip():
            return encode(sentence)
        say("There is nothing to read yet: type a sentence.")
    except TextError as error:
        say(str(error))
    return ()


def _pair(training: MergeTraining, pair: CountedPair) -> str:
    return f"{_label(training, pair.left)} and {_label(training, pair.right)}"


def _label(training: MergeTraining, token: int) -> str:
    return visible_token(training.tokens[token], training.algorithm)


UNIGRAM_COST = "Training on the text: some seconds for 100,000 characters"
WORDS_SHOWN = 40
UNKNOWN_CHARACTER = "has an unknown character"
LONGEST_PRINTED = 2_500
"""Characters of a text that the script may contain."""


def draw_unigram(text: str, most: int, _: str, sentence: str) -> int:
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
