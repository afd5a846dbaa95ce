"""The parameter tree: every parameter of a model once, by module, each count with its formula.

A leaf is one matrix or norm with its bias. Identical layers appear once, with their number;
shared tensors are counted where they appear first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby

import torch
from torch import nn

from explorer.catalog.model_descriptions import POSITIONS_IN_WORDS
from models import Transformer, TransformerConfig

Term = tuple[tuple[str, int], ...]
"""Sizes by their names in the config, to be multiplied."""

PARAMETER_NAMES = {
    "embedding": "token embedding",
    "segments": "segment embedding",
    "embedding_norm": "embedding norm",
    "self_attn": "self-attention",
    "self_residual": "self-attention norm",
    "cross_attn": "cross-attention",
    "cross_residual": "cross-attention norm",
    "mlp": "feed-forward",
    "mlp_residual": "feed-forward norm",
    "q_proj": "query projection",
    "k_proj": "key projection",
    "v_proj": "value projection",
    "o_proj": "output projection",
    "q_norm": "query norm",
    "k_norm": "key norm",
    "rows": "scale of the rows",
    "gate": "gate of the heads",
    "gate_proj": "gate projection",
    "up_proj": "up projection",
    "down_proj": "down projection",
    "out_norm": "output norm",
    "transform": "transform",
    "proj": "projection",
    "hidden": "hidden layer",
    "out": "classes",
}

COMPUTED_POSITIONS = ("sinusoidal", "rotary", "alibi")
"""Position schemes without parameters."""
MOST_TERMS = 4
"""A sum of more terms is not written out."""


@dataclass(frozen=True)
class ParameterNode:
    """A part of a model: `times` identical ones of `size` parameters.

    A leaf has terms, the others have children; `note` says why nothing is counted here.
    """

    name: str
    size: int = 0
    terms: tuple[Term, ...] = ()
    children: "tuple[ParameterNode, ...]" = ()
    times: int = 1
    note: str = ""

    @property
    def count(self) -> int:
        return self.times * self.size

    @property
    def symbols(self) -> str:
        """`d_model × d_ff + d_ff`."""
        return _sum_in_words([" × ".join(name for name, _ in term) for term in self.terms])

    @property
    def numbers(self) -> str:
        """`64 × 256 + 256`; `4 × 49,984` for identical layers; `64 + 128` for a few children."""
        if self.times > 1:
            return f"{self.times:,} × {self.size:,}"
        if self.children:
            counts = [child.count for child in self.children if child.count]
            if len(counts) > 1 and len(set(counts)) == 1:
                return f"{len(counts)} × {counts[0]:,}"
            return " + ".join(f"{count:,}" for count in counts) if len(counts) <= MOST_TERMS else ""
        return _sum_in_words([" × ".join(f"{size:,}" for _, size in term) for term in self.terms])


def _sum_in_words(terms: list[str]) -> str:
    is_double = len(terms) == 2 and terms[0] == terms[1]
    return f"2 × {terms[0]}" if is_double else " + ".join(terms)


@lru_cache(32)
def parameter_tree_of(config: TransformerConfig) -> ParameterNode:
    """The tree of a model that is not loaded: built on the meta device, without its weights."""
    with torch.device("meta"):
        return parameter_tree(Transformer(config))


def parameter_tree(model: Transformer) -> ParameterNode:
    """The root is the whole model; the children of every node add up to it."""
    tree = _Builder(model.config)
    stacks = [tree.node((name,), module) for name, module in model.named_children()]
    return _sum("all parameters", [node for node in stacks if node])


def tree_lines(node: ParameterNode, depth: int = 0) -> Iterator[tuple[int, ParameterNode]]:
    """Every node with its depth, parents first."""
    yield depth, node
    for child in node.children:
        yield from tree_lines(child, depth + 1)


def _sum(name: str, children: list[ParameterNode]) -> ParameterNode:
    return ParameterNode(name, sum(child.count for child in children), children=tuple(children))


@dataclass
class _Builder:
    """Builds the nodes; `counted` names the part that counts each tensor, by the tensor's id."""

    config: TransformerConfig
    counted: dict[int, str] = field(default_factory=dict)

    def node(self, path: tuple[str, ...], module: nn.Module) -> ParameterNode | None:
        """One module with its submodules; None where it has no parameters."""
        name = _part_name(path, self.config)
        if path[-1] == "positions" and self.config.positions in COMPUTED_POSITIONS:
            return ParameterNode(name, note="computed, not learned")
        if path[-1] == "blocks":
            return self.layers(path, module)
        inside = [self.node((*path, inner), child) for inner, child in module.named_children()]
        nodes = [node for node in [*inside, *self.own(path, module)] if node]
        if len(nodes) == 1 and len(path) > 1:
            return replace(nodes[0], name=name)
        return _sum(name, nodes) if nodes else None

    def layers(self, path: tuple[str, ...], module: nn.Module) -> ParameterNode:
        """The layers of a stack; consecutive identical ones are one node."""
        layers = [self.node((*path, ""), block) or ParameterNode("") for block in module.children()]
        groups, first = [], 0
        for node, same in groupby(layers):
            times = len(list(same))
            some = f"layers {first} to {first + times - 1}, each"
            name = f"{times} layers, each" if times == len(layers) else some
            groups.append(replace(node, times=times, name=name if times > 1 else f"layer {first}"))
            first += times
        return groups[0] if len(groups) == 1 else _sum("layers", groups)

    def own(self, path: tuple[str, ...], module: nn.Module) -> list[ParameterNode]:
        """The module's own parameters; a node names a tensor that another part counts already."""
        name = "unembedding" if path == ("head",) else _part_name(path, self.config)
        tensors = dict(module.named_parameters(recurse=False))
        if path == ("head",) and self.config.tie_embeddings and self.config.head != "classifier":
            tied = ParameterNode(name, note="tied to the token embedding, which is counted there")
            return [tied, *([self.leaf("bias", path, tensors)] if tensors else [])]
        owners = {key: self.counted.get(id(tensor)) for key, tensor in tensors.items()}
        shared = [
            ParameterNode(name, note=f"shared with the {owner}, which is counted there")
            for owner in sorted({owner for owner in owners.values() if owner})
        ]
        new = {key: tensor for key, tensor in tensors.items() if not owners[key]}
        part = f"{name} of the {path[0]}" if path[-1] == "embedding" else name
        self.counted.update((id(tensor), part) for tensor in new.values())
        return [*shared, *([self.leaf(name, path, new)] if new else [])]

    def leaf(
        self, name: str, path: tuple[str, ...], tensors: dict[str, nn.Parameter]
    ) -> ParameterNode:
        inputs, outputs = _input_and_output(path, self.config)
        terms = tuple(outputs if key == "bias" else (*inputs, *outputs) for key in tensors)
        return ParameterNode(name, sum(tensor.numel() for tensor in tensors.values()), terms)


