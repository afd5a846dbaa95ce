"""An image as tokens: one per square patch, behind one that stands for the whole."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.config import TransformerConfig

Pixels = Float[Tensor, "b c y x"]


class PatchEmbedding(nn.Module):
    """Every patch of an image projected to the width of the model, row by row from the top.

    A trained token comes first, from which classes are read. ValueError for an image of
    another size, whose patches would stand at the wrong positions.
    Source: An Image is Worth 16x16 Words (Dosovitskiy et al. 2020), section 3.1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size, channels = config.patch_size, config.n_channels
        self.rows = config.patch_rows
        self.first = nn.Embedding(1, config.d_model)
        self.proj = nn.Conv2d(channels, config.d_model, size, size)

    def forward(self, pixels: Pixels) -> Float[Tensor, "b t d"]:
        channels, size = self.proj.in_channels, self.proj.kernel_size[0]
        given = pixels.shape[1], pixels.shape[2] // size, pixels.shape[3] // size
        if given != (channels, self.rows, self.rows):
            side, shape = self.rows * size, tuple(pixels.shape[1:])
            raise ValueError(f"An image is {channels} × {side} × {side} numbers here, not {shape}.")
        patches = self.proj(pixels).flatten(2).mT  # (b, patches, d)
        return torch.cat((self.first.weight.expand(len(patches), 1, -1), patches), 1)
