"""What a model that generates answers without and with interventions."""

from __future__ import annotations

import streamlit as st

from explorer.catalog.opened_model import Opened
from explorer.inference.edited_generation import edited_answer
from explorer.inference.edited_pass import EditedPass

TEACHER_FORCED = (
    "In the numbers and maps below, the decoder reads the answer generated before (teacher "
    "forcing), so that steps can be compared."
)


def draw_answers(opened: Opened, before: EditedPass, after: EditedPass) -> None:
    """Both whole answers; what stands below them on a page follows the one of `before`."""
    answers = [edited_answer(opened, each) for each in (before, after)]
    for when, answer in zip(("before", "after"), answers, strict=True):
        st.text(f"Generated {when}: {answer.text or 'no readable text'}")
    notes = dict.fromkeys(answer.note for answer in answers if answer.note)
    st.caption(" ".join([*notes, TEACHER_FORCED]))
