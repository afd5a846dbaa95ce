"""LoRA: a frozen matrix plus a trained product of two thin ones.

Shapes: r rank, i numbers in, o numbers out.
Source: LoRA: Low-Rank Adaptation of Large Language Models (Hu et al. 2021, arXiv:2106.09685).
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.config import TransformerConfig
from models.model import Transformer

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
TARGETS = (*ATTENTION, *FEED_FORWARD)  # leaves of a block that can have an adapter
USUAL_TARGETS = ("q_proj", "v_proj")  # those of the paper, section 7.1


class LoRALinear(nn.Linear):
    """x (W + α/r · B A)ᵀ + b, where W and b are frozen, and A and B trained.

    B starts at zero, so at first this is the frozen leaf itself. A starts as in the authors'
    code: uniform between ± 1/√i. Training needs the gradients of r · (i + o) numbers, not i · o.
    Source: LoRA, section 4.1.
    """

    def __init__(
        self, base: nn.Linear, rank: int, alpha: float, generator: torch.Generator | None = None
    ) -> None:
        nn.Module.__init__(self)  # that of nn.Linear would make a second matrix
        self.in_features, self.out_features = base.in_features, base.out_features
        self.rank, self.alpha, self.scaling = rank, alpha, alpha / rank
        self.base = base.requires_grad_(False)
        widest = self.in_features**-0.5
        uniform = torch.empty(rank, self.in_features).uniform_(-widest, widest, generator=generator)
        self.lora_A = linear_of(uniform.to(base.weight))
        self.lora_B = linear_of(base.weight.new_zeros(self.out_features, rank))

    @property
    def weight(self) -> Float[Tensor, "o i"]:  # type: ignore[override]
        """The matrix W + α/r · B A, computed on every call. Cost: o · r · i."""
        return self.base.weight + self.scaling * (self.lora_B.weight @ self.lora_A.weight)

    @property
    def bias(self) -> Float[Tensor, "o"] | None:  # type: ignore[override]
        return self.base.bias

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return self.base(x) + self.scaling * self.lora_B(self.lora_A(x))


def linear_of(weight: Float[Tensor, "o i"], bias: nn.Parameter | None = None) -> nn.Linear:
    leaf = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    leaf.weight = nn.Parameter(weight)
    leaf.register_parameter("bias", bias)
    return leaf


def add_lora(
    model: Transformer,
    rank: int,
    alpha: float = 16.0,
    targets: Sequence[str] = USUAL_TARGETS,
    seed: int = 0,
    whole: Sequence[str] = (),
) -> Transformer:
    """Freeze the model in place and give a new adapter to every leaf with one of these names.

    `whole` names modules that are trained whole, such as a new head. ValueError, in one
    sentence, where the model has no such leaf, or a rank that its matrices do not have.
    """
    if fault := lora_fault(model.config, rank, targets):
        raise ValueError(fault)
    generator = torch.Generator().manual_seed(seed)
    model.requires_grad_(False)
    for name, leaf in list(linear_leaves(model, targets)):
        model.set_submodule(name, LoRALinear(leaf, rank, alpha, generator))
    for name in whole:
        model.get_submodule(name).requires_grad_(True)
    return model


def lora_fault(config: TransformerConfig, rank: int, targets: Sequence[str]) -> str | None:
    """Why a model of this config cannot have such adapters, or None."""
    there = target_ranks(config)
    if not targets:
        return "LoRA needs at least one matrix: choose some of " + ", ".join(there) + "."
    if absent := [name for name in targets if name not in there]:
        return f"The model has no {absent[0][:40]}: choose some of {', '.join(there)}."
    most = min(there[name] for name in targets)
    if not 1 <= rank <= most:
        return f"The rank must be between 1 and {most}, the smallest width of these matrices."
    return None


def target_ranks(config: TransformerConfig) -> dict[str, int]:
    """The leaves of this config that can have an adapter, with the highest rank of each."""
    with torch.device("meta"):
        model = Transformer(config)
    ranks: dict[str, int] = {}
    for name, leaf in linear_leaves(model, TARGETS):
        last, width = name.rpartition(".")[2], min(leaf.in_features, leaf.out_features)
        ranks[last] = min(width, ranks.get(last, width))
    return {name: ranks[name] for name in TARGETS if name in ranks}


def linear_leaves(model: nn.Module, targets: Sequence[str]) -> Iterator[tuple[str, nn.Linear]]:
    """The linear leaves of the blocks with one of these names, each with its whole name."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in targets:
            yield name, module


def lora_leaves(model: nn.Module) -> dict[str, LoRALinear]:
    """The leaves that have an adapter, by their names."""
    return {name: leaf for name, leaf in model.named_modules() if isinstance(leaf, LoRALinear)}


def merged(model: Transformer) -> Transformer:
    """A plain copy of the model that computes the same up to rounding."""
    return merge(deepcopy(model))


def merge(model: Transformer) -> Transformer:
    """Add every adapter to its matrix, in place, and unfreeze the model."""
    for name, leaf in lora_leaves(model).items():
        model.set_submodule(name, linear_of(leaf.weight.detach(), leaf.base.bias))
    return model.requires_grad_(True)
