"""The whole model: one stack (encoder or decoder), or an encoder that a decoder looks at."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.block import Block, Surroundings
from models.cache import KeyValueCache
from models.config import TransformerConfig
from models.heads import ClassifierHead, LanguageModelHead
from models.initialization import initialize, skipping_initialization
from models.masking import both, causal_mask, keep_of, padding_mask, token_positions
from models.normalization import NORMS
from models.positional import POSITIONS
from models.presets import paper
from models.tap import NO_TAP, Tap


class Stack(nn.Module):
    """Embedding, positions, blocks, last norm. A causal stack sees no token after its own."""

    def __init__(
        self, config: TransformerConfig, vocab_size: int, n_layers: int, causal: bool, cross: bool
    ) -> None:
        super().__init__()
        self.causal = causal
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        self.embedding_scale = config.d_model**0.5 if config.scale_embedding else 1.0
        self.positions = POSITIONS[config.positions](config)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(n_layers))
        norm = NORMS[config.norm]
        self.norm = norm(config.d_model, config.norm_eps) if config.final_norm else nn.Identity()

    def forward(
        self,
        ids: Int[Tensor, "b t"],
        keep: Bool[Tensor, "b k"] | None = None,
        memory: Float[Tensor, "b s d"] | None = None,
        memory_keep: Bool[Tensor, "b s"] | None = None,
        cache: KeyValueCache | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b t d"]:
        """The stream after the last block.

        `keep` covers the cached tokens too, so it may be longer than `ids`.
        """
        past = 0 if cache is None else cache.length
        here, everywhere = positions_of(ids, keep, past)
        here = tap("positions", here)
        if cache is None:
            everywhere = here
        x = tap("embed", self.embedding(ids) * self.embedding_scale)
        position = self.positions.embed(here)
        if position is not None:
            x = x + tap("pos_embed", position.expand_as(x))
        x = self.dropout(x)
        around = Surroundings(
            mask=self.self_mask(ids, past, keep),
            bias=self.positions.bias(here, everywhere),
            rotate=partial(self.positions.rotate, positions=here),
            memory=memory,
            memory_mask=None if memory_keep is None else padding_mask(memory_keep),
        )
        for i, block in enumerate(self.blocks):
            x = block(x, around, None if cache is None else cache.blocks[i], tap.at(str(i)))
        return tap("final", self.norm(x))

    def self_mask(
        self, ids: Int[Tensor, "b t"], past: int, keep: Bool[Tensor, "b k"] | None
    ) -> Bool[Tensor, "#b 1 #q k"] | None:
        queries = ids.shape[1]
        causal = causal_mask(queries, past + queries, ids.device) if self.causal else None
        return both(causal, None if keep is None else padding_mask(keep))


def positions_of(
    ids: Int[Tensor, "b t"], keep: Bool[Tensor, "b k"] | None, past: int
) -> tuple[Int[Tensor, "*t"], Int[Tensor, "*k"]]:
    """Positions of these tokens, and of all that can be looked at, cached ones included."""
    if keep is None:
        everywhere = torch.arange(past + ids.shape[1], device=ids.device)
    else:
        everywhere = token_positions(keep)
    return everywhere[..., past:], everywhere


class Transformer(nn.Module):
    """A Transformer as `config` describes it, with fresh weights that follow from `seed`.

    `Transformer(src_vocab_size=…, tgt_vocab_size=…, d_model=…, n_heads=…, n_layers=…,
    d_ff=…, dropout=…)` builds the paper's encoder-decoder. ValueError, in one sentence,
    for a config that is no model. Nothing of a pass is stored here, so one model in
    eval mode serves many threads.
    Source: Attention Is All You Need, section 3.
    """

    def __init__(
        self, config: TransformerConfig | None = None, *, seed: int = 0, **sizes: Any
    ) -> None:
        super().__init__()
        if config is None:
            config = paper(**sizes)
        elif sizes:
            raise TypeError("Give a config or its sizes, not both.")
        if fault := config.fault():
            raise ValueError(fault)
        self.config = config
        two_stacks = config.kind == "encoder-decoder"
        with skipping_initialization():
            self.encoder = self.decoder = None
            if "encoder" in config.stacks:
                vocabulary = config.src_vocab_size or config.vocab_size
                layers = config.encoder_layers
                self.encoder = Stack(config, vocabulary, layers, causal=False, cross=False)
            if "decoder" in config.stacks:
                layers = config.n_layers
                self.decoder = Stack(config, config.vocab_size, layers, True, cross=two_stacks)
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
        target: Int[Tensor, "b t"] | None = None,
        *,
        keep: Bool[Tensor, "b s"] | None = None,
        source_keep: Bool[Tensor, "b s"] | None = None,
        target_keep: Bool[Tensor, "b t"] | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "..."]:
        """Logits: (b, t, vocabulary), or (b, classes) from a classifier, or the bare stream.

        One stack takes `ids` and `keep`; two take source and target, each with its own
        `…_keep`. True keeps a token; without it every id but `config.pad_id` is kept.
        """
        if self.config.kind == "encoder-decoder":
            if target is None:
                raise ValueError("An encoder-decoder reads two sequences: source and target.")
            source_keep = keep if source_keep is None else source_keep
            if source_keep is None:
                source_keep = keep_of(ids, self.config.pad_id)
            memory = self.encode(ids, source_keep, tap)
            return self.decode(target, memory, source_keep, target_keep, tap=tap)
        if not (target is None and source_keep is None and target_keep is None):
            raise ValueError(f"A model of kind {self.config.kind} reads one sequence, not two.")
        keep = keep_of(ids, self.config.pad_id) if keep is None else keep
        if self.config.kind == "decoder":
            return self.decode(ids, keep=keep, tap=tap)
        assert self.encoder is not None
        return self.read(self.encoder(ids, keep, tap=tap.at("encoder")), keep, tap)

    def encode(
        self,
        source: Int[Tensor, "b s"],
        keep: Bool[Tensor, "b s"] | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b s d"]:
        """The memory: what the encoder makes of the source."""
        if self.encoder is None:
            raise ValueError("A decoder alone has nothing that encodes.")
        return tap("memory", self.encoder(source, keep, tap=tap.at("encoder")))

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s d"] | None = None,
        memory_keep: Bool[Tensor, "b s"] | None = None,
        keep: Bool[Tensor, "b k"] | None = None,
        cache: KeyValueCache | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "..."]:
        """What the head reads off the decoder, given what it has written so far."""
        if self.decoder is None:
            raise ValueError("An encoder alone has nothing that decodes.")
        if keep is None and cache is None:
            keep = keep_of(target, self.config.pad_id)
        x = self.decoder(target, keep, memory, memory_keep, cache, tap.at("decoder"))
        return self.read(x, keep, tap)

    def read(
        self, x: Float[Tensor, "b t d"], keep: Bool[Tensor, "b k"] | None, tap: Tap
    ) -> Float[Tensor, "..."]:
        """The head's answer to the last stream."""
        if isinstance(self.head, LanguageModelHead):
            x = self.head(x, self.last_stack.embedding.weight)
        elif isinstance(self.head, ClassifierHead):
            x = self.head(x, keep)
        return tap("logits", x)

    def generate(
        self, source: Int[Tensor, "b s"], max_length: int = 50, **how: Any
    ) -> Int[Tensor, "b t"]:
        """Ids the model writes: see `models.generation.generate` for the choices.

        An encoder-decoder answers with its target, start token first; a decoder with
        the prompt and its continuation, `max_length` tokens at most.
        """
        from models.generation import written

        return written(self, source, max_length=max_length, **how)


def build_head(config: TransformerConfig) -> nn.Module | None:
    if config.head == "language-model":
        return LanguageModelHead(
            config.d_model, config.vocab_size, config.bias, config.tie_embeddings
        )
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
