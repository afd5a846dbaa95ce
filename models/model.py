"""A model from its config: every part with its arguments, and new weights.

Matrices and embeddings start normal with standard deviation 0.8/√d_model, at which small models
learn in seconds; those that write to the residual stream are also divided by √(2 · layers), so
that it does not grow with depth (GPT-2, Radford et al. 2019, section 2.3). Norms start at one and
biases at zero. Numbers are drawn on the CPU, the same for every device.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from models.attention import MultiHeadAttention
from models.block import Block, Residual
from models.config import TransformerConfig
from models.decoder import Decoder
from models.encoder import Encoder
from models.feed_forward import FeedForward
from models.generation import generate, start_ids
from models.head_inputs import choose_head_inputs
from models.normalization import NORM_LAYERS, RMSNorm
from models.output_heads import ClassifierHead, LanguageModelHead, MaskedTransform
from models.position_biases import AlibiPositions, RelativePositions
from models.positional import LearnedPositions, PositionalEncoding, Positions
from models.presets import preset_of
from models.rotary import RotaryPositions
from models.row_scales import RowScales
from models.shapes import Ids
from models.stack import Stack
from models.transformer import TransformerBase

AnyStack = TypeVar("AnyStack", bound=Stack)
WRITES_TO_STREAM = ("o_proj.weight", "down_proj.weight")


class Transformer(TransformerBase[TransformerConfig]):
    """A Transformer as `config` describes it, with new weights that follow from `seed`.

    `sizes` in place of a config are those of a document (see `models.presets.preset_of`).
    ValueError, in one sentence, for a config that is no model.
    """

    def __init__(
        self, config: TransformerConfig | None = None, *, seed: int = 0, **sizes: Any
    ) -> None:
        if config is not None and sizes:
            raise TypeError("Give a config or its sizes, not both.")
        config = preset_of(**sizes) if config is None else config
        if fault := config.fault():
            raise ValueError(fault)
        encoder = decoder = None
        with NoInitialization():
            if "encoder" in config.stacks:
                table = nn.Embedding(config.src_vocab_size or config.vocab_size, config.d_model)
                encoder = build_stack(Encoder, config.of_encoder, table, config.encoder_layers)
            if "decoder" in config.stacks:
                if encoder is None or not config.share_embeddings:
                    table = nn.Embedding(config.vocab_size, config.d_model)
                decoder = build_stack(Decoder, config, table, config.n_layers, encoder is not None)
            head = build_head(config)
        super().__init__(config, encoder, decoder, head, config.pad_id, config.bos_id)
        initialize(self, config, seed)

    def generate(self, source: Int[Tensor, "b s"], max_length: int = 50, **options: Any) -> Ids:
        """Token IDs that the model generates: see `models.generation.generate` for the options.

        An encoder-decoder returns its target, start token first; a decoder the prompt and
        its continuation of at most `max_length` tokens.
        """
        steps = generate(self, source, max_length=max_length, **options)
        return torch.cat([start_ids(self, source), *(step.ids[:, None] for step in steps)], 1)


def build_stack(
    kind: type[AnyStack],
    config: TransformerConfig,
    embedding: nn.Embedding,
    n_layers: int,
    cross: bool = False,
) -> AnyStack:
    """A stack whose blocks, with `cross`, attend to a memory."""
    return kind(
        embedding,
        build_positions(config, kind.causal),
        [build_block(config, cross, config.window(i)) for i in range(n_layers)],
        build_norm(config) if config.final_norm else nn.Identity(),
        build_norm(config) if config.embedding_norm else nn.Identity(),
        nn.Embedding(config.n_segments, config.d_model) if config.n_segments else None,
        config.embedding_scale,
        config.count_padding,
        config.dropout,
    )


def build_block(config: TransformerConfig, cross: bool = False, window: int = 0) -> Block:
    mlp = FeedForward(
        config.d_model,
        config.d_ff,
        config.activation,
        config.gated,
        config.has_mlp_bias,
        config.hidden_dropout,
    )
    block = Block(
        partial(build_residual, config),
        build_attention(config),
        build_attention(config) if cross else None,
        mlp if config.d_ff else None,
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
    normed, eps = config.head_width if config.qk_norm else 0, config.norm_eps
    row_factors = config.sink_logit, config.gated_attention
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.n_kv_heads,
        config.d_head,
        config.qkv_bias,
        config.has_out_bias,
        config.scale,
        config.attention_cap,
        RMSNorm(normed, eps) if normed else None,
        RMSNorm(normed, eps) if normed else None,
        RowScales(config.d_model, config.n_heads, *row_factors) if any(row_factors) else None,
    )


def build_positions(config: TransformerConfig, causal: bool) -> Positions:
    """The scheme of one stack; `causal` if no query attends to later keys."""
    match config.positions:
        case "sinusoidal":
            return PositionalEncoding(config.d_model, config.max_len, config.pairs or "adjacent")
        case "learned":
            return LearnedPositions(config.d_model, config.max_len, config.position_offset)
        case "rotary":
            width, pairs = config.rotary_width, config.pairs or "halves"
            return RotaryPositions(width, config.rope_theta, pairs, config.rope_scaling)
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


def initialize(model: nn.Module, config: TransformerConfig, seed: int) -> None:
    """Overwrite every parameter. Leaves the global random state as it was."""
    generator = torch.Generator().manual_seed(seed)
    spread = 0.8 / config.d_model**0.5
    depth = (2 * max(config.n_layers, config.encoder_layers)) ** 0.5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.is_meta:
                continue
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.dim() == 1:
                parameter.fill_(1.0)
            else:
                std = spread / depth if name.endswith(WRITES_TO_STREAM) else spread
                numbers = torch.empty_like(parameter, device="cpu")
                parameter.copy_(numbers.normal_(0.0, std, generator=generator))


class NoInitialization(TorchFunctionMode):
    """Modules built in here have undefined weights until `initialize`."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs.get("tensor", args[0] if args else None)
        return func(*args, **kwargs)
