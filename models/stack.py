"""A stack of blocks: what an encoder and a decoder have in common."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from models.attention import EarlierKeys
from models.block import Block, StackContext
from models.masking import boolean_mask, both, causal_mask, padding_mask, window_mask
from models.positional import Positions, token_positions
from models.shapes import AnyMask, Ids, Keep, Mask, Memory, SourceKeep, Stream, check_ids
from models.tap import NO_TAP, Tap

Cache = Sequence[Mapping[str, EarlierKeys]]  # of every block, by the names of its attentions


class Stack(nn.Module):
    """Embedding, positions, blocks, final norm; if `causal`, no query attends to later keys.

    `count_padding`: padding on the left shifts the positions of the tokens behind it.
    """

    causal: bool

    def __init__(
        self,
        embedding: nn.Embedding,
        positions: Positions,
        blocks: Sequence[Block],
        norm: nn.Module,
        embedding_norm: nn.Module,
        segments: nn.Embedding | None = None,
        embedding_scale: float = 1.0,
        count_padding: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding_scale, self.count_padding = embedding_scale, count_padding
        self.embedding, self.positions, self.segments = embedding, positions, segments
        self.embedding_norm, self.dropout = embedding_norm, nn.Dropout(dropout)
        self.blocks, self.norm = nn.ModuleList(blocks), norm
        self.windows = frozenset(block.window for block in blocks)

    def forward(
        self,
        ids: Ids,
        keep: Keep | None = None,
        *,
        memory: Memory | None = None,
        memory_keep: SourceKeep | None = None,
        cache: Cache | None = None,
        segments: Ids | None = None,
        mask: AnyMask | None = None,
        tap: Tap = NO_TAP,
    ) -> Stream:
        """The residual stream after the final norm.

        With a cache the tokens follow those that are in it, which `keep` covers too; without
        `segments` all tokens are of the first. `mask` masks more keys than the stack does itself.
        ValueError where the positions end.
        """
        check_ids(ids, self.embedding.num_embeddings)
        past = 0 if cache is None else cache[0]["self_attn"].length
        n, most = past + ids.shape[1], self.positions.max_len
        if n > most:
            raise ValueError(f"{n} tokens are too many for {most} positions: shorten the text.")
        x = tap("embed", self.embedding(ids) * self.embedding_scale)
        everywhere = torch.arange(n, device=x.device)
        if keep is not None and not self.count_padding:
            everywhere = token_positions(keep)
        here = tap("positions", everywhere[..., past:])
        everywhere = here if cache is None else everywhere
        position = self.positions.embed(here)
        if position is not None:
            x = x + tap("pos_embed", position.expand_as(x))
        if self.segments is not None:
            segments = torch.zeros_like(ids) if segments is None else segments
            x = x + tap("segment_embed", self.segments(segments))
        x = self.dropout(tap("embed_norm", self.embedding_norm(tap("sum", x))))
        shared = StackContext(
            masks=self.self_masks(x, past, keep, mask),
            bias=self.positions.bias(here, everywhere),
            rotate=self.positions.rotation(here),
            memory=memory,
            memory_mask=None if memory_keep is None else padding_mask(memory_keep),
        )
        for i, block in enumerate(self.blocks):
            x = block(x, shared, None if cache is None else cache[i], tap.at(str(i)))
        return tap("final", self.norm(x))

    def self_masks(
        self, x: Stream, past: int, keep: Keep | None, mask: AnyMask | None = None
    ) -> dict[int, Mask | None]:
        """The mask for every window that a block of this stack has; None allows everything."""
        shape = (x.shape[1], past + x.shape[1])
        is_masked = self.causal and shape[0] > 1  # the last token attends to all
        causal = causal_mask(*shape, x.device) if is_masked else None
        mask = both(boolean_mask(mask), causal)
        mask = both(mask, None if keep is None else padding_mask(keep))
        return {
            window: both(mask, window_mask(window, *shape, x.device)) if window else mask
            for window in self.windows
        }
