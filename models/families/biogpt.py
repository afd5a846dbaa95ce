"""BioGPT. Source: BioGPT (Luo et al. 2022), section 3."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.opt import opt_config, opt_names
from models.families.published import Published

BIOGPT_DEFAULTS = {
    "vocab_size": 42384,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "hidden_act": "gelu",
    "max_position_embeddings": 1024,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
OPTS_OWN = {
    "word_embed_proj_dim": None,
    "layer_norm_elementwise_affine": True,
    "enable_bias": True,
    "do_layer_norm_before": True,
    "_remove_final_layer_norm": False,
}
"""Settings of OPT that mean nothing here, with what it always does."""


def biogpt_config(published: Published) -> TransformerConfig:
    """OPT's, under other names and with its embedding scaled.

    Its norms have the usual ε, whatever its `layer_norm_eps` says.
    """
    published = published.over(BIOGPT_DEFAULTS)
    renamed = OPTS_OWN | {
        "ffn_dim": published.int("intermediate_size", 4096),
        "activation_function": published.values.get("hidden_act"),
    }
    return opt_config(Published({**published.values, **renamed})).replace(
        scale_embedding=published.flag("scale_embedding", True)
    )


def biogpt_names(config: TransformerConfig) -> Names:
    table = {name.removeprefix("decoder."): ours for name, ours in opt_names(config).items()}
    table["layer_norm"] = table.pop("final_layer_norm")
    table["output_projection.weight"] = table.pop("lm_head.weight")
    return table


BIOGPT = Family(
    ("biogpt",), biogpt_config, biogpt_names, prefix="biogpt.", output="output_projection.weight"
)
