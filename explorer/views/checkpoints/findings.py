"""Diagnostics on screen: findings about the files, the weights and the heads over the text."""

from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from explorer.analysis import diagnostics
from explorer.analysis.diagnostics import Diagnostic
from explorer.analysis.weight_statistics import summarized
from explorer.app.context import PageContext
from explorer.catalog import in_a_sentence
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.views.checkpoints.weight_norms import summaries
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import measured_heads
from models.loading.inspection import CheckpointError, inspect_folder

COLOURS = {"error": "red", "warning": "orange", "note": "blue", "fine": "green"}
LABELS = {"error": "Error", "warning": "Warning", "note": "Note", "fine": "OK"}


def draw_diagnostics(context: PageContext, opened: OpenModel) -> Script:
    """Every check of the model, the most severe finding first."""
    st.markdown("**Diagnostics** · the most severe first")
    files = _of_files(context.folder)
    _draw_findings([*files, *_of_weights(opened), *_of_text(context)])
    return script(diagnostics_code, opened)


def draw_folder_findings(entry: ModelEntry, *, heading: bool = False) -> None:
    """What the files say about a model that cannot be opened."""
    found = _of_files(entry.folder)
    if heading:
        is_among = any(finding.sentence == entry.fault for finding in found)
        st.text(f"{entry.short_name}: {'cannot be opened.' if is_among else entry.fault}")
    _draw_findings(found)


def _draw_findings(found: Iterable[Diagnostic]) -> None:
    """A row each: its level, its title, and a sentence."""
    with st.container(key="findings", gap="small"):
        for finding in diagnostics.most_severe_first(found):
            level, title, sentence = st.columns([2, 5, 16], vertical_alignment="top")
            level.badge(LABELS[finding.level], color=COLOURS[finding.level])  # type: ignore[arg-type]
            title.markdown(f"**{finding.title}**")
            sentence.text(finding.sentence)  # may hold names from a file of somebody else


def _of_files(folder: Path) -> list[Diagnostic]:
    """Findings from the headers of the files, and from tables that may be one."""
    try:
        disk = inspect_folder(folder, numbers=True)
        types = {name: disk.weights.dtype(name) for name in disk.layouts}
        return [*diagnostics.file_findings(disk), *diagnostics.type_findings(types)]
    except (CheckpointError, OSError) as error:
        return [Diagnostic("error", "Files that cannot be read", in_a_sentence(error))]


def _of_weights(opened: OpenModel) -> list[Diagnostic]:
    """Every finding that needs the weights; kept, since they do not change."""
    found = summaries(opened)

    def make() -> list[Diagnostic]:
        return [
            *diagnostics.value_findings(found),
            *diagnostics.training_findings(opened.model, found),
            *diagnostics.dead_head_findings(opened.model),
        ]

    return kept(opened, "diagnostics", make)


def _of_text(context: PageContext) -> list[Diagnostic]:
    """Whether the heads attend selectively over the reader's text."""
    forward = context.passed
    if not isinstance(forward, ForwardPass):
        return [Diagnostic("note", "Attention not checked", str(forward))]
    parts = [measured_heads(context, part.name) for part in forward.parts]
    return diagnostics.attention_findings(parts)


def diagnostics_code(opened: OpenModel) -> None:
    summaries = tuple(summarized(opened.model))
    findings = [
        *diagnostics.value_findings(summaries),
        *diagnostics.training_findings(opened.model, summaries),
        *diagnostics.dead_head_findings(opened.model),
    ]
    for finding in diagnostics.most_severe_first(findings):
        print(finding.level, finding.title, finding.sentence)
