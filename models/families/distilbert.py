"""DistilBERT. Source: DistilBERT, a distilled version of BERT (Sanh et al. 2019), section 3."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.published import Published

DISTILBERT_ALIASES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
}
NORM_EPS = 1e-12
"""Not in its config."""


def distilbert_config(published: Published) -> TransformerConfig:
    width = published.int("dim", 768)
    return TransformerConfig(
        kind="encoder",
        head=published.head("none", "language-model"),
        vocab_size=published.int("vocab_size", 30522),
        d_model=width,
        n_layers=published.int("n_layers", 6),
        n_heads=published.int("n_heads", 12),
        d_ff=published.int("hidden_dim", 3072),
        max_len=published.int("max_position_embeddings", 512),
        positions="learned",
        count_padding=True,
        scale_embedding=False,
        embedding_norm=True,
        norm_position="post",
        norm_eps=NORM_EPS,
        final_norm=False,
        activation=published.activation("activation", "gelu"),
        tie_embeddings=published.flag("tie_word_embeddings", True),
        **published.labels(),
        d_classifier=width,
        classifier_activation="relu",
        **published.tokens(pad=0),
    )


def distilbert_names(config: TransformerConfig) -> Names:
    block = "encoder.blocks.{i}."
    layer = "transformer.layer.{i}."
    return {
        "embeddings.word_embeddings.weight": "encoder.embedding.weight",
        "embeddings.position_embeddings.weight": "encoder.positions.table.weight",
        "embeddings.LayerNorm": "encoder.embedding_norm",
        layer + "attention.q_lin": block + "self_attn.q_proj",
        layer + "attention.k_lin": block + "self_attn.k_proj",
        layer + "attention.v_lin": block + "self_attn.v_proj",
        layer + "attention.out_lin": block + "self_attn.o_proj",
        layer + "sa_layer_norm": block + "self_residual.norm",
        layer + "ffn.lin1": block + "mlp.up_proj",
        layer + "ffn.lin2": block + "mlp.down_proj",
        layer + "output_layer_norm": block + "mlp_residual.norm",
        "vocab_transform": "head.transform.proj",
        "vocab_layer_norm": "head.transform.norm",
        "vocab_projector.weight": "head.weight",
        "vocab_projector.bias": "head.bias",
        "pre_classifier": "head.hidden",
        "classifier": "head.out",
    }


DISTILBERT = Family(
    ("distilbert",),
    distilbert_config,
    distilbert_names,
    prefix="distilbert.",
    output="vocab_projector.weight",
    aliases=DISTILBERT_ALIASES,
)
"""Sinusoids of some of its models are a table in their files like any other."""
