"""The encoder: a stack of blocks in which every token attends to all of them.

Source: Attention Is All You Need, section 3.1.
"""

from models.stack import Stack


class Encoder(Stack):
    """Token IDs in, the memory out: (b, t) -> (b, t, d)."""

    causal = False
