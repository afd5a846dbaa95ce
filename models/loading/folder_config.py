"""Reading the config of a folder, in our own format or that of a published family."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from models.config import TOKENS, GenerationConfig, TransformerConfig
from models.families import FAMILIES
from models.families.family import SUGGESTION, Family
from models.families.gguf_architectures import describe
from models.families.published import GENERATION_SETTINGS, UNSUPPORTED_SETTINGS
from models.loading.gguf_header import GgufHeader, gguf_file, read_gguf_header
from models.loading.gguf_weights import gguf_weights
from models.loading.safe_files import (
    ADAPTER_CONFIG,
    CONFIG,
    GENERATION,
    RUN,
    CheckpointError,
    is_folder,
    is_there,
    quoted,
    read_json,
    title,
)
from models.loading.weight_files import (
    ADAPTER_WEIGHTS,
    PEFT_PREFIX,
    Shapes,
    adapter_base,
    adapter_fault,
    check_adapter,
    model_folder,
    open_file,
)

OURS = "ours"
CLASSIFIES, AS_CLASSIFIER, OUTPUT = "SEQ_CLS", "ForSequenceClassification", ("head.out.weight",)
LABELS = ("id2label", "label2id")
HEADS_OF_NO_TASK = {
    "CAUSAL_LM": ("classifier", "masked-language-model"),
    "SEQ_2_SEQ_LM": ("classifier", "masked-language-model"),
    "FEATURE_EXTRACTION": ("classifier",),
}
"""The heads of a model with which an adapter of the task is not used."""
ENDS = ("eos_token_id", "decoder_start_token_id")


@dataclass(frozen=True)
class FolderConfig:
    """The config of a folder, read; `unfollowed` names its settings that are not supported.

    `head` are the tensors of a classifier's head that an adapter brings, by their plain names.
    """

    folder: Path
    config: TransformerConfig
    run: dict[str, Any]
    family: Family | None = None
    model_type: str = OURS
    unfollowed: tuple[str, ...] = ()
    head: Shapes = field(default_factory=dict)


def read_folder_config(folder: Path) -> FolderConfig:
    """The config of a folder; its weights are not read. CheckpointError when it is no model."""
    files = (ADAPTER_CONFIG, ADAPTER_WEIGHTS, "adapter_model.bin")
    adapter = [name for name in files if is_there(folder, name)]
    if (file := gguf_file(folder)) is not None:
        if adapter:
            raise CheckpointError(adapter_fault(title(folder), has_gguf=True))
        return read_gguf_config(folder, read_gguf_header(file))
    if not is_folder(folder):
        raise CheckpointError(f"There is no checkpoint folder {title(folder)}.")
    check_adapter(adapter, title(folder))
    place, alone = folder, title(folder)
    folder = model_folder(folder)
    if adapter and not is_there(folder, CONFIG):
        raise CheckpointError(adapter_fault(alone, adapter_base(folder)))
    values = read_json(folder, CONFIG)
    run = read_json(folder, RUN) if is_there(folder, RUN) else {}
    model_type = values.get("model_type")
    if model_type is not None:
        values |= generation_settings(folder)
    try:
        if model_type is None:
            return FolderConfig(folder, TransformerConfig.from_dict(values), run)
        return _describe_published(folder, values, model_type, run, place if adapter else None)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{CONFIG} in {title(folder)} is no model: {error}") from error
    except ArithmeticError as error:
        raise CheckpointError(
            f"{CONFIG} in {title(folder)} is no model: its numbers cannot be calculated with."
        ) from error


def read_gguf_config(folder: Path, header: GgufHeader) -> FolderConfig:
    """The config of a GGUF file, from its metadata, as of a published family."""
    try:
        values, family = describe_gguf(header)
        of_family = _describe_published(folder, values, values["model_type"], {})
    except ValueError as error:
        raise CheckpointError(f"{quoted(header.file.name)} is no model: {error}") from error
    except ArithmeticError as error:
        raise CheckpointError(
            f"{quoted(header.file.name)} is no model: its numbers cannot be calculated with."
        ) from error
    return replace(of_family, family=family)


def describe_gguf(header: GgufHeader) -> tuple[dict[str, Any], Family]:
    """The published config.json that a GGUF file stands for, and the family with its names."""
    shapes = {name: placed.shape for name, placed in header.tensors.items()}

    def numbers(name: str) -> Tensor:
        with gguf_weights(header).open() as read_tensor:
            return read_tensor(name)

    return describe(header.values, shapes, numbers)


def generation_settings(folder: Path) -> dict[str, Any]:
    """The settings in generation_config.json, which replace those in config.json.

    Only the tokens that begin and end a text fall back to config.json.
    """
    if not is_there(folder, GENERATION):
        return {}
    values = read_json(folder, GENERATION)
    return {
        name: values.get(name)
        for name in (*GENERATION_SETTINGS, *UNSUPPORTED_SETTINGS)
        if values.get(name) is not None or name not in ENDS
    }


def _describe_published(
    folder: Path,
    values: dict[str, Any],
    model_type: object,
    run: dict[str, Any],
    adapter: Path | None = None,
) -> FolderConfig:
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        own = ", and code that a folder brings along is never run" if "auto_map" in values else ""
        raise ValueError(f"the family {quoted(model_type)} is not supported{own}; {SUGGESTION}.")
    named = "id2label" in values
    values, head = _with_head(values, family, adapter) if adapter else (values, {})
    published = family.read(values)
    published.require("quantization_config", None)
    published.require("per_layer_config", None)
    config = with_known_tokens(family.config(published))
    published.require("is_causal", config.kind != "encoder")
    if not config.d_ff:
        raise ValueError("its feed-forward layers are 0 wide.")
    if fault := config.fault():
        raise ValueError(fault)
    unfollowed = published.unfollowed()
    if config.head == "classifier":
        run = {"classes": published.classes()} | run
        unfollowed += published.unfollowed_labels()
        unfollowed += ("id2label",) if named and "id2label" not in values else ()
    return FolderConfig(folder, config, run, family, str(model_type), unfollowed, head)


def _with_head(
    values: dict[str, Any], family: Family, adapter: Path
) -> tuple[dict[str, Any], Shapes]:
    """The config of the classifier whose head an adapter brings, and the head's tensors.

    It has a class for every row of the head. The config as it is where there is no such head.
    CheckpointError where the task of the adapter asks for another head than there is.
    """
    task = read_json(adapter, ADAPTER_CONFIG).get("task_type")
    there = family.read(values).head("")
    is_classifier = there == "classifier"
    fault = f"{ADAPTER_CONFIG} in {title(adapter)} asks for task_type {quoted(task)}, "
    if task not in (None, CLASSIFIES):
        if there in HEADS_OF_NO_TASK.get(str(task), ()):
            raise CheckpointError(f"{fault}but its model is a {there.replace('-', ' ')}.")
        return values, {}
    classifier = values | {"architectures": [AS_CLASSIFIER]}
    try:
        layouts = dict(family.layouts(family.config(family.read(classifier))))
    except (ValueError, ArithmeticError):
        layouts = {}
    weights = open_file(adapter, ADAPTER_WEIGHTS)
    stored = {family.plain(n.removeprefix(PEFT_PREFIX)): weights.shape(n) for n in weights.names}
    head = {
        name: stored[name]
        for name, layout in layouts.items()
        if stored.get(name) and layout.ours[0].startswith("head.")
    }
    rows = next((shape[0] for name, shape in head.items() if layouts[name].ours == OUTPUT), None)
    if rows is None:
        if task is not None and not is_classifier:
            raise CheckpointError(
                f"{fault}but its file holds no head of a classifier that is read here."
            )
        return values, {}
    if rows != len(family.read(values).classes()):
        classifier = {name: value for name, value in classifier.items() if name not in LABELS}
    return classifier | {"num_labels": rows}, head


def with_known_tokens(config: TransformerConfig) -> TransformerConfig:
    """The config without token IDs beyond its vocabulary, which small models often have."""

    def is_known(token: int | None) -> bool:
        return token is not None and 0 <= token < config.vocab_size

    absent = {role: None for role in TOKENS if not is_known(getattr(config, role))}
    generation = config.generation
    return config.replace(
        **absent,
        generation=GenerationConfig(
            tuple(filter(is_known, generation.eos_ids)),
            generation.forced_first_id if is_known(generation.forced_first_id) else None,
            tuple(filter(is_known, generation.banned_ids)),
        ),
    )
