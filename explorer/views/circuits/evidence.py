"""Text as evidence: the top-activating lines of a chosen text for the chosen head."""

from dataclasses import dataclass

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.circuits.top_lines import (
    LineActivations,
    TokenizedLines,
    TopLine,
    activations_by_batch,
    best_lines,
    built_in_lines,
    built_in_texts,
    lines_so_far,
    measure,
    token_activations,
    tokenized,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import or_stop
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel
from explorer.components import chips
from explorer.inference.results_cache import kept
from explorer.system import limits
from explorer.text import TextError
from explorer.text.checked_text import decoded, lines_in
from explorer.text.number_format import three
from explorer.text.token_labels import label_at
from explorer.text.visible_text import cut, literal
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Expression, code_panel, script
from explorer.views.shared.measurement import is_started, stoppable
from explorer.views.shared.tables import table

PASTED, FILE = "Pasted text", "Text file"
MOST_PASTED_LINES, SHORT = 50_000, 2_000
"""Characters of a pasted text, and of a text that stands in the script itself."""
LARGE, LISTED, LONGEST = 3, 10, 120
MB, BYTES_OF_CHARACTER = 1_000_000, 4
"""Of UTF-8, at most: a file that cannot fit is refused."""
MEASUREMENT = "lines"


@dataclass
class EvidenceLines:
    """The uploaded text, which no address holds, and the lines that were searched last."""

    uploaded: str | None = None
    searched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """One way to say how much a head acts: its name among the tensors, its unit and its words."""

    name: str
    unit: str
    meaning: str


OUTPUT_NORM = "Output norm"
NOT_SEARCHED = "The view Text as evidence finds the top-activating lines of a text for this head."
MEASURES = {
    OUTPUT_NORM: Measure(
        "norm",
        "norm",
        "The largest norm of what the head writes at a token of the line, W_O times its output",
    ),
    "Largest weight": Measure(
        "weight",
        "weight",
        "The largest attention weight in the line on another token than the first",
    ),
}
EVIDENCE_EXPLAINED = (
    "The first token and special tokens do not count: attention that finds nothing else rests "
    "there. One pass gives all heads, so another head is shown at once. What is kept on disk are "
    "these numbers under a digest of model and tokens, not the text."
)


def draw_evidence(context: PageContext, question: Question) -> None:
    """The three lines with the most of the chosen head, and a list of ten."""
    opened, at = context.opened, context.choice
    try:
        with st.container(horizontal=True):
            source = one_of("lines_from", (*built_in_texts(opened), PASTED, FILE))
            by = MEASURES[one_of("excited_by", tuple(MEASURES))]
        if is_own := source in (PASTED, FILE):
            lines = lines_in(_pasted_text() if source == PASTED else _file_text())
        else:
            lines = built_in_lines(opened, source)
        read = tokenized(opened, lines)
    except TextError as error:
        st.text(str(error))
        return
    state_of(EvidenceLines).searched = lines
    found = lines_so_far(opened, read)
    _measure_rest(opened, read, found)
    st.markdown(widgets.bold_title(widgets.head_title(context)))
    _say_how_many(read, found)
    best = best_lines(found, by.name, at.layer, at.head, LISTED)
    for place, line in enumerate(best[:LARGE]):
        _draw_line(opened, read, line, by, (at.layer, at.head), f"line_{place}")
    _draw_list(read, best, by)
    st.caption(f"{by.meaning}. {EVIDENCE_EXPLAINED}")
    text = "\n".join(lines) if is_own else ""
    text = text if len(text) <= SHORT else Expression('open("lines.txt", encoding="utf-8").read()')
    made = script(evidence_code, opened, source, text, by.name, at.layer, at.head)
    code_panel(token_activations, script=made)


def _pasted_text() -> str:
    text = st.text_area(
        "Your text, line by line",
        key="evidence_text",
        max_chars=MOST_PASTED_LINES,
        placeholder="Type or paste lines; upload a longer text as a file",
        persist_state="session",
    )
    return str(text or "")


def _file_text() -> str:
    """The text of a file; a link does not contain it, as it does not what is pasted."""
    lines, characters = limits.LINES.most, limits.LINE_CHARACTERS.most
    st.caption(
        f"Plain text in UTF-8, at most {lines:,} lines of at most {characters:,} characters. It is "
        "not kept, and a link does not contain it."
    )
    state, most = state_of(EvidenceLines), lines * (characters + 1)

    def forget() -> None:
        state_of(EvidenceLines).uploaded = None

    upload = st.file_uploader(
        "Text file",
        key="evidence_file",
        max_upload_size=max(1, BYTES_OF_CHARACTER * lines * characters // MB),
        on_change=forget,
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


def draw_known_lines(opened: OpenModel, layer: int, head: int) -> None:
    """The three lines with the most of a head in the text that was searched last, if any was."""
    if not (lines := state_of(EvidenceLines).searched):
        st.caption(NOT_SEARCHED)
        return
    try:
        read = tokenized(opened, lines)
    except TextError as error:
        st.caption(str(error))
        return
    found, by = lines_so_far(opened, read), MEASURES[OUTPUT_NORM]
    st.markdown("**Top-activating lines of the text that was searched last**")
    _say_how_many(read, found)
    _draw_list(read, best_lines(found, by.name, layer, head, LARGE), by)


def _measure_rest(opened: OpenModel, read: TokenizedLines, found: LineActivations) -> None:
    """The lines that are not measured yet; a button stops it, and it goes on from there."""
    left = [row for row, known in zip(read.rows, found.measured.tolist(), strict=True) if not known]
    per_token = sum(each.numel() for each in opened.model.last_stack.blocks.parameters())
    cost = per_token * sum(map(len, left))
    if not left or not is_started(MEASUREMENT, (opened.name, read.lines), cost):
        return
    with stoppable(MEASUREMENT, cost), bar(f"Reading {len(read.rows):,} lines") as report:

        def go_on() -> None:
            for done in measure(opened, read, found):
                report(done)

        or_stop(go_on)


def _say_how_many(read: TokenizedLines, found: LineActivations) -> None:
    count, known = len(read.rows), int(found.measured.sum())
    said = [
        f"{count:,} lines." if known == count else f"{known:,} of {count:,} lines are measured."
    ]
    if read.cut:
        most = max(map(len, read.rows))
        said.append(
            f"{read.cut:,} are longer than the model reads: the first {most:,} tokens count."
        )
    st.caption(" ".join(said))


def _draw_line(
    opened: OpenModel,
    read: TokenizedLines,
    line: TopLine,
    by: Measure,
    head: tuple[int, int],
    key: str,
) -> None:
    tokens = read.rows[line.line]
    activations = kept(
        opened,
        ("line tokens", tuple(token.id for token in tokens)),
        lambda: token_activations(opened, [tokens]),
    )
    values: Tensor = getattr(activations, by.name)[0][head]
    st.markdown(
        f"Line {line.line + 1}: {three(line.value)} at “{literal(label_at(tokens, line.token))}”"
    )
    chips(tokens, key=key, highlight=line.token, values=values.tolist(), unit=by.unit)


def _draw_list(read: TokenizedLines, best: list[TopLine], by: Measure) -> None:
    if best:
        table(
            {
                by.unit: [three(top.value) for top in best],
                "at": [label_at(read.rows[top.line], top.token) for top in best],
                "line": [f"{top.line + 1:,}" for top in best],
                "text": [cut(read.lines[top.line], LONGEST) for top in best],
            },
            right=(by.unit, "line"),
        )


def evidence_code(
    opened: OpenModel, source: str, text: str, by: str, layer: int, head: int
) -> None:
    read = tokenized(opened, lines_in(text) if text else built_in_lines(opened, source))
    config = opened.config
    found = LineActivations.empty(len(read.rows), config.n_layers, config.n_heads)
    for some, tokens in activations_by_batch(opened, read.rows):
        found.put(some, tokens)
    for each in best_lines(found, by, layer, head, 10):
        print(each.line + 1, each.value, read.lines[each.line])
