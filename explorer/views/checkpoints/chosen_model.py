"""The chosen model: opened, described, diagnosed, and exported as a published folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import streamlit as st

from explorer.analysis import diagnostics
from explorer.analysis.diagnostics import Diagnostic
from explorer.analysis.weight_statistics import summarized
from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.catalog import ModelError, in_a_sentence, model_descriptions
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.export import published_folder
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text import PublishedTokenizer
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.checkpoints.weights import summaries
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import measured_heads
from models.loading.export import adapter_exportable, export_form
from models.loading.folder_config import OURS
from models.loading.inspection import CheckpointError, inspect_folder
from models.loading.weight_files import adapter_base


def open_or_examine(context: PageContext, entries: Sequence[ModelEntry]) -> OpenModel:
    """The chosen model; if it cannot be opened, the page ends with the findings on its files."""
    name = context.choice.model
    entry = next((candidate for candidate in entries if candidate.name == name), None)
    if isinstance(context.model, ModelError) and entry is not None:
        say(str(context.model))
        draw_folder_findings(entry)
        st.stop()
    return context.opened


def draw_description(model: OpenModel) -> None:
    """Draw the config in sentences, the held-out metric, the data, and what to expect."""
    st.header(literal(model.title), anchor=False)
    st.markdown(model_descriptions.config_sentences(model.config))
    score = model_descriptions.held_out_score(model.run) if model.run.get("metrics") else ""
    more = [
        score,
        model_descriptions.data_attribution(model.run),
        model.expectation and f"Expected after training: {model.expectation}",
    ]
    if line := " · ".join(literal_sentence(words) for words in more if words):
        st.caption(line)


def draw_model_export(opened: OpenModel) -> None:
    """Draw a download of a model trained here; if no family fits it, say which config would."""
    if opened.family != OURS:
        return
    export, _ = export_form(opened.model)
    if export.family is None:
        why, _, nearest = (export.fault or "").partition("; ")
        st.caption(
            f"It cannot be exported: {literal_sentence(why[:1].lower() + why[1:].rstrip('.'))}.",
            help=literal_sentence(nearest[:1].upper() + nearest[1:]) or None,
            width="content",
        )
        return
    st.download_button(
        f"Export as a {export.family} folder",
        lambda: published_folder.to_zip(opened),
        file_name=f"{own_name(opened.name)}-{export.family}.zip",
        key="export_model",
        help=f"{published_folder.what_opens(opened)}.".capitalize(),
    )


def draw_adapter_export(opened: OpenModel, folder: Path) -> None:
    """Draw a download of the LoRA adapter alone, if the model was trained with one."""
    if published_folder.has_adapter(folder) and adapter_exportable(opened.config).family:
        st.download_button(
            "Export the LoRA adapter (PEFT)",
            lambda: published_folder.adapter_to_zip(folder),
            file_name=f"{own_name(opened.name)}-adapter.zip",
            key="export_adapter",
            help="adapter_config.json and adapter_model.safetensors, for the peft library; they "
            f"belong to {literal(str(opened.run.get('parent') or 'the model'))}.",
        )


COLOURS = {"error": "red", "warning": "orange", "note": "blue", "fine": "green"}
LABELS = {"error": "Error", "warning": "Warning", "note": "Note", "fine": "OK"}


def draw_diagnostics(context: PageContext, opened: OpenModel) -> Script:
    """Draw the findings of every check of the model, the most severe first."""
    st.markdown("**Diagnostics** · the most severe first")
    files = _of_files(context.folder)
    if isinstance(opened.tokenizer, PublishedTokenizer):
        files += diagnostics.tokenizer_findings(opened.tokenizer.unfollowed)
    forward = context.passed
    if isinstance(forward, ForwardPass):
        parts = [measured_heads(context, part.name) for part in forward.parts]
        of_text = diagnostics.attention_findings(parts)
    else:
        of_text = [Diagnostic("note", "Attention not checked", str(forward))]
    _draw_findings([*files, *_of_weights(opened), *of_text], context.choice.model)
    return script(diagnostics_code, opened)


def draw_folder_findings(entry: ModelEntry, *, heading: bool = False) -> None:
    """Draw the findings on the files of a model that cannot be opened."""
    findings = _of_files(entry.folder)
    if heading:
        is_listed = any(finding.sentence == entry.fault for finding in findings)
        st.text(f"{entry.title}: {'cannot be opened.' if is_listed else entry.fault}")
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


def diagnostics_code(opened: OpenModel) -> None:
    summaries = tuple(summarized(opened.model))
    findings = [
        *diagnostics.value_findings(summaries),
        *diagnostics.training_findings(opened.model, summaries),
        *diagnostics.dead_head_findings(opened.model),
    ]
    for finding in diagnostics.most_severe_first(findings):
        print(finding.level, finding.title, finding.sentence)
