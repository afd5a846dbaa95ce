"""T5, T5 v1.1 and mT5.

Sources: Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer
(Raffel et al. 2020), section 2.1; mT5 (Xue et al. 2021), section 3.
"""

from functools import partial

from models.config import TransformerConfig
from models.families.bart import APART
from models.families.family import Family, Names
from models.families.published import READ_ACTIVATIONS, Published
from models.loading.safe_files import shown

T5_ALIASES = {"hidden_size": "d_model", "num_attention_heads": "num_heads", "head_dim": "d_kv"}
T5_MAX_LEN = 512
"""Tokens of its training. Relative positions have no end, so only the config may say more."""
T5_DEFAULTS = {
    "vocab_size": 32128,
    "d_model": 512,
    "num_heads": 8,
    "num_layers": 6,
    "d_ff": 2048,
    "feed_forward_proj": "relu",
}
MT5_DEFAULTS = {
    "vocab_size": 250112,
    "d_model": 512,
    "num_heads": 6,
    "num_layers": 8,
    "d_ff": 1024,
    "feed_forward_proj": "gated-gelu",
}


def t5_config(read: Published) -> TransformerConfig:
    """Only T5 itself may divide the final residual stream by √d before the logits.

    In older files it is T5 itself when the output matrix is tied.
    """
    base = shared_by_all(read.over(T5_DEFAULTS))
    if read.flag("scale_decoder_outputs", read.flag("tie_word_embeddings", True)):
        return base.replace(logit_scale=base.d_model**-0.5)
    return base


def shared_by_all(read: Published) -> TransformerConfig:
    encoder_only = (read.architecture() or "").endswith("EncoderModel")
    read.require("is_encoder_decoder", True, not encoder_only)
    read.require("is_decoder", False)
    gated, activation = feed_forward(read)
    alike, written = read.int("num_layers"), read.optional_int("num_decoder_layers")
    layers = read.int("num_hidden_layers", alike)  # says nothing of the decoder
    return TransformerConfig(
        kind="encoder" if encoder_only else "encoder-decoder",
        head=read.head("language-model", "classifier", "masked-language-model"),
        vocab_size=read.int("vocab_size"),
        d_model=read.int("d_model"),
        n_layers=layers if encoder_only else alike if written is None else written,
        n_encoder_layers=None if encoder_only else layers,
        n_heads=read.int("num_heads"),
        d_head=read.int("d_kv", 64),
        d_ff=read.int("d_ff"),
        max_len=read.optional_int("n_positions") or T5_MAX_LEN,
        positions="relative",
        n_buckets=read.int("relative_attention_num_buckets", 32),
        max_distance=read.int("relative_attention_max_distance", 128),
        count_padding=True,
        scale_embedding=False,
        norm="rms",
        norm_eps=read.number("layer_norm_epsilon", 1e-6),
        attention_scale=1.0,
        activation=activation,
        gated=gated,
        qkv_bias=False,
        bias=False,
        share_embeddings=not encoder_only,
        tie_embeddings=True,
        **read.tokens(pad=0, eos=1, start=0, pad_may_begin=True),
    )


def feed_forward(read: Published) -> tuple[bool, str]:
    """Whether the feed-forward layer is gated, and by which activation; each may be spelt out."""
    given = read.values["feed_forward_proj"]
    if not isinstance(given, str):
        raise ValueError("feed_forward_proj must be a name.")
    name = "gelu_new" if given == "gated-gelu" else given.removeprefix("gated-")
    if name not in READ_ACTIVATIONS:
        raise ValueError(f"feed_forward_proj {shown(repr(given))} is not supported.")
    gated = read.flag("is_gated_act", given.startswith("gated-"))
    return gated, read.activation("dense_act_fn", name)


def t5_names(config: TransformerConfig) -> Names:
    shared = config.share_embeddings or config.kind == "encoder"
    table = {"shared.weight": "encoder.embedding.weight"} if shared else {}
    for stack in config.stacks:
        block = stack + ".blocks.{i}."
        layer = stack + ".block.{i}.layer."
        mlp = f"{layer}{2 if stack == 'decoder' else 1}."
        owner = "encoder" if shared else stack
        table |= {
            stack + ".embed_tokens.weight": owner + ".embedding.weight",
            stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight": (
                stack + ".positions.table.weight"
            ),
            layer + "0.SelfAttention.q": block + "self_attn.q_proj",
            layer + "0.SelfAttention.k": block + "self_attn.k_proj",
            layer + "0.SelfAttention.v": block + "self_attn.v_proj",
            layer + "0.SelfAttention.o": block + "self_attn.o_proj",
            layer + "0.layer_norm": block + "self_residual.norm",
            mlp + "DenseReluDense.wi_0": block + "mlp.gate_proj",
            mlp + ("DenseReluDense.wi_1" if config.gated else "DenseReluDense.wi"): (
                block + "mlp.up_proj"
            ),
            mlp + "DenseReluDense.wo": block + "mlp.down_proj",
            mlp + "layer_norm": block + "mlp_residual.norm",
            stack + ".final_layer_norm": stack + ".norm",
        }
    cross, block = "decoder.block.{i}.layer.1.", "decoder.blocks.{i}."
    return table | {
        cross + "EncDecAttention.q": block + "cross_attn.q_proj",
        cross + "EncDecAttention.k": block + "cross_attn.k_proj",
        cross + "EncDecAttention.v": block + "cross_attn.v_proj",
        cross + "EncDecAttention.o": block + "cross_attn.o_proj",
        cross + "layer_norm": block + "cross_residual.norm",
        "lm_head.weight": "head.weight",
    }


family = partial(Family, names=t5_names, apart=APART, aliases=T5_ALIASES)
T5 = family(("t5",), t5_config)
MT5 = family(("mt5",), lambda read: shared_by_all(read.over(MT5_DEFAULTS)))
