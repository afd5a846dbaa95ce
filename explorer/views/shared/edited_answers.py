"""What a model that generates answers without and with interventions."""

from difflib import SequenceMatcher

import streamlit as st

from explorer.catalog.open_model import OpenModel
from explorer.inference.edited_generation import edited_answer
from explorer.inference.edited_pass import EditedPass

TEACHER_FORCED = (
    "In the numbers and maps below, the decoder reads the answer generated before (teacher "
    "forcing), so that steps can be compared."
)

MOST_CHANGES = 5


def draw_answers(opened: OpenModel, before: EditedPass, after: EditedPass) -> None:
    """Both whole answers; what stands below them on a page follows the one of `before`."""
    answers = [edited_answer(opened, each) for each in (before, after)]
    for when, answer in zip(("before", "after"), answers, strict=True):
        st.text(f"Generated {when}: {answer.text or 'no readable text'}")
    if changed := changed_words(*(answer.text for answer in answers)):
        st.text(f"Changed: {changed}")
    notes = dict.fromkeys(answer.note for answer in answers if answer.note)
    st.caption(" ".join([*notes, TEACHER_FORCED]))


def changed_words(before: str, after: str) -> str:
    """Which words became which, at most `MOST_CHANGES`; empty where both texts are the same."""
    old, new = before.split(), after.split()
    found = [
        f"“{' '.join(old[a:b]) or 'nothing'}” → “{' '.join(new[c:d]) or 'nothing'}”"
        for how, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if how != "equal"
    ]
    more = f" and {len(found) - MOST_CHANGES} more" if len(found) > MOST_CHANGES else ""
    return ", ".join(found[:MOST_CHANGES]) + more
