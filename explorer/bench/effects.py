"""What a change did: chances before and after in pairs, the numbers, the head's maps."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from explorer import session, widgets
from explorer.analysis import changes
from explorer.bench.asking import one_of
from explorer.checkpoints.weights import facts
from explorer.checkpoints.words import three
from explorer.components import matrix
from explorer.components.labels import text_of
from explorer.edits import History
from explorer.figures.changes import paired
from explorer.library import Opened
from explorer.reading import Reading
from explorer.rereading import Edited, edited
from explorer.text import Token

BARS_HEIGHT = 330
UNCHANGED = "No edit"


def before(opened: Opened, reading: Reading, history: History) -> Reading:
    """The step that the result is compared with: the pass as it is, or after earlier edits."""
    names = [UNCHANGED, *(f"Edit {n}" for n in range(1, max(1, history.done)))]
    if len(names) == 1:
        return reading
    picked = names.index(one_of("Compared with", "against", names, as_list=len(names) > 4))
    return edited(opened, reading, history.made[:picked]).reading


def place_chosen(opened: Opened, reading: Reading) -> int:
    """The position whose answer is looked at; a class belongs to the whole text."""
    if not changes.has_words(opened):
        return 0
    tokens = changes.tokens_read(reading)
    names = [
        f"{place} · {text_of(each)}"
        for place, each in enumerate(
            reading.written if opened.config.kind == "encoder-decoder" else tokens
        )
    ]
    label = {
        "decoder": "What is expected after",
        "encoder": "What is expected in place of",
        "encoder-decoder": "What is expected in place of the written",
    }[opened.config.kind]
    first = names[changes.first_place(opened, reading)]
    return names.index(one_of(label, "expected_at", names, first, as_list=True))


def show(opened: Opened, first: Reading, passed: Edited, place: int) -> None:
    """The bars, then every number of the change."""
    if opened.config.head == "none":
        _stream_only(opened, first, passed.reading)
        return
    mine, theirs = (changes.logits(opened, each, place) for each in (first, passed.reading))
    found = changes.options(opened, mine, theirs)
    st.vega_lite_chart(
        paired(
            [each.label for each in found],
            [each.before for each in found],
            [each.after for each in found],
        ),
        width="stretch",
        height=BARS_HEIGHT,
        key="chances",
    )
    names = [f"{each.label} ({each.index})" for each in found]
    watched = found[names.index(one_of("Watched", "watched", names, as_list=True))].index
    facts(_facts(opened, first, passed.reading, (mine, theirs), watched))


def _facts(
    opened: Opened, first: Reading, then: Reading, both: tuple[Tensor, Tensor], watched: int
) -> list[tuple[str, str]]:
    mine, theirs = both
    rows = [("KL here", f"{three(float(changes.kl(mine, theirs)))} nats")]
    if changes.has_words(opened):
        mean = float(changes.divergences(opened, first, then).mean())
        rows.append(("mean KL over positions", f"{three(mean)} nats"))
    if found := changes.loss(opened, first, then):
        rows += [
            ("loss before", f"{three(found.before)} nats a token"),
            ("loss after", f"{three(found.after)} nats a token"),
            ("change of loss", signed(found.after - found.before)),
        ]
    old, new = float(mine[watched]), float(theirs[watched])
    return [
        *rows,
        ("watched logit before", three(old)),
        ("watched logit after", three(new)),
        ("logit difference", signed(new - old)),
    ]


def signed(value: float) -> str:
    return f"+{three(value)}" if value > 0 else three(value)


def _stream_only(opened: Opened, first: Reading, then: Reading) -> None:
    """A model without a head gives vectors: how far they moved."""
    mine, theirs = (changes.stream(opened, each)[0] for each in (first, then))
    size = float(mine.norm())
    moved = float((theirs - mine).norm())
    st.text("This model has no head: what changed is its last stream, not an answer.")
    facts(
        [
            ("length of the change", three(moved)),
            ("share of the stream", three(moved / size) if size else "no value"),
        ]
    )


def maps(first: Reading, then: Reading) -> None:
    """The chosen head before and after on one scale, and the difference around zero."""
    at = session.choice()
    words = first.part(at.part).words
    mine, theirs = (each.weights(at.part, at.layer, at.head) for each in (first, then))
    st.markdown(f"**Layer {at.layer}, head {at.head}** · before, after and after − before")
    masks = [each.mask(at.part, at.layer) for each in (first, then)]
    difference = theirs - mine
    top = float(difference.abs().max()) if difference.numel() else 0.0
    common = {"row_name": words.row, "column_name": words.column, "height": widgets.SMALL_HEIGHT}
    with st.container(horizontal=True, gap="small"):
        for title, values, key, allowed in (
            ("Before", mine, "map_before", masks[0]),
            ("After", theirs, "map_after", masks[1]),
        ):
            with st.container(width=widgets.SMALL_WIDTH):
                st.markdown(f"**{title}**")
                matrix(
                    values,
                    *_labels(first if key == "map_before" else then),
                    key=key,
                    allowed=allowed,
                    sentence=words.cell,
                    top=1.0,
                    **common,  # type: ignore[arg-type]
                )
        with st.container(width=widgets.SMALL_WIDTH):
            st.markdown("**Difference**")
            matrix(
                difference,
                *_labels(then),
                key="map_difference",
                scale="diverging",
                allowed=masks[0] | masks[1],
                sentence="{row}, {column}: {value}",
                unit="change of weight",
                top=top or 1.0,
                **common,  # type: ignore[arg-type]
            )
    if not top:
        st.caption(
            "This head looks as before. A head whose output is ablated still looks; what changes "
            "is what later layers see."
        )


def _labels(reading: Reading) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    part = session.choice().part
    return reading.rows(part), reading.columns(part)
