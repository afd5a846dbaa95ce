"""Text as evidence: the top-activating lines of a chosen text for the chosen head."""

from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.circuits.top_lines import (
    LineActivations,
    TokenizedLines,
    TopLine,
    activations_by_batch,
    activations_of,
    best_lines,
    built_in_lines,
    built_in_texts,
    measure,
    token_activations,
    tokenize_lines,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import or_stop
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components.chips import chips
from explorer.inference.results_cache import cached
from explorer.system import limits
from explorer.text import TextError
from explorer.text.checked_text import BYTES_OF_CHARACTER, decoded, lines_in
from explorer.text.number_format import three
from explorer.text.token_labels import label_at
from explorer.text.visible_text import cut, in_quotes, literal
from explorer.views.circuits.question_scores import cost_per_token
from explorer.views.shared.code_panel import Expression, code_panel, script
from explorer.views.shared.measurement import is_started, stop
from explorer.views.shared.tables import table

PASTED, FILE = "Pasted text", "Text file"
MOST_PASTED_LINES, SHORT = 50_000, 2_000
"""Most characters of a pasted text, and of a text that the code panel quotes."""
LARGE, LISTED, LONGEST = 3, 10, 120
MEASUREMENT = "lines"


MOST = {"norm": "this head writes most at", "weight": "the largest weight is that of the query"}


@dataclass
class EvidenceLines:
    """The uploaded text, which no address holds, and the lines that were searched last."""

    uploaded: str | None = None
    searched: tuple[str, ...] = ()


NOT_SEARCHED = "The view Text as evidence finds the top-activating lines of a text for this head."
MEASURES = {
    "Output norm": (
        "norm",
        "The largest norm of what the head writes at a token of the line, W_O times its output",
    ),
    "Largest weight": (
        "weight",
        "The largest attention weight in the line on a token other than the first",
    ),
}
"""Measures of how active a head is: the name of the tensor, also of the unit, and the meaning."""


def draw_evidence(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """The three top-activating lines of the chosen head, and a list of ten."""
    opened, at = context.opened, context.choice
    try:
        with adjust, st.container(horizontal=True):
            source = one_of("lines_from", (*built_in_texts(opened), PASTED, FILE))
            unit, meaning = MEASURES[one_of("excited_by", tuple(MEASURES))]
        if is_own := source in (PASTED, FILE):
            lines = lines_in(_own_text(source))
        else:
            lines = built_in_lines(opened, source)
        text = tokenize_lines(opened, lines)
    except TextError as error:
        st.text(str(error))
        return
    state_of(EvidenceLines).searched = lines
    activations = activations_of(opened, text)
    is_measured = activations.measured.tolist()
    tokens = sum(len(row) for row, done in zip(text.rows, is_measured, strict=True) if not done)
    cost = tokens * cost_per_token(opened)
    if tokens and is_started(MEASUREMENT, (opened.name, text.lines), cost):
        with bar(f"Reading {len(text.rows):,} lines", partial(stop, MEASUREMENT)) as report:
            or_stop(lambda: [report(done) for done in measure(opened, text, activations)])
    best = best_lines(activations, unit, at.layer, at.head, LISTED)
    for place, line in enumerate(best[:LARGE]):
        row = text.rows[line.line]
        key = "line tokens", tuple(token.id for token in row)
        measured = cached(opened, key, partial(token_activations, opened, [row]))
        values: Tensor = getattr(measured, unit)[0][at.layer, at.head]
        name = in_quotes(literal(label_at(row, line.token)))
        st.markdown(f"Line {line.line + 1}: {MOST[unit]} {name} ({unit} {three(line.value)})")
        shades, key_of = values.tolist(), f"line_{place}"
        chips(row, key=key_of, highlight=line.token, values=shades, unit=unit)
    _say_how_many(text, activations)
    draw_list(text, best, unit)
    st.caption(
        f"{meaning}. The first token and special tokens do not count: attention that finds nothing "
        "else rests there. One pass measures all heads, so you can change the head without a wait. "
        "The server stores these numbers under a digest of model and tokens, not the text."
    )
    own = "\n".join(lines) if is_own else ""
    own = own if len(own) <= SHORT else Expression('open("lines.txt", encoding="utf-8").read()')
    code = script(evidence_code, opened, source, own, unit, at.layer, at.head)
    code_panel(token_activations, script=code)


def _own_text(source: str) -> str:
    """The pasted text, or that of an uploaded file."""
    if source == PASTED:
        pasted = st.text_area(
            "Your text, line by line",
            key="evidence_text",
            max_chars=MOST_PASTED_LINES,
            placeholder="Type or paste lines; upload a longer text as a file",
            persist_state="session",
        )
        return str(pasted or "")
    lines, characters = limits.LINES.most, limits.LINE_CHARACTERS.most
    st.caption(
        f"Plain text in UTF-8, at most {lines:,} lines of at most {characters:,} characters. The "
        "server does not store it, and a link does not contain it."
    )
    state, most = state_of(EvidenceLines), lines * (characters + 1)
    upload = st.file_uploader(
        "Text file",
        key="evidence_file",
        max_upload_size=max(1, BYTES_OF_CHARACTER * lines * characters // limits.MB),
        on_change=lambda: setattr(state_of(EvidenceLines), "uploaded", None),
    )
    if upload is not None and state.uploaded is None:
        content = upload.getvalue()
        if len(content) > BYTES_OF_CHARACTER * most:
            raise TextError(
                f"The file has {len(content):,} bytes; at most {most:,} characters are read, so "
                "upload a part of it."
            )
        state.uploaded = decoded(content)
    return state.uploaded or ""


def draw_searched_lines(opened: OpenModel, layer: int, head: int) -> None:
    """The three top-activating lines of a head in the text that was searched last, if any was."""
    if not (lines := state_of(EvidenceLines).searched):
        st.caption(NOT_SEARCHED)
        return
    try:
        text = tokenize_lines(opened, lines)
    except TextError as error:
        st.caption(str(error))
        return
    activations = activations_of(opened, text)
    st.markdown("**Top-activating lines of the text that was searched last**")
    _say_how_many(text, activations)
    draw_list(text, best_lines(activations, "norm", layer, head, LARGE), "norm")


def _say_how_many(text: TokenizedLines, activations: LineActivations) -> None:
    count, measured = len(text.rows), int(activations.measured.sum())
    sentence = f"{count:,} lines."
    if measured < count:
        sentence = f"{measured:,} of {count:,} lines are measured."
    if text.cut:
        first = f"their first {max(map(len, text.rows)):,} tokens count."
        sentence += f" {text.cut:,} are longer than the model reads: {first}"
    st.caption(sentence)


def draw_list(text: TokenizedLines, best: list[TopLine], unit: str) -> None:
    """A table of the top-activating lines."""
    if best:
        table(
            {
                unit: [three(top.value) for top in best],
                "at": [label_at(text.rows[top.line], top.token) for top in best],
                "line": [f"{top.line + 1:,}" for top in best],
                "text": [cut(text.lines[top.line], LONGEST) for top in best],
            },
            right=(unit, "line"),
        )


def evidence_code(
    opened: OpenModel, source: str, text: str, by: str, layer: int, head: int
) -> None:
    lines = tokenize_lines(opened, lines_in(text) if text else built_in_lines(opened, source))
    config = opened.config
    activations = LineActivations.empty(len(lines.rows), config.n_layers, config.n_heads)
    for some, tokens in activations_by_batch(opened, lines.rows):
        activations.put(some, tokens)
    for top in best_lines(activations, by, layer, head, 10):
        print(top.line + 1, top.value, lines.lines[top.line])
