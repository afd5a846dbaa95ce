"""The decoder: a stack of blocks in which no token attends to later ones.

Source: Attention Is All You Need, section 3.1.
"""

from models.stack import Stack


class Decoder(Stack):
    """Token IDs in, the residual stream out; its blocks attend to a memory where they can."""

    causal = True
