"""The encoder: a stack of blocks in which every token attends to all of them.

Source: Attention Is All You Need, section 3.1.
"""

from models.shapes import Ids, Keep, Memory
from models.stack import Stack
from models.tap import NO_TAP, Tap


class Encoder(Stack):
    """Token IDs in, the memory out: (b, t) -> (b, t, d)."""

    causal = False

    def forward(
        self, ids: Ids, keep: Keep | None = None, segments: Ids | None = None, tap: Tap = NO_TAP
    ) -> Memory:
        return self.run(ids, keep, segments=segments, tap=tap)
