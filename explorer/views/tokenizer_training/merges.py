"""Learning a tokenizer before one's eyes: each rule of byte-pair encoding and of WordPiece."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.components import chips
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
from explorer.text.plain_tokenizer import token_label, tokenizer_after
from explorer.views.shared import widgets
from explorer.views.shared.step_slider import stepper

BUSY = "Learning from the text: a second for a megabyte"
EXCERPT = 400
"""Characters of the text that are shown in pieces."""

TABLE_HEIGHT = 388


@dataclass(frozen=True)
class Shown:
    """A token of the text as a chip; `special` is none."""

    label: str
    id: int
    special: bool = False


def draw_merges(text: str, most: int, way: str) -> int:
    """One step of byte-pair encoding or WordPiece: what was merged, and what will be."""
    with st.spinner(BUSY):
        found = trained_tokenizers.trained_merges(text, most, way)
        found.keep_states()
    names = [f"{step:,} of {len(found.rules):,}" for step in range(len(found.rules) + 1)]
    step = stepper("Rules", "learn_step", names, 0, arrows=True)
    counted = found.after(step)
    if len(found.rules) < most:
        st.caption(
            f"Learning ends after {_rules(len(found.rules))}, though {most:,} were allowed: by "
            "then every word of the text is one token."
        )
    widgets.notes(_said(found, counted, step))
    pairs, vocabulary = widgets.side_by_side(1, 1)
    with pairs:
        st.markdown("**Neighbours in the text, the most frequent first**")
        _pairs(found, counted)
    with vocabulary:
        st.markdown("**The vocabulary, the newest first**")
        _vocabulary(found, step)
    st.caption("A token's number is its place in the vocabulary. It is no byte.")
    _excerpt(found, text, step)
    _sentence(found, step)
    return step


def _said(found: MergeTraining, counted: PairCounts, step: int) -> list[str]:
    said = []
    if step:
        left, right, new = (_name(found, number) for number in found.rules[step - 1])
        said.append(f"Rule {step}: {left} and {right} became {new}.")
    start = "bytes" if found.way == BPE else "letters"
    alphabet = found.alphabet - (found.way == WORDPIECE)
    unknown = ", the unknown token" if found.way == WORDPIECE else ""
    size = len(found.vocabulary(step))
    said.append(
        f"The vocabulary: {alphabet:,} {start}{unknown} and {size - found.alphabet:,} learnt, "
        f"{size:,} in all. The text is {counted.tokens:,} tokens long."
    )
    if not counted.pairs:
        return [*said, "No two neighbours are left: every word is one token, so learning ends."]
    return [*said, *_next(found, counted)]


def _next(found: MergeTraining, counted: PairCounts) -> list[str]:
    first = counted.pairs[0]
    left, right = _name(found, first.left), _name(found, first.right)
    begun = f"Next, {left} and {right} are merged: they stand together {_times(first.count)}"
    if counted.equals == 1:
        said = [f"{begun}, more often than any other of {counted.kinds:,} pairs."]
    else:
        said = [
            f"{begun}, and so {_others(counted.equals - 1)} of {counted.kinds:,}. Of "
            "equals the one is merged whose first token has the lowest number, then whose second "
            f"has: here {first.left} and {first.right}."
        ]
    if found.way == WORDPIECE:
        said.append(_textbook(found, first, counted.scored[0]))
    return said


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count:,} rules"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _others(count: int) -> str:
    return "does one other pair" if count == 1 else f"do {count:,} other pairs"


def _textbook(found: MergeTraining, first: CountedPair, best: CountedPair) -> str:
    same = (first.left, first.right) == (best.left, best.right)
    pair = f"{_name(found, best.left)} and {_name(found, best.right)}"
    would = "the same pair" if same else f"{pair}, found together {_times(best.count)}"
    return (
        "The library's trainer of WordPiece takes the most frequent pair. Textbooks divide by how "
        f"often its two tokens stand anywhere: that would take {would} (score {best.score:.3g}, "
        f"against {first.score:.3g})."
    )


def _pairs(found: MergeTraining, counted: PairCounts) -> None:
    rows = counted.pairs
    table = {
        "first": [_name(found, pair.left) for pair in rows],
        "second": [_name(found, pair.right) for pair in rows],
        "token numbers": [f"{pair.left}, {pair.right}" for pair in rows],
        "times": [pair.count for pair in rows],
    }
    if found.way == WORDPIECE:
        table["textbook's score"] = [f"{pair.score:.3g}" for pair in rows]
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key="learn_pairs")


def _vocabulary(found: MergeTraining, step: int) -> None:
    done = list(enumerate(found.rules[:step], 1))[::-1]
    table = {
        "rule": [rule for rule, _ in done],
        "token": [_name(found, new) for _, (*_, new) in done],
        "token number": [new for _, (*_, new) in done],
        "made of": [f"{_name(found, left)}  {_name(found, right)}" for _, (left, right, _) in done],
    }
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key="learn_vocabulary")


def _excerpt(found: MergeTraining, text: str, step: int) -> None:
    st.subheader("The text so far", anchor=False)
    begun = beginning(text, EXCERPT)
    ids = found.pieces(begun, step)
    newest = found.rules[step - 1][2] if step else None
    marked = [place for place, number in enumerate(ids) if number == newest]
    is_cut = f"The first {len(begun):,} of its {len(text):,} characters. " if begun != text else ""
    says = f"{len(marked):,} marked: made by the newest rule." if step else "no rule yet."
    st.caption(f"{is_cut}{len(ids):,} tokens, {says}")
    chips(
        [Shown(_name(found, number), number) for number in ids],
        key="learn_text",
        highlight=marked,
        height=200,
    )


def _sentence(found: MergeTraining, step: int) -> None:
    """Reading is not learning: the rules so far, lowest first, on the reader's own sentence."""
    st.subheader("Your sentence by these rules", anchor=False)
    text = page_context().choice.text
    if not text.strip():
        say("There is nothing to read yet: type a sentence.")
        return
    try:
        taken = steps(tokenizer_after(found, step), text)
    except TextError as error:
        say(str(error))
        return
    names = [f"{place} of {len(taken) - 1}" for place in range(len(taken))]
    at = stepper("Reading", "learn_encode", names, len(taken) - 1)
    st.text(taken[at].action)
    changed = [place for place, piece in enumerate(taken[at].pieces) if piece.changed]
    chips(taken[at].pieces, key="learn_sentence", highlight=changed)


def _name(found: MergeTraining, number: int) -> str:
    return token_label(found.tokens[number], found.way)
