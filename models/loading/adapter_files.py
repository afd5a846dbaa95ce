"""LoRA adapters as the peft library's files: adapter_config.json and adapter_model.safetensors.

They lie in the folder of their model and use its names, ours or those of its family. A matrix
of theirs may hold several of ours, such as GPT-2's `c_attn`: its rank is then the sum of ours,
each of which reads and writes its own part. Modules that were trained whole, such as a new head,
are stored as they are (`modules_to_save`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from models.config import TransformerConfig
from models.families.family import Family
from models.families.layout import Columns, Same
from models.loading.adapter_settings import AdapterSettings
from models.loading.safe_files import ADAPTER_CONFIG, CheckpointError, quoted, read_json, title
from models.loading.stored_weights import Weights
from models.loading.weight_files import ADAPTER_WEIGHTS, PEFT_PREFIX, open_file
from models.lora import LoRALinear, lora_leaves
from models.model import Transformer

A, B, WEIGHT = ".lora_A.weight", ".lora_B.weight", ".weight"
EMBEDDING = re.compile(r"\.(lora_embedding_[AB]|base_layer\.weight)$")
TASK_TYPES = {"language-model": "CAUSAL_LM", "classifier": "SEQ_CLS"}

Named = list[tuple[str, Same]]


def save_adapter(
    folder: Path, model: Transformer, family: Family | None = None, parent: str = ""
) -> None:
    """Write both files. The config names their model, `parent`."""
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    saved: list[str] = []
    leaves = lora_leaves(model)
    trained = {name: value for name, value in _whole(model) if value.requires_grad}
    is_transposed = False
    for theirs, layout in _named(model.config, family):
        name = family.add_prefix(theirs, model.config) if family else theirs
        module, _, ending = name.rpartition(".")
        if any(_leaf(ours) in leaves for ours in layout.ours):
            down, up, alpha = _joined(model, layout)
            is_transposed |= isinstance(layout, Columns)
            ranks[module], alphas[module] = len(down), alpha
            tensors |= {PEFT_PREFIX + module + A: down, PEFT_PREFIX + module + B: up}
        elif trained.keys() >= set(layout.ours):
            joined = layout.join([trained.pop(ours).detach() for ours in layout.ours])
            tensors[PEFT_PREFIX + name] = joined.clone().contiguous()
            saved.append(module if ending in ("weight", "bias") else name)
    if trained:
        raise CheckpointError(f"No family's file has a name for {quoted(min(trained))}.")
    rank, alpha = min(ranks.values()), min(alphas.values())
    config = {
        "peft_type": "LORA",
        "task_type": TASK_TYPES.get(model.config.head),
        "base_model_name_or_path": parent or None,
        "r": rank,
        "lora_alpha": alpha,
        "target_modules": list(ranks),
        "rank_pattern": {name: value for name, value in ranks.items() if value != rank},
        "alpha_pattern": {name: value for name, value in alphas.items() if value != alpha},
        "modules_to_save": list(dict.fromkeys(saved)) or None,
        "fan_in_fan_out": is_transposed,
        "bias": "none",
        "lora_dropout": 0.0,
        "inference_mode": True,
    }
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(tensors, folder / ADAPTER_WEIGHTS, {"format": "pt"})


@torch.no_grad()
def _joined(model: Transformer, layout: Same) -> tuple[Tensor, Tensor, float]:
    """A, B and α of a matrix that may hold several of ours."""
    parts = [model.get_submodule(_leaf(ours)) for ours in layout.ours]
    adapted = [leaf for leaf in parts if isinstance(leaf, LoRALinear)]
    first, rank, at = adapted[0], sum(leaf.rank for leaf in adapted), 0
    ups = []
    for leaf in parts:
        assert isinstance(leaf, nn.Linear)
        up = torch.zeros(leaf.out_features, rank)
        if isinstance(leaf, LoRALinear):
            up[:, at : at + leaf.rank] = leaf.lora_B.weight * (leaf.scaling / first.scaling)
            at += leaf.rank
        ups.append(up)
    down = torch.cat([leaf.lora_A.weight for leaf in adapted]).contiguous()
    joined = layout.join(ups)
    up = joined.T if isinstance(layout, Columns) else joined
    return down, up.contiguous().clone(), first.alpha * rank / first.rank


def attach_adapter(folder: Path, model: Transformer, family: Family | None = None) -> None:
    """Give a model the adapter in a folder, in place; it alone is trained from then on.

    CheckpointError, in one sentence, unless both files are complete and belong to this model.
    """
    settings = AdapterSettings(read_json(folder, ADAPTER_CONFIG), title(folder))
    weights = open_file(folder, ADAPTER_WEIGHTS)
    if embedding := next((name for name in weights.names if EMBEDDING.search(name)), None):
        raise CheckpointError(
            f"{quoted(embedding)} in {ADAPTER_WEIGHTS} of {title(folder)} adapts an embedding "
            "or the output matrix, which is not supported; merge it into its model first."
        )
    plain = family.plain if family else str
    named = _named(model.config, family)
    layouts = {plain(name): layout for name, layout in named}
    parameters = dict(model.named_parameters())
    modules = model.named_modules()
    linear = {name + WEIGHT for name, module in modules if isinstance(module, nn.Linear)}
    adapted = {
        name.removeprefix(PEFT_PREFIX).removesuffix(A) for name in weights.names if name.endswith(A)
    }
    whole = {
        plain(name.removeprefix(PEFT_PREFIX)): name.removeprefix(PEFT_PREFIX)
        for name in weights.names
        if not name.endswith((A, B))
    }
    for name, named_layout in named:
        theirs = family.add_prefix(name, model.config) if family else name
        theirs = whole.get(plain(theirs), theirs)
        is_matrix = theirs.endswith(WEIGHT) and all(
            parameters[our].dim() == 2 for our in named_layout.ours
        )
        settings.check(theirs, is_matrix, adapted, set(whole.values()))
    model.requires_grad_(False)
    with weights.open() as read_tensor:
        for name in weights.names:
            theirs = name.removeprefix(PEFT_PREFIX)
            module = theirs.removesuffix(A).removesuffix(B)
            layout = layouts.get(plain(theirs if module == theirs else module + WEIGHT))
            ours = [parameters[our] for our in layout.ours] if layout else []
            is_output = family is not None and plain(theirs) == family.output
            if layout is None and is_output and model.config.tie_embeddings:
                raise CheckpointError(_tied(folder, name))
            if layout is None or not name.startswith(PEFT_PREFIX):
                raise CheckpointError(
                    f"{quoted(name)} in {ADAPTER_WEIGHTS} of {title(folder)}, of the shape "
                    f"{weights.shape(name)}, is of no weight of this model that can be adapted."
                )
            if (module != theirs and not set(layout.ours) <= linear) or not _fits(
                weights, name, layout, ours
            ):
                raise CheckpointError(
                    _misfit(folder, weights, name, module != theirs, layout, ours)
                )
            if module == theirs:
                if _is_tied(model.config, layout):
                    raise CheckpointError(_tied(folder, name))
                for target, part in zip(ours, layout.split(read_tensor(name), ours), strict=True):
                    target.data = part.to(target.dtype, copy=True)
                    target.requires_grad_(True)
            elif name.endswith(A):
                up = read_tensor(name.removesuffix(A) + B)
                alpha = settings.alpha(module, up.shape[1])
                _put(model, layout, ours, read_tensor(name), up, alpha)


def _misfit(
    folder: Path,
    weights: Weights,
    name: str,
    is_pair: bool,
    layout: Same,
    ours: Sequence[Tensor],
) -> str:
    shape = tuple(layout.join([tensor.to("meta") for tensor in ours]).shape)
    what = f"{quoted(name)} in {ADAPTER_WEIGHTS} of {title(folder)}"
    fault = f"{what} has the shape {weights.shape(name)}, "
    if is_pair:
        return fault + f"which does not adapt a matrix of the shape {shape}."
    return fault + f"but the model's is {shape}: resized tables are not supported."


def _tied(folder: Path, name: str) -> str:
    return (
        f"{quoted(name)} in {ADAPTER_WEIGHTS} of {title(folder)} is one of two tied tables, which "
        "an adapter separates; that is not supported."
    )


def _is_tied(config: TransformerConfig, layout: Same) -> bool:
    """Whether it holds one of tables that the model shares, or a second one of these."""
    tables = {f"{stack}.embedding.weight" for stack in config.stacks} | {"head.weight"}
    is_shared = config.share_embeddings or (
        config.head.endswith("language-model") and config.tie_embeddings
    )
    return is_shared and not tables.isdisjoint(layout.ours)


def _put(
    model: Transformer,
    layout: Same,
    ours: Sequence[Tensor],
    down: Tensor,
    up: Tensor,
    alpha: float,
) -> None:
    parts = layout.split(up.T if isinstance(layout, Columns) else up, ours)
    for name, part in zip(layout.ours, parts, strict=True):
        base = model.get_submodule(_leaf(name))
        assert isinstance(base, nn.Linear)
        leaf = LoRALinear(base, len(down), alpha)
        leaf.lora_A.weight.data = down.float()
        leaf.lora_B.weight.data = part.float().contiguous()
        model.set_submodule(_leaf(name), leaf)


def _fits(weights: Weights, name: str, layout: Same, ours: Sequence[Tensor]) -> bool:
    """Whether a tensor has the shape that its name asks for; A and B must both be there."""
    shape = weights.shape(name)
    pair = {name.removesuffix(end) for end in (A, B) if name.endswith(end)}
    if not pair:
        return list(shape) == list(layout.join([tensor.to("meta") for tensor in ours]).shape)
    stem = pair.pop()
    if not {stem + A, stem + B} <= weights.tensors.keys():
        return False
    down, up = weights.shape(stem + A), weights.shape(stem + B)
    rows = sum(len(tensor) for tensor in ours)
    return (
        all(tensor.dim() == 2 and down[1:] == tensor.shape[1:] for tensor in ours)
        and up == (rows, *down[:1])
        and down[0] >= 1
    )


def _named(config: TransformerConfig, family: Family | None) -> Named:
    """The tensors of a model's file by name, each with its layout of ours."""
    with torch.device("meta"):
        ours = [name for name, _ in Transformer(config).named_parameters()]
    if family is None:
        return [(name, Same((name,))) for name in ours]
    return [
        (name, layout) for name, layout in family.layouts(config) if set(layout.ours) <= set(ours)
    ]


def _whole(model: Transformer) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters that are in no leaf with an adapter."""
    leaves = tuple(f"{name}." for name in lora_leaves(model))
    yield from (
        (name, parameter)
        for name, parameter in model.named_parameters()
        if not name.startswith(leaves)
    )


def _leaf(parameter: str) -> str:
    """The leaf whose weight has this name; no leaf has that of a bias."""
    return parameter.removesuffix(WEIGHT)
