"""Export: a model of ours as a folder of a published family that computes the same.

A family fits when the config.json that it would write, read again, describes the same
forward pass. Its table of names then says which of our weights every tensor of theirs holds.
Where none fits, one may fit an equivalent form of the model, which computes the same.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.effective_fields import effective_fields
from models.families.family import Family
from models.families.published import Published
from models.file_text import parse_json
from models.loading.adapter_files import ADAPTER_WEIGHTS, save_adapter
from models.loading.checkpoint import in_place_of
from models.loading.checkpoint_tokenizer import CHAT_TEMPLATE, TOKENIZER_FILES
from models.loading.equivalent import changes, equivalent_config, equivalent_form
from models.loading.safe_files import (
    ADAPTER_CONFIG,
    CONFIG,
    TOKENIZER,
    TOKENIZER_CONFIG,
    CheckpointError,
    quoted,
    title,
)
from models.loading.weight_files import WEIGHTS
from models.lora import lora_leaves
from models.model import Transformer

HEADER_NOTES = {"format": "pt"}
"""What the reference library expects in a file's header."""
MOST_DIFFERENCES = 4
"""Differences that a sentence names."""


@dataclass(frozen=True)
class Export:
    """The family that a config fits and its config.json; or, in one sentence, why none does.

    `changes` are the parts that an equivalent form has in another way.
    """

    family: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    fault: str | None = None
    changes: tuple[str, ...] = ()


def exportable(config: TransformerConfig) -> Export:
    """The first family in which this config means the same."""
    if not config.d_ff:
        return Export(fault="No published model family is without feed-forward layers.")
    ours = effective_fields(config)
    nearest: list[str] | None = None
    near = ""
    for name, family in FAMILIES.items():
        if family.published is None:
            continue
        try:
            values = {"model_type": name} | family.published(config)
            theirs = effective_fields(family.config(Published(values)))
        except (ValueError, ArithmeticError):
            continue
        different = [key for key in ours | theirs if ours.get(key) != theirs.get(key)]
        if not different:
            return Export(name, values)
        if nearest is None or len(different) < len(nearest):
            nearest = [field_difference(key, ours, theirs) for key in different]
            near = name
    if nearest is None:
        return Export(fault="No published model family has models of this kind.")
    n_more = len(nearest) - MOST_DIFFERENCES
    more = f"; {n_more} more {'differs' if n_more == 1 else 'differ'}" if n_more > 0 else ""
    parts = "; ".join(nearest[:MOST_DIFFERENCES])
    fault = "No published model family has this architecture; "
    fault += f"the nearest is {near}: {parts}{more}."
    return Export(fault=fault)


def export_form(model: Transformer) -> tuple[Export, Transformer]:
    """The family of a model, and what is written: itself, or an equivalent form of it."""
    export = exportable(model.config)
    if export.family is None:
        other = exportable(equivalent_config(model.config))
        if other.family is not None and (form := equivalent_form(model)) is not None:
            return replace(other, changes=changes(model.config)), form
    return export, model


def adapter_exportable(config: TransformerConfig) -> Export:
    """The family for the adapters of a model, whose files do not name the padding token."""
    export = exportable(config)
    return export if export.family else exportable(config.replace(pad_id=None))


