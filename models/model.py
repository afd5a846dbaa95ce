"""A model from its config: every part with the arguments that the config gives it, and weights."""

from functools import partial
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.block import Block, Residual
from models.classifier import ClassifierHead
from models.config import TransformerConfig
from models.decoder import Decoder
from models.encoder import Encoder
from models.feed_forward import FeedForward
from models.generation import generate_ids
from models.head_inputs import choose_head_inputs
from models.initialization import NoInitialization, initialize
from models.normalization import NORM_LAYERS, RMSNorm
from models.output_heads import LanguageModelHead, MaskedTransform
from models.position_biases import AlibiPositions, RelativePositions
from models.positional import LearnedPositions, PositionalEncoding, Positions
from models.rotary import RotaryPositions
from models.shapes import Ids
from models.transformer import TransformerBase


class Transformer(TransformerBase[TransformerConfig]):
    """A Transformer as `config` describes it, with fresh weights that follow from `seed`.

    ValueError, in one sentence, for a config that is no model.
    """

    def __init__(self, config: TransformerConfig, *, seed: int = 0) -> None:
        if fault := config.fault():
            raise ValueError(fault)
        with NoInitialization():
            encoder = build_encoder(config) if "encoder" in config.stacks else None
            decoder = build_decoder(config, encoder) if "decoder" in config.stacks else None
            head = build_head(config)
        super().__init__(config, encoder, decoder, head, config.pad_id, config.bos_id)
        initialize(self, config, seed)

    def generate(self, source: Int[Tensor, "b s"], max_length: int = 50, **options: Any) -> Ids:
        """Token IDs that the model generates: see `models.generation.generate` for the options.

        An encoder-decoder returns its target, start token first; a decoder the prompt and
        its continuation of at most `max_length` tokens.
        """
        return generate_ids(self, source, max_length=max_length, **options)


def build_encoder(config: TransformerConfig) -> Encoder:
    embedding = nn.Embedding(config.src_vocab_size or config.vocab_size, config.d_model)
    return Encoder(**stack_parts(config.of_encoder, embedding, config.encoder_layers))


def build_decoder(config: TransformerConfig, encoder: Encoder | None = None) -> Decoder:
    """With an encoder, its blocks attend to a memory, and the two may share their embedding."""
    if encoder is not None and config.share_embeddings:
        embedding = encoder.embedding
    else:
        embedding = nn.Embedding(config.vocab_size, config.d_model)
    cross = encoder is not None
    return Decoder(**stack_parts(config, embedding, config.n_layers, causal=True, cross=cross))


def stack_parts(
    config: TransformerConfig,
    embedding: nn.Embedding,
    n_layers: int,
    causal: bool = False,
    cross: bool = False,
) -> dict[str, Any]:
    """The arguments of `models.stack.Stack`."""
    segments = config.n_segments
    return {
        "embedding": embedding,
        "positions": build_positions(config, causal),
        "segments": nn.Embedding(segments, config.d_model) if segments else None,
        "embedding_norm": build_norm(config) if config.embedding_norm else nn.Identity(),
        "blocks": [build_block(config, cross, config.window(i)) for i in range(n_layers)],
        "norm": build_norm(config) if config.final_norm else nn.Identity(),
        "embedding_scale": config.d_model**0.5 if config.scale_embedding else 1.0,
        "count_padding": config.count_padding,
        "dropout": config.dropout,
    }


def build_block(config: TransformerConfig, cross: bool = False, window: int = 0) -> Block:
    block = Block(
        partial(build_residual, config),
        build_attention(config),
        build_attention(config) if cross else None,
        build_feed_forward(config) if config.d_ff else None,
        window,
        config.parallel,
        choose_head_inputs,
    )
    if config.shared_norm and block.mlp is not None:
        block.mlp_residual.norm = block.self_residual.norm
    return block


def build_residual(config: TransformerConfig) -> Residual:
    out_norm = build_norm(config) if config.norm_position == "sandwich" else None
    return Residual(build_norm(config), config.norm_position != "post", out_norm, config.dropout)


def build_norm(config: TransformerConfig) -> nn.Module:
    return NORM_LAYERS[config.norm](config.d_model, config.norm_eps)


def build_attention(config: TransformerConfig) -> MultiHeadAttention:
    norms = [RMSNorm(config.head_width, config.norm_eps) if config.qk_norm else None for _ in "qk"]
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.n_kv_heads,
        config.d_head,
        config.qkv_bias,
        config.has_out_bias,
        config.scale,
        config.attention_cap,
        *norms,
    )


def build_feed_forward(config: TransformerConfig) -> FeedForward:
    return FeedForward(
        config.d_model,
        config.d_ff,
        config.activation,
        config.gated,
        config.has_mlp_bias,
        config.hidden_dropout,
    )


def build_positions(config: TransformerConfig, causal: bool) -> Positions:
    """The scheme of one stack, which is `causal` if no query attends to later keys."""
    match config.positions:
        case "sinusoidal":
            return PositionalEncoding(config.d_model, config.max_len, config.pairs or "adjacent")
        case "learned":
            return LearnedPositions(config.d_model, config.max_len, config.position_offset)
        case "rotary":
            pairs = config.pairs or "halves"
            return RotaryPositions(
                config.rotary_width, config.rope_theta, pairs, config.rope_scaling
            )
        case "relative":
            n_buckets, max_distance = config.n_buckets, config.max_distance
            return RelativePositions(config.n_heads, n_buckets, max_distance, causal)
        case "alibi":
            return AlibiPositions(config.n_heads)
    return Positions()


def build_head(config: TransformerConfig) -> nn.Module | None:
    if config.head == "classifier":
        return ClassifierHead(
            config.d_model,
            config.n_classes,
            config.pooling,
            config.d_classifier,
            config.classifier_activation,
            config.classifier_bias,
            config.dropout,
        )
    if config.head == "none":
        return None
    masked = config.head == "masked-language-model"
    return LanguageModelHead(
        config.d_model,
        config.vocab_size,
        config.tie_embeddings,
        config.has_head_bias,
        MaskedTransform(config.d_model, config.activation, build_norm(config)) if masked else None,
        config.logit_scale,
        config.logit_cap,
    )
