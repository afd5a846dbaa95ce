"""ViT. Source: An Image is Worth 16x16 Words (Dosovitskiy et al. 2020), section 3.1."""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import Row
from models.families.published import Published


def config(read: Published) -> TransformerConfig:
    patch, channels = read.int("patch_size", 16), read.int("num_channels", 3)
    if patch < 1:
        raise ValueError(f"patch_size must be at least 1, not {patch}.")
    return TransformerConfig(
        kind="encoder",
        head=read.head("none", "language-model", "masked-language-model"),
        vocab_size=1,
        d_model=read.int("hidden_size", 768),
        n_layers=read.int("num_hidden_layers", 12),
        n_heads=read.int("num_attention_heads", 12),
        d_ff=read.int("intermediate_size", 3072),
        max_len=(read.int("image_size", 224) // patch) ** 2 + 1,
        positions="learned",
        patch_size=patch,
        n_channels=channels,
        scale_embedding=False,
        norm_eps=read.number("layer_norm_eps", 1e-12),
        activation=read.activation("hidden_act", "gelu"),
        qkv_bias=read.flag("qkv_bias", True),
        n_classes=len(read.classes()),
    )


def names(config: TransformerConfig) -> Names:
    block = "encoder.blocks.{i}."
    layer = "encoder.layer.{i}."
    return {
        "embeddings.cls_token": Row(("encoder.embedding.first.weight",)),
        "embeddings.patch_embeddings.projection": "encoder.embedding.proj",
        "embeddings.position_embeddings": Row(("encoder.positions.table.weight",)),
        layer + "layernorm_before": block + "self_residual.norm",
        layer + "attention.attention.query": block + "self_attn.q_proj",
        layer + "attention.attention.key": block + "self_attn.k_proj",
        layer + "attention.attention.value": block + "self_attn.v_proj",
        layer + "attention.output.dense": block + "self_attn.o_proj",
        layer + "layernorm_after": block + "mlp_residual.norm",
        layer + "intermediate.dense": block + "mlp.up_proj",
        layer + "output.dense": block + "mlp.down_proj",
        "layernorm": "encoder.norm",
        "classifier": "head.out",
    }


FAMILY = Family(("vit",), config, names, prefix="vit.", output="")
