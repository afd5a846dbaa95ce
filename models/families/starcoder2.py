"""StarCoder2. Source: StarCoder 2 and The Stack v2 (Lozhkov et al. 2024), section 6.1."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.llama import llama_config, llama_names
from models.families.published import Published
from models.families.windows import layer_windows

STARCODER2_DEFAULTS = {
    "vocab_size": 49152,
    "hidden_size": 3072,
    "intermediate_size": 12288,
    "num_hidden_layers": 30,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 4096,
    "bos_token_id": 50256,
    "eos_token_id": 50256,
    "tie_word_embeddings": True,
}


def starcoder2_config(published: Published) -> TransformerConfig:
    """Every layer has the window, where there is one."""
    published = published.over(STARCODER2_DEFAULTS)
    published.require("layer_types", None)
    bias = published.flag("use_bias", True)
    eps = published.number("norm_epsilon", 1e-5)
    return llama_config(
        published, qkv_bias=bias, out_bias=bias, mlp_bias=bias, windows=layer_windows(published)
    ).replace(norm="layer", norm_eps=eps, gated=False)


def starcoder2_names(config: TransformerConfig) -> Names:
    block, layer = "decoder.blocks.{i}.", "layers.{i}."
    return dict(llama_names(config)) | {
        layer + "mlp.c_fc": block + "mlp.up_proj",
        layer + "mlp.c_proj": block + "mlp.down_proj",
    }


STARCODER2 = Family(("starcoder2",), starcoder2_config, starcoder2_names, prefix="model.")
