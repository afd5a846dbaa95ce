"""The whole model: an encoder, a decoder, or a decoder that attends to an encoder's output."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.decoder import Decoder
from models.encoder import Encoder
from models.masking import keep_of
from models.output_heads import LanguageModelHead
from models.shapes import Ids, Keep, Memory, SourceKeep, Stream
from models.stack import Cache, Stack
from models.tap import NO_TAP, Tap

EVERYWHERE = slice(None)
Config = TypeVar("Config")


class TransformerBase(nn.Module, Generic[Config]):
    """A Transformer of given parts; `models.model.Transformer` builds them.

    No forward pass reads `config`. True in a `keep` keeps a token; without one every ID but
    `pad_id` is kept. The target of an encoder-decoder begins with `bos_id`. Nothing of a pass is
    stored here, so one model in eval mode serves many threads.
    Source: Attention Is All You Need, section 3.
    """

    def __init__(
        self,
        config: Config,
        encoder: Encoder | None,
        decoder: Decoder | None,
        head: nn.Module | None,
        pad_id: int | None = None,
        bos_id: int | None = None,
    ) -> None:
        super().__init__()
        self.config, self.pad_id, self.bos_id = config, pad_id, bos_id
        self.encoder, self.decoder, self.head = encoder, decoder, head

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
        `…_keep`. `segments` says which sentence a token of an encoder belongs to. A language model
        scores its vocabulary only at the positions `read_at`. ValueError for more tokens than
        positions, and for an argument that this model does not use.
        """
        if segments is not None and (self.encoder is None or self.encoder.segments is None):
            raise ValueError("This model has no segments: its config has n_segments 0.")
        keep = keep if source_keep is None else source_keep
        keep = keep_of(ids, self.pad_id) if keep is None else keep
        if self.encoder is not None and self.decoder is not None:
            if target is None:
                raise ValueError("An encoder-decoder reads two sequences: source and target.")
            memory = self.encode(ids, keep, tap)
            return self.decode(target, memory, keep, target_keep, read_at=read_at, tap=tap)
        if not (target is None and source_keep is None and target_keep is None):
            kind = "encoder" if self.decoder is None else "decoder"
            raise ValueError(f"A model of kind {kind} reads one sequence, not two.")
        if self.encoder is None:
            return self.decode(ids, keep=keep, read_at=read_at, tap=tap)
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
        memory: Memory | None = None,
        memory_keep: SourceKeep | None = None,
        keep: Keep | None = None,
        cache: Cache | None = None,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "..."]:
        """The output of the head, given the tokens of the target so far."""
        if self.decoder is None:
            raise ValueError("An encoder alone has nothing that decodes.")
        if keep is None and cache is None:
            pad_begins = memory is not None and self.pad_id == self.bos_id
            keep = keep_of(target, self.pad_id, pad_begins=pad_begins)
        from_before = {"memory": memory, "memory_keep": memory_keep, "cache": cache}
        x = self.decoder(target, keep, **from_before, tap=tap.at("decoder"))
        return self.read(x, keep, read_at, tap)

    def read(
        self, x: Stream, keep: Keep | None = None, read_at: slice = EVERYWHERE, tap: Tap = NO_TAP
    ) -> Float[Tensor, "..."]:
        """The output of the head for the final residual stream; without a head, that itself."""
        if isinstance(self.head, LanguageModelHead):
            x = self.head(x[:, read_at], self.last_stack.embedding.weight, tap.at("head"))
        elif self.head is not None:
            x = self.head(x, keep, tap.at("head"))
        return tap("logits", x)


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
