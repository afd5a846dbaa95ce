"""What a run starts from: new weights, or a trained model, whole or with LoRA adapters."""

from typing import Any

import streamlit as st

from explorer.app import reader_models
from explorer.app.controls import one_of
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.open_model import OpenModel, open_entry
from explorer.runs.finetuning import usual_targets
from explorer.runs.settings import Setting
from explorer.runs.spec import RunSpec
from explorer.tasks import CUSTOM_TASKS
from explorer.views.training.form_inputs import SettingInputs
from models import TransformerConfig
from models.lora import target_ranks

NEW_WEIGHTS = "New weights"
WHOLE, LORA = "Whole model", "LoRA"
USUAL_RANK = 4


def models_to_start_from(task: str) -> dict[str, ModelEntry]:
    """What a run of this task may start from, by what a list shows of it."""
    if task in CUSTOM_TASKS and not CUSTOM_TASKS[task].tokenizers:
        return {}  # it has a vocabulary of its own, and no model that was trained on it
    models = reader_models.openable()
    return {label: models[name] for name, label in reader_models.labels(models).items()}


def draw_start_from(task: str) -> OpenModel | None:
    """The model that the run starts from; None for new weights. ModelError where it cannot be."""
    models = models_to_start_from(task)
    if not models:
        return None
    chosen = one_of(
        "start_from",
        (NEW_WEIGHTS, *models),  # what is shown is in the address too, so no key is
        as_list=True,
    )
    return None if chosen == NEW_WEIGHTS else open_entry(models[chosen])


def draw_tuning(
    config: TransformerConfig, inputs: SettingInputs, now: RunSpec | None
) -> dict[str, Any]:
    """What of the model is trained, as `finetune_spec` has it; at first what the run `now` does."""
    ranks = target_ranks(config)
    has_lora = now is None or now.lora_rank > 0
    key = inputs.key("tuned")
    options = (LORA, WHOLE)
    tuned = st.segmented_control(
        "Train",
        options,
        default=options[not has_lora],
        required=True,
        key=key,
        persist_state="session",
        help="LoRA freezes the model. To each chosen matrix it adds a product of two thin ones and "
        "trains only these: r · (in + out) numbers in place of in · out.",
    )
    if tuned == WHOLE:
        return {"lora_rank": 0}
    targets = list(now.lora_targets) if now and now.lora_rank else list(usual_targets(config))
    chosen = st.multiselect(
        "Matrices with an adapter",
        list(ranks),
        default=targets,
        key=inputs.key("lora_targets"),
        persist_state="session",
    )
    most = min((ranks[name] for name in chosen), default=1)
    rank = inputs.draw(
        Setting("lora_rank", "Rank r", low=1, high=most, help="Of each adapter."),
        min(most, now.lora_rank if now and now.lora_rank else USUAL_RANK),
    )
    alpha = inputs.draw(
        Setting(
            *("lora_alpha", "α"),
            low=0.01,
            high=1_024.0,
            step=1.0,
            format="%.3g",
            help="The product is scaled by α/r.",
        ),
        now.lora_alpha if now and now.lora_rank else 2.0 * USUAL_RANK,
    )
    return {"lora_rank": rank, "lora_alpha": alpha, "lora_targets": tuple(chosen) or ("none",)}
