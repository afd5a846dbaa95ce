"""The chosen model to take away, as the folder of a published family."""

from __future__ import annotations

import streamlit as st

from explorer.catalog.entries import Opened
from explorer.export import published_folder
from explorer.text.literal import literal
from models.loading.export import exportable
from models.loading.folder_config import OURS

LONGEST = 400
"""Characters of the reason why not."""


def take_away(opened: Opened) -> None:
    """A download for a model of ours; where no family has its shape, what would be needed."""
    if opened.family != OURS:
        return
    found = exportable(opened.config)
    if found.family is None:
        why, _, nearest = (found.fault or "").partition("; ")
        st.caption(
            f"It cannot be exported: {literal(why[:1].lower() + why[1:].rstrip('.'))}.",
            help=literal(nearest[:1].upper() + nearest[1:], LONGEST) or None,
            width="content",
        )
        return
    st.download_button(
        f"Export as a {found.family} folder",
        lambda: published_folder.to_zip(opened),
        file_name=f"{opened.name}-{found.family}.zip",
        key="export",
    )
