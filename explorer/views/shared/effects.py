"""What a change did: chances before and after in pairs, the numbers, the head's maps."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from explorer.analysis import output_change
from explorer.analysis.comparison import Side
from explorer.analysis.output_change import OverText
from explorer.app.context import page_context
from explorer.app.controls import one_of, token
from explorer.catalog.opened_model import Opened
from explorer.charts.before_after import paired
from explorer.inference import edited_generation
from explorer.inference.answers import first_place, option_name
from explorer.inference.edited_pass import Edited, edited
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.interventions.edits import History
from explorer.snippets import Head, two_heads
from explorer.text.number_format import three
from explorer.views.shared import map_pair, pinned, pinned_actions
from explorer.views.shared.tables import facts

BARS_HEIGHT = 330
UNCHANGED = "No edit"
FOLLOWED = "Numbers and maps below follow the answer without edits, so that its steps compare."


def before(opened: Opened, forward: ForwardPass, history: History) -> Edited:
    """The step that the result is compared with: the pass as it is, or after earlier edits."""
    names = [UNCHANGED, *(f"Edit {n}" for n in range(1, max(1, history.done)))]
    if len(names) == 1:
        return Edited(forward)
    picked = names.index(one_of("Compared with", "against", names, as_list=len(names) > 4))
    return edited(opened, forward, history.made[:picked])


def place_chosen(opened: Opened, forward: ForwardPass) -> int:
    """The position whose answer is looked at; a class belongs to the whole text."""
    if not output_change.has_words(opened.config):
        return 0
    writes = opened.config.kind == "encoder-decoder"
    tokens = forward.written if writes else output_change.tokens_read(forward)
    label = {
        "decoder": "What is expected after",
        "encoder": "What is expected in place of",
        "encoder-decoder": "What is expected where it wrote",
    }[opened.config.kind]
    return token(
        label, "expected_at", tokens, first_place(opened, output_change.tokens_read(forward))
    )


def show(opened: Opened, first: Edited, passed: Edited, place: int) -> None:
    """The bars, then every number of the change."""
    if opened.config.head == "none":
        _stream_only(opened, first.forward, passed.forward)
        return
    if opened.config.kind == "encoder-decoder":
        written(opened, first, passed)
    mine, theirs = (output_change.logits(each.forward, place) for each in (first, passed))
    found = output_change.options(mine, theirs)
    labels = [option_name(opened, each.index) for each in found]
    before, after = [each.before for each in found], [each.after for each in found]
    with st.container(key="chances"):
        st.vega_lite_chart(paired(labels, before, after), width="stretch", height=BARS_HEIGHT)
    names = [f"{label} ({each.index})" for label, each in zip(labels, found, strict=True)]
    watched = found[names.index(one_of("Watched", "watched", names, as_list=True))].index
    facts(_facts(opened, first, passed, (mine, theirs), watched))


def written(opened: Opened, first: Edited, passed: Edited) -> None:
    """The whole answer before and after; the numbers are those of the answer before any edit."""
    answers = [edited_generation.answer(opened, each) for each in (first, passed)]
    for when, answer in zip(("Before", "After"), answers, strict=True):
        st.text(f"{when}, it writes: {answer.text or 'no readable text'}")
    notes = [*dict.fromkeys(answer.note for answer in answers if answer.note), FOLLOWED]
    st.caption(" ".join(notes))


def _facts(
    opened: Opened, first: Edited, then: Edited, both: tuple[Tensor, Tensor], watched: int
) -> list[tuple[str, str]]:
    mine, theirs = both
    found = None
    rows = [("KL here", f"{three(float(output_change.kl(mine, theirs)))} nats")]
    if output_change.has_words(opened.config):
        whole = _over_text(opened, first, then)
        everywhere, found = whole.kl, whole.loss
        most = int(everywhere.argmax())
        rows += [
            ("mean KL over positions", f"{three(float(everywhere.mean()))} nats"),
            (f"largest KL, at position {most}", f"{three(float(everywhere[most]))} nats"),
        ]
    if found:
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


def _over_text(opened: Opened, first: Edited, then: Edited) -> OverText:
    """KL at every position, and the loss; made once for two steps of the history."""
    pair = first.forward, then.forward
    return kept(
        opened,
        ("over text", pair[0].text, pair[0].pair, first.made, then.made),
        lambda: output_change.over_text(*pair),
        lambda made: made.kl.nbytes,
    )


def signed(value: float) -> str:
    return f"+{three(value)}" if value > 0 else three(value)


def _stream_only(opened: Opened, first: ForwardPass, then: ForwardPass) -> None:
    """A model without a head gives vectors: how far they moved."""
    mine, theirs = (output_change.stream(each)[0] for each in (first, then))
    size = float(mine.norm())
    moved = float((theirs - mine).norm())
    st.text("This model ends in vectors: what changed is its last stream, not an answer.")
    facts(
        [
            ("length of the change", three(moved)),
            ("share of the stream", three(moved / size) if size else "no value"),
        ]
    )


def maps(opened: Opened, forward: ForwardPass, first: ForwardPass, then: ForwardPass) -> None:
    """The chosen head before and after on one scale, and the difference around zero."""
    at, holds = page_context().choice, pinned.now(then)
    st.markdown(f"**Layer {at.layer}, head {at.head}** · before, after and after − before")
    old, new = (
        Side(title, each, at.part, at.layer, at.head)
        for title, each in (("Before", first), ("After", then))
    )
    cell = None if holds.query is None or holds.key is None else (holds.query, holds.key)
    found = map_pair.show(
        old,
        new,
        1.0,
        keys=("map_before", "map_after"),
        title="After − before",
        held=cell,
        on_hold=pinned_actions.hold,
    )
    pinned_actions.show(opened, forward, then, holds)
    if found and not found.largest:
        st.caption(
            "This head looks as before. A head whose output is ablated still looks; what changes "
            "is what later layers see."
        )


def pasted(first: Edited, then: Edited) -> str:
    """The lines that make the chosen head before and after, and the difference."""
    at, folder = page_context().choice, page_context().folder
    before, after = (
        Head(each.forward, folder, at.part, at.layer, at.head, each.in_core)
        for each in (first, then)
    )
    return two_heads(before, after)
