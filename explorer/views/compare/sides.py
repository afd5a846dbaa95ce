"""The two sides of a comparison: what stands beside the chosen head, and how both are drawn."""

from __future__ import annotations

import math
from pathlib import Path

import streamlit as st

from explorer.analysis.comparison import Difference, Side, common_top, divergence
from explorer.app import url
from explorer.app.context import TEXT_LIMIT, page_context, reads_pairs
from explorer.app.controls import follow, one_of
from explorer.app.messages import or_stop, say
from explorer.app.session import session
from explorer.catalog import entries
from explorer.catalog.attention_parts import parts
from explorer.catalog.entries import Entry, Opened
from explorer.export.figure_data import Taken
from explorer.inference.edited_pass import Edited
from explorer.inference.forward_pass import ForwardPass, rerun, run_text
from explorer.inference.results_cache import kept
from explorer.interventions.edit_links import to_address
from explorer.interventions.edit_words import words
from explorer.interventions.edits import History
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run
from explorer.snippets import Head, two_heads
from explorer.text.number_format import three
from explorer.text.token_labels import texts
from explorer.views.shared import edit_history, effects, export_panel, map_pair, widgets

HEAD, SENTENCE, MODEL, STEP, EDITED = (
    "Another head",
    "Another sentence",
    "Another model",
    "A training step",
    "Your edits",
)
LIST_WIDTH = 320


def sides() -> tuple[Side, Side]:
    """The head chosen in the sidebar, and what the reader puts beside it."""
    at, opened = page_context().choice, page_context().opened
    forward = page_context().forward
    first = Side(f"Layer {at.layer}, head {at.head}", forward, at.part, at.layer, at.head)
    kinds = {
        HEAD: _another_head,
        SENTENCE: _another_sentence,
        MODEL: _another_model,
        STEP: _another_step,
        EDITED: _with_edits,
    }
    offered = [kind for kind in kinds if kind != STEP or _snapshots()]
    return first, kinds[one_of("Compared with", "with", offered)](first, opened)


def show(first: Side, second: Side) -> Difference | None:
    """Both on one scale, second − first around zero, and how far they are apart."""
    top = common_top(first, second)
    found = map_pair.show(first, second, top)
    if found is None:
        return None
    far = divergence(first, second)
    how_far = (
        "How far apart their rows are cannot be said: a weight is no number, or no row sees "
        "something in both."
        if math.isnan(far)
        else f"Their rows are {three(far)} bits apart on average: 0 is alike, 1 as different as "
        "can be."
    )
    st.text(f"{found.note} {how_far} The fullest colour of both is a weight of {three(top)}.")
    return found


def taken(first: Side, second: Side, found: Difference) -> Taken:
    """The difference, for who takes it away; the offline page has all three maps."""
    at, called = page_context().choice, second.forward.part(second.part).words
    about = export_panel.about() | {"first": first.title, "second": second.title}
    if second.forward.text != at.text:
        about["the other sentence"] = second.forward.text
    if second.forward.pair != at.pair:
        about["sentences of the second"] = "the first one alone"
    about["part of the second"] = second.part
    about["layer of the second"] = str(second.layer)
    about["head of the second"] = str(second.head)
    about |= second.about
    return Taken(
        values=found.values,
        rows=tuple(texts(second.rows)),
        columns=tuple(texts(second.columns)),
        title=f"{second.title} − {first.title.lower()} of {at.model}",
        unit="change of weight",
        row_name=called.row,
        column_name=called.column,
        scale="diverging",
        allowed=found.allowed,
        about=about,
        note=" ".join((f"“{at.text}”.", found.note)),
    )


def pasted(first: Side, second: Side) -> str:
    """The lines that make the weights of both, and their difference."""
    return two_heads(_head(first), _head(second))


def _head(side: Side) -> Head:
    folder = side.folder or page_context().folder
    return Head(side.forward, folder, side.part, side.layer, side.head, side.edits)


def answers(first: Side, second: Side) -> None:
    """What each side's pass ends in; the same where only the head differs.

    A pass with edits follows the answer that was written without them, so its own stands above.
    """
    mine, theirs = first.forward, second.forward
    same_words = mine.trace.model is theirs.trace.model and mine.text == theirs.text
    if mine is theirs or (mine.written and same_words):
        return
    for place, side, key in zip(
        widgets.side_by_side(1, 1), (first, second), ("answer_first", "answer_second"), strict=True
    ):
        with place:
            widgets.answer(side.forward, key=key)
            widgets.notes(side.forward.notes)


def _another_head(first: Side, opened: Opened) -> Side:
    part = first.forward.part(first.part)
    narrow = {"as_list": True, "width": LIST_WIDTH}
    with st.container(horizontal=True):
        layers, heads = ([str(n) for n in range(count)] for count in (part.layers, part.heads))
        layer = one_of("Its layer", "other_layer", layers, str(first.layer), **narrow)
        other = heads[(first.head + 1) % part.heads]
        head = one_of("Its head", "other_head", heads, other, **narrow)
    title = f"Layer {layer}, head {head}"
    return Side(title, first.forward, first.part, int(layer), int(head))


