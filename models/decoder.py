"""The decoder: a stack of blocks in which no token attends to later ones.

Source: Attention Is All You Need, section 3.1.
"""

from models.shapes import Ids, Keep, Memory, SourceKeep, Stream
from models.stack import Cache, Stack
from models.tap import NO_TAP, Tap


class Decoder(Stack):
    """Token IDs in, the residual stream out; its blocks attend to a memory where they can.

    With a cache the tokens follow those that are in it.
    """

    causal = True

    def forward(
        self,
        ids: Ids,
        keep: Keep | None = None,
        memory: Memory | None = None,
        memory_keep: SourceKeep | None = None,
        cache: Cache | None = None,
        tap: Tap = NO_TAP,
    ) -> Stream:
        return self.run(ids, keep, memory, memory_keep, cache, tap=tap)
