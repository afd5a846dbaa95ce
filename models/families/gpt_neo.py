"""GPT-Neo, which does not scale scores and attends to a window in every other layer.

Source: GPT-Neo (Black et al. 2021).
"""

from models.config import MOST_LAYERS, TransformerConfig
from models.families.family import Family, Names
from models.families.gpt2 import gpt2_config, gpt2_names
from models.families.published import Published
from models.loading.safe_files import quoted

ATTENTION_KINDS = ("global", "local")
GPT_NEO_ALIASES = {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"}


def gpt_neo_config(published: Published) -> TransformerConfig:
    width = published.int("hidden_size", 2048)
    renamed = {
        "n_embd": width,
        "n_layer": published.int("num_layers", 24),
        "n_head": published.int("num_heads", 16),
        "n_inner": published.optional_int("intermediate_size"),
        "n_positions": published.int("max_position_embeddings", 2048),
    }
    window = published.int("window_size", 256)
    if window < 1:
        raise ValueError(f"window_size {window} leaves no key to attend to.")
    local = [kind == "local" for kind in kinds(published, renamed["n_layer"] or 0)]
    return gpt2_config(Published({**published.values, **renamed})).replace(
        qkv_bias=False,
        attention_scale=1.0,
        windows=tuple(window if here else 0 for here in local) if any(local) else (),
    )


def kinds(published: Published, layers: int) -> list[str]:
    """The kind of every layer: `attention_types` lists groups of kinds, each some times over.

    `attention_layers`, which files repeat them in, must say the same.
    """
    types = published.values.get("attention_types")
    groups = [[list(ATTENTION_KINDS), layers // 2]] if types is None else types
    every: list[str] = []
    for group in groups if isinstance(groups, list) else [None]:
        match group:
            case [list(names), int(times)] if 0 <= times <= MOST_LAYERS >= len(names):
                every += names * times
            case _:
                raise ValueError("attention_types must list kinds of layers and their number.")
        if len(every) > MOST_LAYERS or any(kind not in ATTENTION_KINDS for kind in every):
            raise ValueError(f"attention_types {quoted(repr(group))} are not supported.")
    if len(every) != layers:
        raise ValueError(f"attention_types must be of {layers} layers, not {len(every)}.")
    published.require("attention_layers", every, None)
    return every


def gpt_neo_names(config: TransformerConfig) -> Names:
    """GPT-2's, with queries, keys and values apart and matrices as they are usually stored."""
    block, layer = "decoder.blocks.{i}.", "h.{i}."
    table = dict(gpt2_names(config))
    del table[layer + "attn.c_attn"], table[layer + "attn.c_proj"]
    return table | {
        layer + "attn.attention.q_proj": block + "self_attn.q_proj",
        layer + "attn.attention.k_proj": block + "self_attn.k_proj",
        layer + "attn.attention.v_proj": block + "self_attn.v_proj",
        layer + "attn.attention.out_proj": block + "self_attn.o_proj",
        layer + "mlp.c_fc": block + "mlp.up_proj",
        layer + "mlp.c_proj": block + "mlp.down_proj",
    }


GPT_NEO = Family(
    ("gpt_neo",), gpt_neo_config, gpt_neo_names, prefix="transformer.", aliases=GPT_NEO_ALIASES
)
