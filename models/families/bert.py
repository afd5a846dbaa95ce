"""BERT. Source: BERT (Devlin et al. 2018), section 3."""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.published import Published
from models.families.writing import WRITTEN_ACTIVATIONS, common

BERT_CLASSES = {
    "masked-language-model": "BertForMaskedLM",
    "classifier": "BertForSequenceClassification",
    "none": "BertModel",
}


def bert_config(
    published: Published,
    *,
    vocab_size: int = 30522,
    pad: int = 0,
    bos: int | None = None,
    eos: int | None = None,
) -> TransformerConfig:
    published.require("is_decoder", False)
    published.require("add_cross_attention", False)
    published.require("position_embedding_type", "absolute")
    width, segments = published.int("hidden_size", 768), published.int("type_vocab_size", 2)
    if segments < 1:
        raise ValueError("type_vocab_size must be at least 1.")
    return TransformerConfig(
        kind="encoder",
        head=published.head("none", "language-model"),
        vocab_size=published.int("vocab_size", vocab_size),
        d_model=width,
        n_layers=published.int("num_hidden_layers", 12),
        n_heads=published.int("num_attention_heads", 12),
        d_ff=published.int("intermediate_size", 3072),
        max_len=published.int("max_position_embeddings", 512),
        positions="learned",
        count_padding=True,
        n_segments=segments,
        scale_embedding=False,
        embedding_norm=True,
        norm_position="post",
        norm_eps=published.number("layer_norm_eps", 1e-12),
        final_norm=False,
        activation=published.activation("hidden_act", "gelu"),
        tie_embeddings=published.flag("tie_word_embeddings", True),
        **published.labels(),
        d_classifier=width,
        classifier_activation="tanh",
        **published.tokens(pad=pad, bos=bos, eos=eos),
    )


def bert_published(config: TransformerConfig) -> dict[str, Any]:
    """BERT has at least one segment, even where ours has none."""
    return common(config, BERT_CLASSES) | {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_len,
        "type_vocab_size": max(config.n_segments, 1),
        "layer_norm_eps": config.norm_eps,
        "hidden_act": WRITTEN_ACTIVATIONS[config.activation],
    }


def bert_names(config: TransformerConfig) -> Names:
    block = "encoder.blocks.{i}."
    layer = "encoder.layer.{i}."
    return {
        "embeddings.word_embeddings.weight": "encoder.embedding.weight",
        "embeddings.position_embeddings.weight": "encoder.positions.table.weight",
        "embeddings.token_type_embeddings.weight": "encoder.segments.weight",
        "embeddings.LayerNorm": "encoder.embedding_norm",
        layer + "attention.self.query": block + "self_attn.q_proj",
        layer + "attention.self.key": block + "self_attn.k_proj",
        layer + "attention.self.value": block + "self_attn.v_proj",
        layer + "attention.output.dense": block + "self_attn.o_proj",
        layer + "attention.output.LayerNorm": block + "self_residual.norm",
        layer + "intermediate.dense": block + "mlp.up_proj",
        layer + "output.dense": block + "mlp.down_proj",
        layer + "output.LayerNorm": block + "mlp_residual.norm",
        "cls.predictions.transform.dense": "head.transform.proj",
        "cls.predictions.transform.LayerNorm": "head.transform.norm",
        "cls.predictions.decoder.weight": "head.weight",
        "cls.predictions.decoder.bias": "head.bias",
        "cls.predictions.bias": "head.bias",
        "pooler.dense": "head.hidden",
        "classifier": "head.out",
    }


BERT = Family(
    ("bert",),
    bert_config,
    bert_names,
    prefix="bert.",
    output="cls.predictions.decoder.weight",
    published=bert_published,
)
