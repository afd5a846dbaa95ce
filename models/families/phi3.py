"""Phi-3. Source: Phi-3 Technical Report (Abdin et al. 2024), section 2."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import Rows
from models.families.llama import llama_config, llama_names
from models.families.published import Published
from models.families.rope import rope
from models.families.windows import layer_windows

PHI3_DEFAULTS = {
    "vocab_size": 32064,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 32000,
    "pad_token_id": 32000,
}


def phi3_config(read: Published) -> TransformerConfig:
    """Every layer has the window. Long versions scale their rotations in a way that is refused."""
    read = read.over(PHI3_DEFAULTS)
    read.require("layer_types", None)
    heads = read.int("num_attention_heads", 32)
    width = read.optional_int("head_dim") or read.int("hidden_size") // max(heads, 1)
    return llama_config(
        read, rotation=rope(read, kinds=(), width=width), windows=layer_windows(read)
    )


def phi3_names(config: TransformerConfig) -> Names:
    """Llama's, with projections stacked into one matrix."""
    block, layer = "decoder.blocks.{i}.", "layers.{i}."
    table = dict(llama_names(config))
    qkv = tuple(f"{block}self_attn.{one}_proj" for one in "qkv")
    table[layer + "self_attn.qkv_proj"] = Rows(qkv)
    table[layer + "mlp.gate_up_proj"] = Rows((block + "mlp.gate_proj", block + "mlp.up_proj"))
    stacked = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    for name in (*stacked, "mlp.gate_proj", "mlp.up_proj"):
        del table[layer + name]
    return table


PHI3 = Family(("phi3",), phi3_config, phi3_names, prefix="model.")
