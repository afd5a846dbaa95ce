"""The checkpoint doctor's findings: the files, the numbers, the heads over the reader's text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from explorer.analysis import diagnostics
from explorer.analysis.diagnostics import Finding
from explorer.app import shelves
from explorer.app.context import page_context
from explorer.catalog.entries import Opened
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.results_cache import kept, size_of
from explorer.views.checkpoints.weight_norms import surveyed
from explorer.views.shared.head_table import measured_heads
from models.loading.checkpoint import CheckpointError
from models.loading.inspection import inspect_folder

COLOURS = {"error": "red", "warning": "orange", "note": "blue", "fine": "green"}
SAID = {"error": "Error", "warning": "Warning", "note": "Note", "fine": "Fine"}


def show(opened: Opened) -> None:
    """Everything the doctor looked at, the worst first."""
    st.markdown("**What the doctor looked at** · the worst first")
    folder = next((e.folder for e in shelves.entries() if e.name == opened.name), None)
    of_files = of_folder(folder) if folder else []
    found = [*of_files, *_of_model(opened), *_of_text(opened)]
    findings(diagnostics.in_order(found))


def show_files(folder: Path) -> None:
    """What can be said of a model that cannot be opened."""
    findings(diagnostics.in_order(of_folder(folder)))


def examine() -> None:
    """The findings of a folder on the shelf that cannot be opened and was asked about."""
    name = st.session_state.get("examined")
    for entry in shelves.entries():
        if entry.name == name and entry.fault:
            with st.container(border=True, key="examined_findings"):
                found = diagnostics.in_order(of_folder(entry.folder))
                is_said = any(finding.sentence == entry.fault for finding in found)
                st.text(f"{entry.name}: {'cannot be opened.' if is_said else entry.fault}")
                findings(found)


def findings(found: Sequence[Finding]) -> None:
    """One row each: how bad it is in a word, what it is, and a sentence."""
    with st.container(key="findings", gap="small"):
        for finding in found:
            level, title, said = st.columns([2, 5, 16], vertical_alignment="top")
            level.badge(SAID[finding.level], color=COLOURS[finding.level])  # type: ignore[arg-type]
            title.markdown(f"**{finding.title}**")
            said.text(finding.sentence)  # it may hold names out of a stranger's file


def of_folder(folder: Path) -> list[Finding]:
    """What the headers of the files tell."""
    try:
        disk = inspect_folder(folder)
        types = {name: disk.weights.dtype(name) for name in disk.layouts}
        return [*diagnostics.of_files(disk), *diagnostics.of_types(types)]
    except (CheckpointError, OSError) as error:
        return [Finding("error", "Files that cannot be read", str(error))]


def _of_model(opened: Opened) -> list[Finding]:
    """Every finding that needs the numbers; kept, since they do not change."""
    found = surveyed(opened)

    def make() -> list[Finding]:
        return [
            *diagnostics.of_numbers(found),
            *diagnostics.of_training(opened.model, found),
            *diagnostics.of_heads(opened.model),
        ]

    return kept(opened, "doctor", make, size_of)


def _of_text(opened: Opened) -> list[Finding]:
    """Whether the heads choose, over the reader's text."""
    context = page_context()
    try:
        forward = run_text(opened, context.choice.text, context.choice.pair)
    except ForwardPassError as error:
        return [Finding("note", "Attention not judged", str(error))]
    return diagnostics.of_attention([measured_heads(context, part.name) for part in forward.parts])
