"""The exponent of the sinusoids, doubled: the index already steps by two, the code doubles it."""

import torch

from explorer.analysis.position_schemes import doubled_sinusoids
from explorer.views.museum.mistakes.model_copy import copied, stacks
from models.config import TransformerConfig
from models.model import Transformer
from models.positional import PositionalEncoding


class DoubledEncoding(PositionalEncoding):
    """The table of sinusoids with the doubled exponent."""

    def reset_buffers(self) -> None:
        _, max_len, d_model = self.pe.shape
        self.pe[0] = doubled_sinusoids(torch.arange(max_len), d_model)


def doubled_exponent(model: Transformer) -> Transformer:
    wrong = copied(model)
    for stack in stacks(wrong):
        stack.positions = DoubledEncoding(model.config.d_model, model.config.max_len)
    return wrong


def needs_sinusoids(config: TransformerConfig) -> str | None:
    if config.positions != "sinusoidal":
        return f"its positions are not sinusoidal but {config.positions}"
    if config.pairs == "halves":
        return "its table has all sines first, and the mistake needs each cosine beside its sine"
    return None
