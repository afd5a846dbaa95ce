"""T5, T5 v1.1 and mT5.

Sources: Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer
(Raffel et al. 2020), section 2.1; mT5 (Xue et al. 2021), section 3.
"""

from functools import partial

from models.config import TransformerConfig
from models.families.bart import APART
from models.families.family import Family, Names
from models.families.published import READ_ACTIVATIONS, Published
from models.loading.safe_files import quoted

T5_ALIASES = {"hidden_size": "d_model", "num_attention_heads": "num_heads", "head_dim": "d_kv"}
T5_MAX_LEN = 512
"""The length of its training texts. Relative positions have no limit; a config may name one."""
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


def t5_config(published: Published) -> TransformerConfig:
    """Only T5 itself may divide the final residual stream by √d before the logits.

    In older files it is T5 itself when the output matrix is tied.
    """
    base = shared_by_all(published.over(T5_DEFAULTS))
    if published.flag("scale_decoder_outputs", published.flag("tie_word_embeddings", True)):
        return base.replace(logit_scale=base.d_model**-0.5)
    return base


def shared_by_all(published: Published) -> TransformerConfig:
    encoder_only = (published.architecture() or "").endswith("EncoderModel")
    published.require("is_encoder_decoder", True, not encoder_only)
    published.require("is_decoder", False)
    gated, activation = feed_forward(published)
    n_layers = published.int("num_layers")
    decoder_layers = published.optional_int("num_decoder_layers")
    decoder_layers = n_layers if decoder_layers is None else decoder_layers
    encoder_layers = published.int("num_hidden_layers", n_layers)  # not of the decoder
    return TransformerConfig(
        kind="encoder" if encoder_only else "encoder-decoder",
        head=published.head("language-model", "classifier", "masked-language-model"),
        vocab_size=published.int("vocab_size"),
        d_model=published.int("d_model"),
        n_layers=encoder_layers if encoder_only else decoder_layers,
        n_encoder_layers=None if encoder_only else encoder_layers,
        n_heads=published.int("num_heads"),
        d_head=published.int("d_kv", 64),
        d_ff=published.int("d_ff"),
        max_len=published.optional_int("n_positions") or T5_MAX_LEN,
        positions="relative",
        n_buckets=published.int("relative_attention_num_buckets", 32),
        max_distance=published.int("relative_attention_max_distance", 128),
        count_padding=True,
        scale_embedding=False,
        norm="rms",
        norm_eps=published.number("layer_norm_epsilon", 1e-6),
        attention_scale=1.0,
        activation=activation,
        gated=gated,
        qkv_bias=False,
        bias=False,
        share_embeddings=not encoder_only,
        tie_embeddings=True,
        **published.tokens(pad=0, eos=1, start=0, pad_may_begin=True),
    )


def feed_forward(published: Published) -> tuple[bool, str]:
    """Whether the feed-forward layer is gated, and its activation; a config may name each alone."""
    name = published.values["feed_forward_proj"]
    if not isinstance(name, str):
        raise ValueError("feed_forward_proj must be a name.")
    function = "gelu_new" if name == "gated-gelu" else name.removeprefix("gated-")
    if function not in READ_ACTIVATIONS:
        raise ValueError(f"feed_forward_proj {quoted(repr(name))} is not supported.")
    gated = published.flag("is_gated_act", name.startswith("gated-"))
    return gated, published.activation("dense_act_fn", function)


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
MT5 = family(("mt5",), lambda published: shared_by_all(published.over(MT5_DEFAULTS)))