def _part_name(path: tuple[str, ...], config: TransformerConfig) -> str:
    """`("decoder", "blocks", "0", "self_attn", "q_proj")` is "query projection"."""
    if path[-1] == "positions":
        return POSITIONS_IN_WORDS[config.positions]
    if path[-1] == "norm" and len(path) == 2:
        return "final norm"
    return PARAMETER_NAMES.get(path[-1], path[-1])


def _input_and_output(path: tuple[str, ...], config: TransformerConfig) -> tuple[Term, Term]:
    """The sizes of a part's input and output, whose product is the size of its matrix.

    A norm has no input size: it has one parameter, or two, for each output.
    """
    model, ff, classes = (_size(config, name) for name in ("d_model", "d_ff", "n_classes"))
    if path[:1] == ("encoder",):
        ff = _size(config, "d_ff_encoder") or ff
    words, hidden = _size(config, "vocab_size"), _size(config, "d_classifier")
    width: Term = (("d_head", config.head_width),)
    is_square = config.n_heads * config.head_width == config.d_model
    heads = model if is_square else (*_size(config, "n_heads"), *width)
    shares = config.kv_heads != config.n_heads
    keys: Term = (("n_kv_heads", config.kv_heads), *width) if shares else heads
    if path == ("encoder", "embedding") and config.src_vocab_size:
        return _size(config, "src_vocab_size"), model
    if path[-1] == "table" and config.positions == "relative":
        return _size(config, "n_buckets"), _size(config, "n_heads")
    if path[-1] == "table":
        behind = config.position_offset
        name = f"(max_len + {behind})" if behind else "max_len"
        return ((name, config.max_len + behind),), model
    sizes = {
        "embedding": (words, model),
        "segments": (_size(config, "n_segments"), model),
        "q_proj": (model, heads),
        "k_proj": (model, keys),
        "v_proj": (model, keys),
        "o_proj": (heads, model),
        "rows": ((), _size(config, "n_heads")),
        "gate": (model, _size(config, "n_heads")),
        "q_norm": ((), width),
        "k_norm": ((), width),
        "up_proj": (model, ff),
        "gate_proj": (model, ff),
        "down_proj": (ff, model),
        "head": (model, words),
        "hidden": (model, hidden),
        "out": (hidden or model, classes),
        "proj": (model, model),
    }
    return sizes.get(path[-1], ((), model))


def _size(config: TransformerConfig, name: str) -> Term:
    value = getattr(config, name)
    return ((name, value),) if value is not None else ()


@lru_cache(maxsize=512)
def count_parameters(config: TransformerConfig) -> int:
    """The number of parameters of a model of this config, which is not built."""
    with torch.device("meta"):  # the shapes alone, no numbers
        return Transformer(config).n_parameters
