"""Which tokens a model's output is read at, and which it is to predict there."""

import torch
from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token


def last_stack_tokens(forward: ForwardPass) -> tuple[Token, ...]:
    """What the stack reads whose residual stream goes into the head."""
    return forward.target or forward.source


def predicted_ids(forward: ForwardPass) -> Tensor:
    """The token ID that each position is to predict, as many as have one, (tokens,).

    The next token of the text, or the one that was generated. Empty where the model predicts
    no next token. A replaced token is predicted as the one that is read.
    """
    config = forward.config
    if config.head != "language-model" or config.kind == "encoder":
        return torch.zeros(0, dtype=torch.long)
    generates = config.kind == "encoder-decoder"
    predicted = forward.written if generates else forward.target[1:]
    return torch.tensor([token.id for token in predicted], dtype=torch.long)
