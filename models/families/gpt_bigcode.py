"""StarCoder and SantaCoder: GPT-2 whose heads may share one key and one value.

Source: StarCoder: may the source be with you (Li et al. 2023), section 5.2.
"""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.gpt2 import GPT2_ALIASES, gpt2_config, gpt2_names
from models.families.layout import HeadByHead, Rows
from models.families.published import Published


def gpt_bigcode_config(published: Published) -> TransformerConfig:
    published = published.over({"activation_function": "gelu_pytorch_tanh"})
    shared = published.flag("multi_query", True)
    return gpt2_config(published).replace(n_kv_heads=1 if shared else None)


def gpt_bigcode_names(config: TransformerConfig) -> Names:
    """GPT-2's, with matrices as they are usually stored."""
    block = "decoder.blocks.{i}."
    qkv = tuple(f"{block}self_attn.{name}_proj" for name in "qkv")
    together = Rows(qkv) if config.kv_heads == 1 else HeadByHead(qkv, config.n_heads)
    return dict(gpt2_names(config)) | {
        "h.{i}.attn.c_attn": together,
        "h.{i}.attn.c_proj": block + "self_attn.o_proj",
        "h.{i}.mlp.c_fc": block + "mlp.up_proj",
        "h.{i}.mlp.c_proj": block + "mlp.down_proj",
    }


GPT_BIGCODE = Family(
    ("gpt_bigcode",),
    gpt_bigcode_config,
    gpt_bigcode_names,
    prefix="transformer.",
    aliases=GPT2_ALIASES,
)
