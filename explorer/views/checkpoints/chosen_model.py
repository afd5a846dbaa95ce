"""The chosen model: opened, described in sentences, and exported as a published folder."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.catalog import ModelError, model_descriptions
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel
from explorer.export import published_folder
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.checkpoints.findings import draw_folder_findings
from models.loading.export import adapter_exportable, export_form
from models.loading.folder_config import OURS


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
