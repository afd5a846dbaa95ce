"""The interventions in the address: their list, undo, redo, remove, and buttons that add one."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import address, widget_state
from explorer.app.around_lesson import EDITS
from explorer.app.choosing import draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import one_of, undo_buttons
from explorer.app.messages import draw_notes, drop_notes, keep_note, say
from explorer.catalog.opened_model import OpenModel
from explorer.inference.core_edits import token_label
from explorer.inference.edited_pass import EditedPass, edited_answer, run_edited, why_not_applicable
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.token_programs import mixture_words
from explorer.interventions import edits
from explorer.interventions.address_text import (
    MAX_EDITS_CHARACTERS,
    edit_to_text,
    from_address,
    has_room_for,
    to_address,
)
from explorer.interventions.edits import EditHistory, Intervention, MaskCell
from explorer.text import Token
from explorer.text.number_format import three
from explorer.text.visible_text import cut, in_quotes

SHORT_LIST, LIST_HEIGHT = 2, 96
"""More interventions than the first scroll within the second, in pixels."""
ROW: dict[str, Any] = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
QUIET: dict[str, Any] = {"type": "tertiary"}
FULL = "The address has no room for more interventions: remove some."


def draw_history(
    context: PageContext,
    field: DeltaGenerator | None = None,
    empty: DeltaGenerator | None = None,
) -> tuple[EditHistory, EditedPass]:
    """The interventions of the address and the pass with them; draws their list and buttons.

    An intervention that does not apply to this model and text stays in the list with the reason,
    and applies again where it can. One that cannot be read is dropped with a note. `field` is the
    place of the interventions as text, if that is not under the list, and `empty` that of the
    list while it has none.
    """
    listed = st.container(**ROW)
    history = _settled()
    widget_state.put("edits", to_address(history))
    with field or st.container(), st.expander("Interventions as text"):
        taken: dict[str, Any] = {"on_change": EDITS.take, "args": ("edits",)}
        st.text_input(label_visibility="collapsed", **address.words_of("edits"), **taken)
    edited = run_edited(context.opened, context.forward, history.active)
    if empty is not None and not history.edits:
        listed = empty.container(**ROW)
    with listed:
        _draw_list(context, history, edited)
    draw_notes("edits", _text())
    if count := len(edited.not_applicable):
        which = "1 intervention does" if count == 1 else f"{count} interventions do"
        say(
            f"{which} not apply to this model and text: the list says why. Such interventions "
            "are kept and apply again where they can."
        )
    return history, edited


BEFORE, AFTER, BOTH = "Before", "After", "Side by side"
CHOOSES = "shown_pass"
WITH = {"Your interventions", "Why", "Table"}
"""What a control of another page says where a view shows the pass with the interventions."""


def shows_edits() -> bool:
    """Whether the page shows the pass with the interventions, alone or beside the one without."""
    names = filter(address.is_declared, (CHOOSES, "pair_view", "with"))
    chosen = {address.current_value(name) for name in names}
    is_page = address.is_declared(CHOOSES) or address.is_declared("look")
    is_usual = is_page and not address.is_declared("pair_view")
    return (bool(chosen & WITH) or is_usual) and BEFORE not in chosen


def draw_active(context: PageContext, passes: Sequence[str] = ()) -> tuple[EditedPass, str]:
    """On a page about the pass: how many interventions are active, and which pass is shown.

    Draws nothing, and shows the pass without them, where there are none. Without `passes` to
    choose from it shows that one too, and says so, except in a lesson.
    """
    history = _settled()
    if not (history.edits if passes else history.active and not address.is_named("lesson")):
        return EditedPass(context.forward), BEFORE
    edited, which = run_edited(context.opened, context.forward, history.active), BEFORE
    count, absent = len(edited.applied), len(edited.not_applicable)
    are = "intervention is active" if count == 1 else "interventions are active"
    with st.container(**ROW):
        without = f"; this page shows the pass without {'it' if count == 1 else 'them'}."
        cannot = f"; {absent} cannot apply here" * bool(absent)
        st.text(f"{count or 'No'} {are}{cannot if passes else without}")
        if passes:
            with st.popover("Undo or remove"):
                draw_history(context)
        draw_page_link("interventions")
        if count and passes:
            which = one_of(CHOOSES, passes, label_visibility="collapsed")
    if count and passes and context.forward.output_tokens:
        st.caption(TEACHER_FORCED)
    return edited, which


def _text() -> str:
    return str(EDITS.texts().get("edits", ""))


def _settled() -> EditHistory:
    """The interventions, also in the address; what cannot be read is dropped with a note."""
    history, notes = from_address(_text())
    EDITS.settle({"edits": to_address(history)})
    if notes:
        keep_note("edits", *notes, until=to_address(history))
    return history


def store_history(history: EditHistory) -> None:
    """For a callback: write these interventions into the address."""
    EDITS.put("edits", to_address(history))
    drop_notes("edits")


def current_history() -> EditHistory:
    return from_address(_text())[0]


def add_edit(edit: Intervention) -> None:
    """For a callback: add one, or say that there is no room for it."""
    if why := _why_no_room(current_history(), edit):
        keep_note("edits", why, until=_text())
    else:
        store_history(current_history().add(edit))


def add_intervention(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> None:
    """The same, but a mask cell that has this value anyway needs no intervention."""
    without = current_history().without_target(edit)
    if isinstance(edit, MaskCell) and len(without.active) < current_history().done:
        mask = run_edited(opened, forward, without.active).forward.mask
        layers = range(forward.part(edit.part).layers) if edit.layer is None else [edit.layer]
        cells = [bool(mask(edit.part, layer)[edit.query, edit.key]) for layer in layers]
        if all(cell == edit.allowed for cell in cells):
            store_history(without)
            return
    add_edit(edit)


def edit_button(
    context: PageContext, edit: Intervention | None, label: str, key: str, **how: Any
) -> None:
    """A button that adds an intervention; disabled, with the reason, where it does not apply."""
    opened, forward, history, why = context.opened, context.forward, current_history(), ""
    if edit is not None:
        why = why_not_applicable(opened, forward, history.active, edit)
        why = why or _why_no_room(history, edit)
    args, disabled = (opened, forward, edit), edit is None or bool(why)
    if not history.edits:  # first of all the example
        how["type"] = "primary" if key == "example_edit" else "secondary"
    st.button(label, key=key, on_click=add_intervention, args=args, disabled=disabled, **how)
    if why:
        st.text(why)


def link_with_edit(label: str, edit: Intervention) -> None:
    """A link to Interventions, where this one joins the others; none if it has."""
    history = current_history()
    if edit in history.active:
        return
    if has_room_for(history, edit):
        draw_page_link("interventions", label, edits=to_address(history.add(edit)))
    else:
        st.caption(FULL)


def _why_no_room(history: EditHistory, edit: Intervention) -> str:
    """Why the address has no room for one more, in a sentence; empty if it has."""
    if has_room_for(history, edit):
        return ""
    if has_room_for(EditHistory(), edit):
        return FULL
    return (  # letters other than a to z are written with several characters
        f"This intervention takes {len(edit_to_text(edit)):,} characters in the address, which has "
        f"room for about {MAX_EDITS_CHARACTERS:,}: shorten its text."
    )


def _draw_list(context: PageContext, history: EditHistory, edited: EditedPass) -> None:
    """The buttons, and every intervention in words, the newest first, with its state."""
    undo_buttons(history, history.clear(), store_history, **QUIET)
    height: Any = "content" if len(history.edits) <= SHORT_LIST else LIST_HEIGHT
    with st.container(height=height, border=False, key="edits_made", gap=None):
        if not history.edits:
            st.text("No interventions yet.")
        for index, edit in reversed(list(enumerate(history.edits))):
            with st.container(**ROW, wrap=False):
                state = " (undone)" if index >= history.done else ""
                if why := edited.not_applicable.get(index):
                    state = f" (does not apply). {why}"
                words = describe_edit(context.opened, context.forward, edit)
                st.text(f"{index + 1}. {words}{state}", width="stretch")
                args, how = (history.remove(index),), {"key": f"remove_{index}", **QUIET}
                st.button("Remove", on_click=store_history, args=args, **how)


LONGEST_TEXT = 60
"""Characters of a text in the list."""
TITLES = {
    "encoder.self_attn": "Encoder, ",
    "decoder.self_attn": "Decoder, ",
    "decoder.cross_attn": "Cross-attention, ",
}
PRESET_WORDS = {
    "none": "none, every query may attend to every key",
    "causal": "causal, no query may attend to a later key",
    "padding": "padding, the last {n} keys are masked",
    "window": "sliding window, only keys less than {n} tokens away",
    "prefix": "prefix, causal except for the first {n} keys",
    "blocks": "blocks, only keys in the same block of {n}",
}


def describe_edit(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> str:
    """The intervention in one line, with the labels of its tokens."""
    exists = edit.part in {part.name for part in forward.parts}
    title = "" if exists and len(forward.parts) == 1 else TITLES[edit.part]
    layer = getattr(edit, "layer", None)
    where = f"{title}every layer" if layer is None else f"{title}layer {layer}"
    where = where[0].upper() + where[1:]
    rows = forward.rows(edit.part) if exists else ()
    columns = forward.columns(edit.part) if exists else ()
    match edit:
        case edits.AblateHead(head=head, to=to):
            return f"{where}, head {head}: {to} ablation"
        case edits.AblateAttention(to=to):
            return f"{where}, attention: {to} ablation"
        case edits.AblateMlp(to=to):
            return f"{where}, feed-forward: {to} ablation"
        case edits.AblateNeuron(neuron=neuron, to=to):
            return f"{where}, neuron {neuron}: {to} ablation"
        case edits.CutEdge(head=head, query=query, key=key, to=to):
            edge = f"edge {_named(rows, query)} → {_named(columns, key)} set to {to}"
            return f"{where}, {'every head' if head is None else f'head {head}'}: {edge}"
        case edits.PresetMask(preset=preset, n=n):
            return f"{where}, mask: {PRESET_WORDS[preset].format(n=n)}"
        case edits.MaskCell(query=query, key=key, allowed=allowed):
            may = "may" if allowed else "may not"
            return f"{where}: {_named(rows, query)} {may} attend to {_named(columns, key)}"
        case edits.HideKey(key=key):
            return f"{where}: key {_named(columns, key)} masked for every query"
        case edits.ReplaceToken(position=position, token=token, word=word):
            tokens = forward.source if edit.part.startswith("encoder") else forward.target
            label = word or token_label(opened, token)
            return f"{title}{_named(tokens, position)} replaced by {in_quotes(label)}"
        case edits.Patch(head=head, position=position, text=text, source=source):
            what = "residual stream after it" if head is None else f"head {head}"
            place = "" if source is None else f"token {source} of "
            start = f"{where}, {what} at {_named(rows, position)}"
            return f"{start}: patched from {place}{in_quotes(text[:LONGEST_TEXT])}"
        case edits.Steer(head=head, strength=strength, texts=texts):
            return f"{where}: {three(strength)} × {direction_words(head, texts)} added"
        case edits.ReplaceByProgram(head=head, mixture=mixture):
            return f"{where}, head {head}: map replaced by {mixture_words(mixture)}"
    raise AssertionError(edit)


def direction_words(head: int | None, texts: Sequence[str]) -> str:
    """A direction in words: its texts, or the head."""
    if head is not None:
        return f"the output of head {head} on {in_quotes(cut(texts[0], LONGEST_TEXT))}"
    first, *rest = (in_quotes(cut(text, LONGEST_TEXT)) for text in texts)
    pairs = f", mean over {len(texts) // 2} pairs" if len(texts) > 2 else ""
    return f"({first} − {rest[0] if rest else 'nothing'}{pairs})"


def _named(tokens: Sequence[Token], position: int) -> str:
    exists = position < len(tokens)
    return f"{in_quotes(tokens[position].label)} ({position})" if exists else f"token {position}"


TEACHER_FORCED = (
    "In the numbers and maps here, the decoder reads the answer generated before (teacher "
    "forcing), so that steps can be compared."
)

MOST_CHANGES = 5


def draw_answers(opened: OpenModel, before: EditedPass, after: EditedPass) -> None:
    """Both whole answers; the figures below them on a page follow the answer of `before`."""
    answers = [edited_answer(opened, edited) for edited in (before, after)]
    for when, answer in zip(("before", "after"), answers, strict=True):
        st.text(f"Generated {when}: {answer.text or 'no readable text'}")
    if changed := changed_words(*(answer.text for answer in answers)):
        st.text(f"Changed: {changed}")
    notes = dict.fromkeys(answer.note for answer in answers if answer.note)
    st.caption(" ".join([*notes, TEACHER_FORCED]))


def changed_words(before: str, after: str) -> str:
    """Which words became which, at most `MOST_CHANGES`; empty if both texts are the same."""
    old, new = before.split(), after.split()
    words = {"replace": "“{}” → “{}”", "delete": "“{}” left out", "insert": "{}“{}” added"}
    changes = [
        words[how].format(" ".join(old[a:b]), " ".join(new[c:d]))
        for how, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if how != "equal"
    ]
    more = f" and {len(changes) - MOST_CHANGES} more" if len(changes) > MOST_CHANGES else ""
    return ", ".join(changes[:MOST_CHANGES]) + more
