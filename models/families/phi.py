"""Phi-1, Phi-1.5 and Phi-2. Source: Textbooks Are All You Need II (Li et al. 2023), section 2.1."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.published import Published
from models.families.rope import rope

PHI_DEFAULTS = {"bos_token_id": 1, "eos_token_id": 2}


def phi_config(published: Published) -> TransformerConfig:
    published = published.over(PHI_DEFAULTS)
    published.require("qk_layernorm", False)
    width, heads = published.int("hidden_size", 2048), published.int("num_attention_heads", 32)
    head = published.optional_int("head_dim")
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 51200),
        d_model=width,
        n_layers=published.int("num_hidden_layers", 24),
        n_heads=heads,
        n_kv_heads=published.optional_int("num_key_value_heads"),
        d_head=head,
        d_ff=published.int("intermediate_size", 8192),
        max_len=published.int("max_position_embeddings", 2048),
        **rope(published, width=width // max(heads, 1) if head is None else head, part=0.5),
        scale_embedding=False,
        norm_eps=published.number("layer_norm_eps", 1e-5),
        parallel=True,
        shared_norm=True,
        activation=published.activation("hidden_act", "gelu_new"),
        tie_embeddings=published.flag("tie_word_embeddings", False),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def phi_names(config: TransformerConfig) -> Names:
    block, layer = "decoder.blocks.{i}.", "layers.{i}."
    return {
        "embed_tokens.weight": "decoder.embedding.weight",
        layer + "input_layernorm": block + "self_residual.norm",
        layer + "self_attn.q_proj": block + "self_attn.q_proj",
        layer + "self_attn.k_proj": block + "self_attn.k_proj",
        layer + "self_attn.v_proj": block + "self_attn.v_proj",
        layer + "self_attn.dense": block + "self_attn.o_proj",
        layer + "mlp.fc1": block + "mlp.up_proj",
        layer + "mlp.fc2": block + "mlp.down_proj",
        "final_layernorm": "decoder.norm",
        "lm_head": "head",
        "score.weight": "head.out.weight",
    }


PHI = Family(("phi",), phi_config, phi_names, prefix="model.")
