"""Text as evidence: the top-activating lines of a chosen text for the chosen head."""

from dataclasses import dataclass

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.circuits.top_lines import (
    TokenizedLines,
    TopLine,
    best_lines,
    built_in_lines,
    built_in_texts,
    lines_so_far,
    measure,
    tokenized,
)
from explorer.analysis.line_activations import (
    LineActivations,
    activations_by_batch,
    token_activations,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import or_stop
from explorer.app.progress import bar
from explorer.app.session import state_of
from explorer.catalog.open_model import OpenModel
from explorer.components import chips
from explorer.inference.results_cache import kept
from explorer.system import limits
from explorer.text import TextError, Token
from explorer.text.checked_text import decoded, lines_in
from explorer.text.labels import cut
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import label_at
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Expression, code_panel, script
from explorer.views.shared.measurement import is_started, stoppable

PASTED, FILE = "Pasted text", "Text file"
MOST_PASTED_LINES = 50_000
MB = 1_000_000

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused."""


@dataclass
class UploadedLines:
    """The uploaded text whose lines are searched, which no address holds."""

    text: str | None = None


def choose_source(opened: OpenModel) -> str:
    """The name of the text."""
    return one_of("lines_from", (*built_in_texts(opened), PASTED, FILE))


def lines_of(opened: OpenModel, name: str) -> tuple[str, ...]:
    """Its lines; TextError says why there are none."""
    if is_built_in(name):
        return built_in_lines(opened, name)
    return lines_in(_pasted() if name == PASTED else _of_file())


def is_built_in(name: str) -> bool:
    """Whether this text comes with the app."""
    return name not in (PASTED, FILE)


def _pasted() -> str:
    return str(
        st.text_area(
            "Your text, line by line",
            key="evidence_text",
            max_chars=MOST_PASTED_LINES,
            placeholder="Type or paste lines; upload a longer text as a file",
            persist_state="session",
        )
        or ""
    )


def _of_file() -> str:
    """The text of a file; a link does not contain it, as it does not what is pasted."""
    st.caption(
        f"Plain text in UTF-8, at most {limits.LINES.most:,} lines of at most "
        f"{limits.LINE_CHARACTERS.most:,} characters. It is not kept, and a link does not "
        "contain it."
    )
    most = 4 * limits.LINES.most * limits.LINE_CHARACTERS.most
    upload = st.file_uploader(
        "Text file",
        key="evidence_file",
        max_upload_size=max(1, most // MB),
        on_change=_forget_file,
    )
    kept = state_of(UploadedLines)
    if upload is not None and kept.text is None:
        content, characters = (
            upload.getvalue(),
            limits.LINES.most * (limits.LINE_CHARACTERS.most + 1),
        )
        if len(content) > BYTES_OF_CHARACTER * characters:
            raise TextError(
                f"The file has {len(content):,} bytes; at most {characters:,} characters are read, "
                "so upload a part of it."
            )
        kept.text = decoded(content)
    return kept.text or ""


def _forget_file() -> None:
    """For the callback: the file was removed, or another was uploaded."""
    state_of(UploadedLines).text = None


LARGE, LISTED, LONGEST = 3, 10, 120
SHORT = 2_000
"""Characters of a text that stands in the script itself."""
STARTED = "lines"


@dataclass
class SearchedLines:
    """The lines that were searched last."""

    lines: tuple[str, ...] = ()


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
            source = choose_source(opened)
            by = MEASURES[one_of("excited_by", tuple(MEASURES))]
        lines = lines_of(opened, source)
        read = tokenized(opened, lines)
    except TextError as error:
        st.text(str(error))
        return
    state_of(SearchedLines).lines = lines
    found = lines_so_far(opened, read)
    _measure_rest(opened, read, found)
    st.markdown(widgets.bold_title(widgets.head_title(context)))
    _say_how_many(read, found)
    best = best_lines(found, by.name, at.layer, at.head, LISTED)
    for place, line in enumerate(best[:LARGE]):
        _draw_line(opened, read, line, by, (at.layer, at.head), f"line_{place}")
    _draw_list(read, best, by)
    st.caption(f"{by.meaning}. {EVIDENCE_EXPLAINED}")
    text = "" if is_built_in(source) else "\n".join(lines)
    text = text if len(text) <= SHORT else Expression('open("lines.txt", encoding="utf-8").read()')
    made = script(evidence_code, opened, source, text, by.name, at.layer, at.head)
    code_panel(token_activations, script=made)


def draw_known_lines(opened: OpenModel, layer: int, head: int) -> None:
    """The three lines with the most of a head in the text that was searched last, if any was."""
    if not (lines := state_of(SearchedLines).lines):
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
    if not left:
        return
    per_token = sum(each.numel() for each in opened.model.last_stack.blocks.parameters())
    cost = per_token * sum(map(len, left))
    asked = opened.name, read.lines
    if not is_started(STARTED, asked, cost):
        return
    with stoppable(STARTED, cost), bar(f"Reading {len(read.rows):,} lines") as report:

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
    values = _of_tokens(opened, tokens, by.name)[head]
    st.markdown(
        f"Line {line.line + 1}: {three(line.value)} at “{literal(label_at(tokens, line.token))}”"
    )
    chips(tokens, key=key, highlight=line.token, values=values.tolist(), unit=by.unit)


def _of_tokens(opened: OpenModel, tokens: tuple[Token, ...], name: str) -> Tensor:
    """One number of every head at every token of a line, (layers, heads, tokens); made once."""
    found = kept(
        opened,
        ("line tokens", tuple(token.id for token in tokens)),
        lambda: token_activations(opened, [tokens]),
        lambda made: made.norm.nbytes + made.weight.nbytes,
    )
    values: Tensor = getattr(found, name)[0]
    return values


def _draw_list(read: TokenizedLines, best: list[TopLine], by: Measure) -> None:
    if not best:
        return
    st.dataframe(
        {
            by.unit: [three(each.value) for each in best],
            "at": [label_at(read.rows[each.line], each.token) for each in best],
            "line": [f"{each.line + 1:,}" for each in best],
            "text": [cut(read.lines[each.line], LONGEST) for each in best],
        },
        hide_index=True,
        column_config={
            by.unit: st.column_config.TextColumn(alignment="right", width=90),
            "at": st.column_config.TextColumn(width=140),
            "line": st.column_config.TextColumn(alignment="right", width=60),
        },
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
