"""StableLM. Source: Stable LM 2 1.6B Technical Report (Bellagente et al. 2024), section 3."""

from models.config import TransformerConfig
from models.families.family import Family
from models.families.llama import llama_config, llama_names
from models.families.published import Published
from models.families.rope import rope

STABLELM_DEFAULTS = {
    "vocab_size": 50304,
    "intermediate_size": 6912,
    "hidden_size": 2560,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def stablelm_config(published: Published) -> TransformerConfig:
    published = published.over(STABLELM_DEFAULTS)
    published.require("qk_layernorm", False)
    width = published.int("hidden_size") // max(published.int("num_attention_heads", 32), 1)
    parallel = published.flag("use_parallel_residual", False)
    return llama_config(
        published,
        qkv_bias=published.flag("use_qkv_bias", False),
        rotation=rope(published, width=width, part=0.25),
        parallel=parallel,
        shared_norm=parallel,
    ).replace(norm="layer", norm_eps=published.number("layer_norm_eps", 1e-5))


STABLELM = Family(("stablelm",), stablelm_config, llama_names, prefix="model.")
