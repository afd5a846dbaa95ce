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


def phi3_config(published: Published) -> TransformerConfig:
    """Every layer has the window. The scaling of its long versions is refused."""
    published = published.over(PHI3_DEFAULTS)
    published.require("layer_types", None)
    heads = published.int("num_attention_heads", 32)
    width = published.optional_int("head_dim") or published.int("hidden_size") // max(heads, 1)
    return llama_config(
        published, rotation=rope(published, kinds=(), width=width), windows=layer_windows(published)
    )


def phi3_names(config: TransformerConfig) -> Names:
    """Llama's, with projections stacked into one matrix."""
    block, layer = "decoder.blocks.{i}.", "layers.{i}."
    table = dict(llama_names(config))
    qkv = tuple(f"{block}self_attn.{name}_proj" for name in "qkv")
    table[layer + "self_attn.qkv_proj"] = Rows(qkv)
    table[layer + "mlp.gate_up_proj"] = Rows((block + "mlp.gate_proj", block + "mlp.up_proj"))
    stacked = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    for name in (*stacked, "mlp.gate_proj", "mlp.up_proj"):
        del table[layer + name]
    return table


PHI3 = Family(("phi3",), phi3_config, phi3_names, prefix="model.")
