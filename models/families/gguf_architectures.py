"""GGUF files as checkpoints of a published family: metadata to its config, names to ours.

llama.cpp gives the tensors of all families the same names and stores matrices as output ×
input and gains in full, so one table of names does for all of them. What differs is the
table that makes a published config of the metadata, one for each architecture.
Source: llama.cpp's conversion scripts and the `gguf` library's constants.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import Family, Names
from models.families.layout import Interleaved, Rows, Same
from models.families.published import Published
from models.loading.safe_files import shown

Shapes = Mapping[str, tuple[int, ...]]


class Metadata:
    """The values of a GGUF file, asked for by name and type, and the shapes of its tensors."""

    def __init__(self, values: Mapping[str, Any], shapes: Shapes) -> None:
        self.values, self.shapes = Published(values), shapes
        name = values.get("general.architecture")
        if not isinstance(name, str):
            raise ValueError("general.architecture must be a name.")
        self.architecture = name

    def whole(self, name: str, default: int | None = None) -> int:
        return self.values.int(self._full(name), default)

    def number(self, name: str) -> float:
        if self._full(name) not in self.values:
            raise ValueError(f"{self._full(name)} must be given as a number.")
        return self.values.number(self._full(name), 0)

    def given(self, **names: str) -> dict[str, Any]:
        """What is there of these, by the name of a published config."""
        found = {published: self._full(name) for published, name in names.items()}
        values = self.values.values
        return {name: values[full] for name, full in found.items() if full in values}

    def has(self, tensor: str) -> bool:
        return tensor in self.shapes

    def rows(self, tensor: str) -> int:
        shape = self.shapes.get(tensor, ())
        if not shape:
            raise ValueError(f"there is no {tensor}.")
        return shape[0]

    def _full(self, name: str) -> str:
        return name if name.startswith("tokenizer.") else f"{self.architecture}.{name}"


@dataclass(frozen=True)
class Architecture:
    """How the files of one architecture are read; `family` is the published `model_type`.

    `interleaved`: the rows of q and k that rotary positions turn together lie side by side.
    """

    family: str
    config: Callable[[Metadata], dict[str, Any]]
    interleaved: bool = False


def described(values: Mapping[str, Any], shapes: Shapes) -> tuple[dict[str, Any], Family]:
    """The published config.json that a file stands for, and the family with the file's names.

    ValueError, in one sentence, when its architecture is none of ours or a value is missing.
    """
    read = Metadata(values, shapes)
    found = ARCHITECTURES.get(read.architecture)
    if found is None:
        raise ValueError(f"the architecture {shown(read.architecture)} is not supported.")
    config = {"model_type": found.family} | tokens(read) | found.config(read)
    family = replace(
        FAMILIES[found.family],
        names=lambda config: gguf_names(config, found.interleaved),
        prefix="",
        output="output.weight",
        apart=None,
        optional={},
        published=None,
    )
    return config, family


def tokens(read: Metadata) -> dict[str, Any]:
    """The IDs of special tokens; null where the file names none."""
    name = "tokenizer.ggml.{}_token_id"
    return {
        f"{role}_token_id": read.values.optional_int(name.format(theirs))
        for role, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }


def sizes(read: Metadata) -> dict[str, Any]:
    """What every architecture says, by the usual names."""
    heads = read.whole("attention.head_count")
    return {
        "vocab_size": read.rows("token_embd.weight"),
        "hidden_size": read.whole("embedding_length"),
        "num_hidden_layers": read.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": read.whole("attention.head_count_kv", heads),
        "intermediate_size": read.whole("feed_forward_length"),
        "max_position_embeddings": read.whole("context_length"),
        "tie_word_embeddings": not read.has("output.weight"),
    }


def llama(read: Metadata) -> dict[str, Any]:
    return sizes(read) | {
        "rms_norm_eps": read.number("attention.layer_norm_rms_epsilon"),
        "attention_bias": read.has("blk.0.attn_q.bias"),
        "mlp_bias": read.has("blk.0.ffn_up.bias"),
        **read.given(head_dim="attention.key_length", rope_theta="rope.freq_base"),
    }


ARCHITECTURES = {
    "llama": Architecture("llama", llama, interleaved=True),
}
"""By `general.architecture`."""


def gguf_names(config: TransformerConfig, interleaved: bool = False) -> Names:
    """llama.cpp's names to ours. Of several names for one tensor, the file has one."""
    stack = config.stacks[0]
    block, layer = f"{stack}.blocks.{{i}}.", "blk.{i}."
    q, k, v = (f"{block}self_attn.{one}_proj" for one in "qkv")
    table: dict[str, str | Same] = {
        "token_embd.weight": f"{stack}.embedding.weight",
        layer + "attn_norm": block + "self_residual.norm",
        layer + "attn_q": Interleaved((q,), config.n_heads) if interleaved else q,
        layer + "attn_k": Interleaved((k,), config.kv_heads) if interleaved else k,
        layer + "attn_v": v,
        layer + "attn_output": block + "self_attn.o_proj",
        layer + "ffn_norm": block + "mlp_residual.norm",
        layer + "ffn_gate": block + "mlp.gate_proj",
        layer + "ffn_up": block + "mlp.up_proj",
        layer + "ffn_down": block + "mlp.down_proj",
        "output_norm": f"{stack}.norm",
        "output": "head",
    }
    if not interleaved:
        table[layer + "attn_qkv"] = Rows((q, k, v))
    return table