def field_difference(key: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    def text(values: dict[str, Any]) -> str:
        value = values.get(key)
        return "none" if value is None else quoted(str(value))

    return f"{key} is {text(theirs)}, here {text(ours)}"


def export_checkpoint(
    folder: str | Path,
    model: Transformer,
    tokenizer: str | Callable[[Path], object] | None = None,
    *,
    classes: Sequence[str] | None = None,
) -> str:
    """Write the published folder, in place of an earlier export; returns its family.

    `tokenizer` is the text of a tokenizer.json of ours, or writes the files of a published one into
    a folder; `classes` are the names of a classifier's classes.
    CheckpointError when no family has this shape, or when the folder holds anything else.
    """
    folder = Path(folder)
    if folder.exists() and not holds_a_model_alone(folder):
        raise CheckpointError(
            f"{title(folder)} holds other files, which an export would replace; name a new folder."
        )
    export, form = export_form(model)
    if export.family is None:
        raise CheckpointError(export.fault)
    values = dict(export.values)
    if classes is not None and model.config.head == "classifier":
        if len(classes) != model.config.n_classes:
            raise CheckpointError(f"The model has {model.config.n_classes} classes to be named.")
        values["id2label"] = {str(i): name for i, name in enumerate(classes)}
        values["label2id"] = {name: i for i, name in enumerate(classes)}
    with in_place_of(folder) as new:
        (new / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        tensors = dict(published_tensors(FAMILIES[export.family], form))
        save_file(tensors, new / WEIGHTS, HEADER_NOTES)
        (new / WEIGHTS).chmod(0o644)
        if callable(tokenizer):
            tokenizer(new)
        elif tokenizer is not None:
            (new / TOKENIZER).write_text(tokenizer, encoding="utf-8")
            named = json.dumps(tokenizer_config(tokenizer, model.config), indent=2)
            (new / TOKENIZER_CONFIG).write_text(named + "\n", encoding="utf-8")
    return export.family


def export_adapter(folder: str | Path, model: Transformer, parent: str = "") -> str:
    """Write the adapters of a model as the peft library reads them; returns the family.

    They fit the published folder of the `parent`, which is not written. CheckpointError when
    no family has this shape, when there are no adapters, or when the folder is not empty.
    """
    folder = Path(folder)
    export = adapter_exportable(model.config)
    if export.family is None:
        raise CheckpointError(export.fault)
    if not lora_leaves(model):
        raise CheckpointError("All of this model was trained, so it has no LoRA adapter to write.")
    if folder.exists() and not holds_a_model_alone(folder, {ADAPTER_CONFIG, ADAPTER_WEIGHTS}):
        raise CheckpointError(
            f"{title(folder)} holds other files, which an export would replace; name a new folder."
        )
    with in_place_of(folder) as new:
        save_adapter(new, model, FAMILIES[export.family], parent)
    return export.family


EXPORTED_FILES = frozenset(
    {CONFIG, WEIGHTS, TOKENIZER_CONFIG, CHAT_TEMPLATE, *TOKENIZER_FILES}
    | {"merges.txt", "special_tokens_map.json", "added_tokens.json"}
)


def holds_a_model_alone(folder: Path, names: Collection[str] = EXPORTED_FILES) -> bool:
    """Whether a folder is empty or holds nothing but what an export writes."""
    try:
        return {path.name for path in folder.iterdir()} <= set(names)
    except OSError:  # a file, or closed to us
        return False


@torch.no_grad()
def published_tensors(family: Family, model: Transformer) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the published file by its name there, none of ours twice."""
    ours = dict(model.named_parameters())
    covered: set[str] = set()
    for name, layout in family.layouts(model.config):
        if covered >= set(layout.ours) or not ours.keys() >= set(layout.ours):
            continue
        covered |= set(layout.ours)
        joined = layout.join([ours[own] for own in layout.ours])
        yield family.add_prefix(name, model.config), joined.detach().clone().contiguous()
    if left := ours.keys() - covered:
        raise CheckpointError(f"{family.types[0]} has no name for {quoted(min(left))}.")


def tokenizer_config(tokenizer: str, config: TransformerConfig) -> dict[str, Any]:
    """The special tokens by their roles, which the reference library needs in a file of its own.

    As here, a special token that somebody types is plain text there (`split_special_tokens`).
    """
    try:
        added = parse_json(tokenizer, exact=True)["added_tokens"] or []
        words = {token["id"]: token["content"] for token in added}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{TOKENIZER} to be written is not one of a tokenizer.") from error
    ids = {
        "pad_token": config.pad_id,
        "bos_token": config.bos_id,
        "eos_token": next(iter(config.generation.eos_ids), None),
    }
    named = {name: words[i] for name, i in ids.items() if i in words}
    longest = {"model_max_length": config.max_len}
    plain = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True}
    return plain | longest | named
