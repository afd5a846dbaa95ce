"""llama.cpp's names of tensors to ours: one table for all families, whatever each publishes.

Its conversion scripts store every matrix as output × input and every gain in full. What
differs is the layout of queries and keys, and where a norm stands.
Source: the tables of the `gguf` library, llama.cpp's conversion scripts.
"""

from models.config import TransformerConfig
from models.families.family import Names
from models.families.layout import Interleaved, Rows, Same

NORM_NAMES = {
    "pre": {"attn_norm": "self_residual.norm", "ffn_norm": "mlp_residual.norm"},
    "post": {"attn_output_norm": "self_residual.norm", "layer_output_norm": "mlp_residual.norm"},
    "sandwich": {
        "attn_norm": "self_residual.norm",
        "post_attention_norm": "self_residual.out_norm",
        "ffn_norm": "mlp_residual.norm",
        "post_ffw_norm": "mlp_residual.out_norm",
    },
}
"""The norms of a layer by `norm_position`."""


def gguf_names(config: TransformerConfig, *, interleaved: bool = False) -> Names:
    """The names of a model with one stack. Of several names for one tensor, the file has one.

    `interleaved` queries and keys have side by side what rotary positions turn together.
    """
    stack = config.stacks[0]
    block, layer = f"{stack}.blocks.{{i}}.", "blk.{i}."
    q, k, v = (f"{block}self_attn.{name}_proj" for name in "qkv")
    table: dict[str, str | Same] = {
        "token_embd.weight": f"{stack}.embedding.weight",
        "position_embd.weight": f"{stack}.positions.table.weight",
        "token_types.weight": f"{stack}.segments.weight",
        "token_embd_norm": f"{stack}.embedding_norm",
        layer + "attn_output": f"{block}self_attn.o_proj",
        layer + "attn_q_norm": f"{block}self_attn.q_norm",
        layer + "attn_k_norm": f"{block}self_attn.k_norm",
        layer + "ffn_up": f"{block}mlp.up_proj",
        layer + "ffn_down": f"{block}mlp.down_proj",
        "output_norm": f"{stack}.norm",
        "output": "head",
    }
    table |= {
        layer + theirs: block + ours for theirs, ours in NORM_NAMES[config.norm_position].items()
    }
    if interleaved:
        table[layer + "attn_q"] = Interleaved((q,), config.n_heads)
        table[layer + "attn_k"] = Interleaved((k,), config.kv_heads)
    else:
        table |= {layer + "attn_qkv": Rows((q, k, v)), layer + "attn_q": q, layer + "attn_k": k}
    table[layer + "attn_v"] = v
    if config.gated:
        table[layer + "ffn_gate"] = f"{block}mlp.gate_proj"
    return table


def gate_in_up(names: Names) -> Names:
    """These names where gate and up are one matrix (Phi-3)."""
    block, layer = "decoder.blocks.{i}.mlp.", "blk.{i}."
    table = {name: ours for name, ours in names.items() if name != layer + "ffn_gate"}
    return table | {layer + "ffn_up": Rows((block + "gate_proj", block + "up_proj"))}


def two_stack_names(config: TransformerConfig) -> Names:
    """The names of T5, whole or its encoder alone."""
    table: dict[str, str | Same] = {
        "token_embd.weight": "encoder.embedding.weight",
        "output.weight": "head.weight",
    }
    for stack in config.stacks:
        short = stack[:3]
        block, layer = stack + ".blocks.{i}.", short + ".blk.{i}."
        table |= {
            short + ".blk.0.attn_rel_b.weight": stack + ".positions.table.weight",
            **{layer + f"attn_{name}": block + f"self_attn.{name}_proj" for name in "qkvo"},
            layer + "attn_norm": block + "self_residual.norm",
            layer + "ffn_norm": block + "mlp_residual.norm",
            layer + "ffn_gate": block + "mlp.gate_proj",
            layer + "ffn_up": block + "mlp.up_proj",
            layer + "ffn_down": block + "mlp.down_proj",
            short + ".output_norm": stack + ".norm",
        }
    block, layer = "decoder.blocks.{i}.", "dec.blk.{i}."
    table |= {layer + f"cross_attn_{name}": block + f"cross_attn.{name}_proj" for name in "qkvo"}
    return table | {layer + "cross_attn_norm": block + "cross_residual.norm"}
