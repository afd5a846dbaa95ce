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
from explorer.inference.results_cache import cached
from explorer.text import PublishedTokenizer
from explorer.views.checkpoints.weights import summaries
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import measured_heads
from models.loading.inspection import CheckpointError, inspect_folder
from models.loading.weight_files import adapter_base

COLOURS = {"error": "red", "warning": "orange", "note": "blue", "fine": "green"}
LABELS = {"error": "Error", "warning": "Warning", "note": "Note", "fine": "OK"}


def draw_diagnostics(context: PageContext, opened: OpenModel) -> Script:
    """Draw the findings of every check of the model, the most severe first."""
    st.markdown("**Diagnostics** · the most severe first")
    files = _of_files(context.folder)
    if isinstance(opened.tokenizer, PublishedTokenizer):
        files += diagnostics.tokenizer_findings(opened.tokenizer.unfollowed)
    _draw_findings([*files, *_of_weights(opened), *_of_text(context)], context.choice.model)
    return script(diagnostics_code, opened)


def draw_folder_findings(entry: ModelEntry, *, heading: bool = False) -> None:
    """Draw the findings on the files of a model that cannot be opened."""
    findings = _of_files(entry.folder)
    if heading:
        is_listed = any(finding.sentence == entry.fault for finding in findings)
        st.text(f"{entry.short_name}: {'cannot be opened.' if is_listed else entry.fault}")
    _draw_findings(findings, entry.name, heading)


def _draw_findings(findings: Iterable[Diagnostic], model: str, heading: bool = False) -> None:
    """Draw a row for each: its level, its title and its sentence.

    The findings of a model with a `heading` may stand on one page with those of the chosen one.
    """
    with st.container(key=f"findings_{model}{'_examined' * heading}", gap="small"):
        for finding in diagnostics.most_severe_first(findings):
            level, title, sentence = st.columns([2, 5, 16], vertical_alignment="top")
            level.badge(LABELS[finding.level], color=COLOURS[finding.level])  # type: ignore[arg-type]
            title.markdown(f"**{finding.title}**")
            sentence.text(finding.sentence)  # it may hold names from somebody else's file


def _of_files(folder: Path) -> list[Diagnostic]:
    """Findings from the headers of the files and the types of the tensors."""
    try:
        disk = inspect_folder(folder, numbers=True)
        types = {name: disk.weights.dtype(name) for name in disk.layouts}
        named = adapter_base(folder)
        adapter = [] if named is None else [diagnostics.adapter_finding(named, folder, disk.folder)]
        return [*diagnostics.file_findings(disk), *diagnostics.type_findings(types), *adapter]
    except (CheckpointError, OSError) as error:
        return [Diagnostic("error", "Files that cannot be read", in_a_sentence(error))]


def _of_weights(opened: OpenModel) -> list[Diagnostic]:
    """Every finding that needs the weights, cached, since they do not change."""
    tensors = summaries(opened)

    def make() -> list[Diagnostic]:
        return [
            *diagnostics.value_findings(tensors),
            *diagnostics.training_findings(opened.model, tensors),
            *diagnostics.dead_head_findings(opened.model),
        ]

    return cached(opened, "diagnostics", make)


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