def _another_sentence(first: Side, opened: Opened) -> Side:
    at = page_context().choice
    follow("other_text", at.text)
    text = st.text_input(
        "The other sentence",
        value=at.text,
        max_chars=TEXT_LIMIT,
        **url.bound("other_text"),
    )
    if at.pair:
        st.text("Both are read with the second sentence.")
    forward = or_stop(lambda: run_text(opened, str(text or ""), at.pair))
    return Side("The other sentence", forward, first.part, first.layer, first.head)


def _another_model(first: Side, opened: Opened) -> Side:
    at, shelf = page_context().choice, page_context().shelf
    others = [entry for name, entry in shelf.items() if name != at.model]
    names = [entry.name for entry in sorted(others, key=_unlike)]
    if not names:
        say("There is no other model here: train one, or open one on the Checkpoints page.")
        st.stop()
    name = one_of("The other model", "other_model", names, as_list=True, width=LIST_WIDTH)
    try:
        other = entries.open_entry(shelf[name])
    except entries.LibraryError as error:
        say(str(error))
        st.stop()
    return _through(other, shelf[name], first, name, shelf[name].folder)


def _unlike(entry: Entry) -> bool:
    """Models of the same kind stand first: they have the head that is compared."""
    mine = page_context().opened.config
    return entry.config is None or (entry.config.kind, entry.config.head) != (mine.kind, mine.head)


def _another_step(first: Side, opened: Opened) -> Side:
    snapshots = _snapshots()
    step = one_of("Step", "other_step", tuple(snapshots), as_list=True, width=LIST_WIDTH)
    folder = snapshots[step]
    try:
        other = kept(opened, ("step", folder), lambda: open_folder(folder), lambda one: one.bytes)
    except entries.LibraryError as error:
        say(str(error))
        st.stop()
    if opened.config.kind != "encoder-decoder":
        entry = page_context().shelf[page_context().choice.model]
        return _through(other, entry, first, f"Step {step}", folder)
    st.text("The step might write something else: here its decoder reads what yours has written.")
    mine = first.forward
    again = kept(
        other,
        ("over the answer of another step", mine.text, mine.target),
        lambda: rerun(other, mine, mine.source, mine.target, ()),
        lambda made: made.bytes,
    )
    here = first.part, first.layer, first.head
    return Side(f"Step {step}", again, *here, folder=folder)


def _with_edits(first: Side, opened: Opened) -> Side:
    with st.expander("The edits: undo them, or remove one"):
        made, passed = edit_history.history(opened, first.forward)
    if not made.edits:
        st.text("Nothing is changed yet, so both sides are the same pass.")
    if first.forward.written:
        effects.written(opened, Edited(first.forward), passed)
    page = session().pages.get("interventions")
    if page is not None:
        st.page_link(page, label="Change the pass", icon=":material/arrow_forward:")
    here = first.part, first.layer, first.head
    said = _edits(opened, first.forward, passed)
    return Side("With your edits", passed.forward, *here, said, passed.in_core)


def _edits(opened: Opened, forward: ForwardPass, passed: Edited) -> dict[str, str]:
    """What was edited, for who takes it away: in words, and as an address holds it."""
    if not passed.made:
        return {}
    made = History(passed.made, len(passed.made))
    said = "; ".join(words(opened, forward, edit) for edit in passed.made)
    return {"edits of the second": said, "the same in an address": f"edits={to_address(made)}"}


def _through(other: Opened, entry: Entry, first: Side, title: str, folder: Path) -> Side:
    """The same sentence and head in another model; the nearest where it has no such head."""
    at = page_context().choice
    named = {part.name: part for part in parts(other.config)}
    part = named.get(first.part) or list(named.values())[-1]
    layer, head = min(first.layer, part.layers - 1), min(first.head, part.heads - 1)
    if (part.name, layer, head) != (first.part, first.layer, first.head):
        st.text(
            f"{title} has no such head; shown is its {part.title.lower()}, layer {layer}, "
            f"head {head}."
        )
    pair = at.pair if reads_pairs(entry) else ""
    if pair != at.pair:
        st.text(f"{title} reads one sentence: the second one is left out there.")
    forward = or_stop(lambda: run_text(other, at.text, pair))
    return Side(title, forward, part.name, layer, head, folder=folder)


def _snapshots() -> dict[str, Path]:
    """The steps of the training that made the chosen model, where they lie beside it."""
    entry = page_context().shelf[page_context().choice.model]
    if entry.origin == "brought":  # a stranger's folder is not looked around in
        return {}
    return {str(step): folder for step, folder in Run(entry.folder.parent).snapshots()}
