"""The whole model: an encoder, a decoder, or a decoder that attends to an encoder's output."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.block import Block, StackContext
from models.cache import KeyValueCache
from models.config import TransformerConfig
from models.initialization import initialize, skipping_initialization
from models.masking import both, causal_mask, keep_of, padding_mask, token_positions, window_mask
from models.normalization import build_norm
from models.output_heads import ClassifierHead, LanguageModelHead
from models.positional import build_positions
from models.presets import preset_of
from models.shapes import Ids, Keep, Memory, SourceKeep, Stream
from models.tap import NO_TAP, Tap

EVERYWHERE = slice(None)


class Stack(nn.Module):
    """Embedding, positions, blocks, final norm; if `causal`, no query attends to later keys."""

    def __init__(
        self,
        config: TransformerConfig,
        embedding: nn.Embedding,
        n_layers: int,
        causal: bool,
        cross: bool,
    ) -> None:
        super().__init__()

        self.causal = causal
        self.count_padding = config.count_padding
        self.embedding = embedding
        self.embedding_scale = config.d_model**0.5 if config.scale_embedding else 1.0
        self.positions = build_positions(config, causal)
        segments = config.n_segments
        self.segments = nn.Embedding(segments, config.d_model) if segments else None
        self.embedding_norm = build_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        windows = [config.window(i) for i in range(n_layers)]
        self.windows = frozenset(windows)
        self.blocks = nn.ModuleList(Block(config, cross, window) for window in windows)
        self.norm = build_norm(config) if config.final_norm else nn.Identity()

    def forward(
        self,
        ids: Ids,
        keep: Keep | None = None,
        memory: Memory | None = None,
        memory_keep: SourceKeep | None = None,
        cache: KeyValueCache | None = None,
        segments: Ids | None = None,
        tap: Tap = NO_TAP,
    ) -> Stream:
        """The residual stream after the final norm.

        `keep` covers the cached tokens too, so it may be longer than `ids`; without
        `segments` all tokens are of the first. ValueError where the positions end.
        """
        past = 0 if cache is None else cache.length
        n, most = past + ids.shape[1], self.positions.max_len
        if n > most:
            raise ValueError(f"{n} tokens are too many for {most} positions: shorten the text.")
        x = tap("embed", self.embedding(ids) * self.embedding_scale)
        here, everywhere = query_and_key_positions(x, None if self.count_padding else keep, past)
        here = tap("positions", here)
        if cache is None:
            everywhere = here
        position = self.positions.embed(here)
        if position is not None:
            x = x + tap("pos_embed", position.expand_as(x))
        if self.segments is not None:
            if segments is None:
                segments = x.new_zeros(x.shape[:2], dtype=torch.long)
            x = x + tap("segment_embed", self.segments(segments))
        x = self.dropout(tap("embed_norm", self.embedding_norm(tap("sum", x))))
        shared = StackContext(
            masks=self.self_masks(x, past, keep),
            bias=self.positions.bias(here, everywhere),
            rotate=self.positions.rotation(here),
            memory=memory,
            memory_mask=None if memory_keep is None else padding_mask(memory_keep),
        )
        for i, block in enumerate(self.blocks):
            x = block(x, shared, None if cache is None else cache.blocks[i], tap.at(str(i)))
        return tap("final", self.norm(x))

    def self_masks(
        self, x: Stream, past: int, keep: Keep | None
    ) -> dict[int, Bool[Tensor, "#b 1 #q k"] | None]:
        """The mask for every window that a block of this stack has; None allows everything."""
        shape = (x.shape[1], past + x.shape[1])
        is_masked = self.causal and shape[0] > 1  # the last token attends to all
        causal = causal_mask(*shape, x.device) if is_masked else None
        mask = both(causal, None if keep is None else padding_mask(keep))
        return {
            window: both(mask, window_mask(window, *shape, x.device)) if window else mask
            for window in self.windows
        }


def query_and_key_positions(
    x: Stream, keep: Keep | None, past: int
) -> tuple[Int[Tensor, "*t"], Int[Tensor, "*k"]]:
    """Positions of these tokens, and of all that can be attended to, cached ones included."""
    if keep is None:
        everywhere = torch.arange(past + x.shape[1], device=x.device)
    else:
        everywhere = token_positions(keep)
    return everywhere[..., past:], everywhere


class Transformer(nn.Module):
    """A Transformer as `config` describes it, with fresh weights that follow from `seed`.

    `Transformer(src_vocab_size=…, tgt_vocab_size=…, d_model=…, n_heads=…, n_layers=…,
    d_ff=…, dropout=…)` builds the repository README's, `Transformer(embed_dim=…,
    src_vocab_size=…, target_vocab_size=…, seq_length=…, num_layers=…, expansion_factor=…,
    n_heads=…)` the notebook tutorial's. ValueError, in one sentence, for a config that is no
    model. Nothing of a pass is stored here, so one model in eval mode serves many threads.
    Source: Attention Is All You Need, section 3.
    """

    def __init__(
        self, config: TransformerConfig | None = None, *, seed: int = 0, **sizes: Any
    ) -> None:
        super().__init__()
        if config is None:
            config = preset_of(**sizes)
        elif sizes:
            raise TypeError("Give a config or its sizes, not both.")
        if fault := config.fault():
            raise ValueError(fault)
        self.config = config
        two_stacks = config.kind == "encoder-decoder"
        with skipping_initialization():
            self.encoder = self.decoder = None
            if "encoder" in config.stacks:
                source = nn.Embedding(config.src_vocab_size or config.vocab_size, config.d_model)
                layers = config.encoder_layers
                self.encoder = Stack(config.of_encoder, source, layers, causal=False, cross=False)
            if "decoder" in config.stacks:
                target = nn.Embedding(config.vocab_size, config.d_model)
                if config.share_embeddings and self.encoder is not None:
                    target = self.encoder.embedding
                layers = config.n_layers
                self.decoder = Stack(config, target, layers, causal=True, cross=two_stacks)
            self.head = build_head(config)
        initialize(self, config, seed)

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def last_stack(self) -> Stack:
        """The stack that the head reads."""
        stack = self.decoder or self.encoder
        assert stack is not None
        return stack

    def forward(
        self,
        ids: Int[Tensor, "b s"],
        target: Ids | None = None,
        *,
        keep: SourceKeep | None = None,
        source_keep: SourceKeep | None = None,
        target_keep: Bool[Tensor, "b t"] | None = None,
        segments: Int[Tensor, "b s"] | None = None,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "..."]:
        """Logits (b, t, vocabulary), or (b, classes) from a classifier, or the residual stream.

        One stack takes `ids` and `keep`; two take source and target, each with its own
        `…_keep`. True keeps a token; without it every id but `config.pad_id` is kept.
        `segments` says which sentence a token of an encoder belongs to. A language model
        scores its vocabulary only at the positions `read_at`. ValueError for more tokens than
        positions, and for an argument that this model has no use for.
        """
        if segments is not None and not self.config.n_segments:
            raise ValueError("This model has no segments: its config has n_segments 0.")
        if self.config.kind == "encoder-decoder":
            if target is None:
                raise ValueError("An encoder-decoder reads two sequences: source and target.")
            source_keep = keep if source_keep is None else source_keep
            if source_keep is None:
                source_keep = keep_of(ids, self.config.pad_id)
            memory = self.encode(ids, source_keep, tap)
            return self.decode(target, memory, source_keep, target_keep, read_at=read_at, tap=tap)
        if not (target is None and source_keep is None and target_keep is None):
            raise ValueError(f"A model of kind {self.config.kind} reads one sequence, not two.")
        if keep is None and self.config.pad_id is not None:
            keep = keep_of(ids, self.config.pad_id)
        if self.config.kind == "decoder":
            return self.decode(ids, keep=keep, read_at=read_at, tap=tap)
        assert self.encoder is not None
        x = self.encoder(ids, keep, segments=segments, tap=tap.at("encoder"))
        return self.read(x, keep, read_at, tap)

    def encode(
        self, source: Int[Tensor, "b s"], keep: SourceKeep | None = None, tap: Tap = NO_TAP
    ) -> Memory:
        """The memory: the encoder's output."""
        if self.encoder is None:
            raise ValueError("A decoder alone has nothing that encodes.")
        return tap("memory", self.encoder(source, keep, tap=tap.at("encoder")))

    def decode(
        self,
        target: Ids,
        memory: Memory | Int[Tensor, "b n"] | None = None,
        memory_keep: SourceKeep | None = None,
        keep: Keep | None = None,
        cache: KeyValueCache | None = None,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "..."] | Int[Tensor, "b s"]:
        """The output of the head, given the tokens of the target so far.

        The notebook tutorial's `decode(source, target)`, told by its second tensor of integers,
        returns IDs (b, s) instead: as many as the source has, each the likeliest after the
        target and those before it. It takes nothing else: ValueError otherwise.
        """
        if memory is not None and not memory.is_floating_point():
            from models.generation import likeliest_ids

            plain = memory_keep is None and keep is None and cache is None and tap is NO_TAP
            if not plain or read_at != EVERYWHERE:
                raise ValueError("decode(source, target) takes nothing else: see generate.")
            return likeliest_ids(self, target, memory)
        if self.decoder is None:
            raise ValueError("An encoder alone has nothing that decodes.")
        if keep is None and cache is None:
            pad, start = self.config.pad_id, self.config.bos_id
            keep = keep_of(target, pad, pad_begins=memory is not None and pad == start)
        x = self.decoder(target, keep, memory, memory_keep, cache, tap=tap.at("decoder"))
        return self.read(x, keep, read_at, tap)

    def read(
        self, x: Stream, keep: Keep | None = None, read_at: slice = EVERYWHERE, tap: Tap = NO_TAP
    ) -> Float[Tensor, "..."]:
        """The output of the head for the final residual stream; without a head, that itself."""
        if isinstance(self.head, LanguageModelHead):
            words = self.last_stack.embedding.weight
            x = self.head(x[:, read_at], words, tap.at("head"))
        elif isinstance(self.head, ClassifierHead):
            x = self.head(x, keep, tap.at("head"))
        return tap("logits", x)

    def generate(self, source: Int[Tensor, "b s"], max_length: int = 50, **how: Any) -> Ids:
        """Token IDs that the model generates: see `models.generation.generate` for the options.

        An encoder-decoder returns its target, start token first; a decoder the prompt and
        its continuation of at most `max_length` tokens.
        """
        from models.generation import generate_ids

        return generate_ids(self, source, max_length=max_length, **how)


def build_head(config: TransformerConfig) -> nn.Module | None:
    if config.head in ("language-model", "masked-language-model"):
        return LanguageModelHead(config)
    return ClassifierHead(config) if config.head == "classifier" else None


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout off and no gradients. A model already in eval mode is not touched at all."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            model.train()
