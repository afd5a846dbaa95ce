"""The tensors of a GGUF file, quantized or not, as far as they can be trusted.

Each is read when it is asked for, by its place in the header, and becomes float32 a few
megabytes at a time. The file is read, never mapped: a mapped one that is cut short later
kills the process.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from models.families.gguf_metadata import ROPE_FACTORS
from models.loading.gguf_header import GgufHeader, GgufTensor
from models.loading.safe_files import CheckpointError, quoted, regular_file
from models.loading.stored_weights import StoredTensor, Weights, read_into, stamp_of

PLAIN_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
QUANTIZED_TYPES = (
    *("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS"),
    *("TQ1_0", "TQ2_0", "MXFP4"),
)
"""What the `gguf` library turns into numbers."""
BLOCKS_AT_ONCE = 1 << 13
"""Quantized blocks that become numbers together: few enough for a processor's cache."""


@dataclass(frozen=True, eq=False)
class GgufWeights(Weights):
    """The tensors of a GGUF file by llama.cpp's names; no number of them is read yet."""

    header: GgufHeader

    def check_type(self, name: str) -> None:
        """CheckpointError unless its numbers can be those of a weight."""
        dtype = self.header.tensors[name].dtype
        if dtype not in (*PLAIN_TYPES, *QUANTIZED_TYPES):
            raise CheckpointError(
                f"{quoted(name)} in {quoted(self.header.file.name)} is of type "
                f"{dtype}, which is not read here; quantize the model to another."
            )

    @contextmanager
    def open(self) -> Iterator[Callable[[str], Tensor]]:
        """`read_tensor(name)` gives a tensor, in 32 bits where it is quantized.

        It takes the bytes of the file, those of the tensor and a few megabytes; its time grows
        with its numbers: 30 ms for ten million of Q4_1.
        """
        file = self.header.file
        path = regular_file(file.parent, file.name)
        try:
            with path.open("rb") as stream:

                def read_tensor(name: str) -> Tensor:
                    placed = self.header.tensors[name]
                    self.check_type(name)
                    tensor = numbers(self._content(stream.fileno(), placed), placed)
                    self._check_numbers(name, tensor)
                    return tensor

                yield read_tensor
        except OSError as error:
            raise CheckpointError(f"{quoted(file.name)} cannot be read.") from error

    def _content(self, file: int, placed: GgufTensor) -> Tensor:
        """The bytes of a tensor, of a file that is still the one whose header was read."""
        content = torch.empty(placed.bytes, dtype=torch.uint8, device="cpu")
        is_whole = read_into(file, content, placed.start)
        if not is_whole or stamp_of(os.fstat(file)) != self.header.stamp:
            raise CheckpointError(
                f"{quoted(self.header.file.name)} changed while it was read; open it again."
            )
        return content


def gguf_weights(header: GgufHeader) -> GgufWeights:
    """The tensors of a file whose header was read."""
    tensors = {
        name: StoredTensor(header.file.name, placed.dtype, placed.shape)
        for name, placed in sorted(header.tensors.items())
        if name != ROPE_FACTORS
    }
    total = sum(placed.bytes for placed in header.tensors.values())
    return GgufWeights(header.file, tensors, total, {}, header)


def numbers(content: Tensor, placed: GgufTensor) -> Tensor:
    """The numbers of a tensor by its bytes; those of quantized blocks in 32 bits."""
    if placed.dtype in PLAIN_TYPES:
        return content.view(PLAIN_TYPES[placed.dtype]).view(placed.shape)
    from gguf import quants
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType  # as in `gguf_header`

    kind = GGMLQuantizationType[placed.dtype]
    per_block, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = content.view(-1, block_bytes)
    values = torch.empty(len(blocks), per_block, device="cpu")
    for some, into in zip(blocks.split(BLOCKS_AT_ONCE), values.split(BLOCKS_AT_ONCE), strict=True):
        # One row alone: the library goes through many of them 16 at a time. And numpy copies
        # it: torch would wake its threads for so little.
        with quants.np.errstate(all="ignore"):  # the result is checked
            row = quants.dequantize(some.flatten()[None].numpy(), kind)
        into.numpy()[:] = row.reshape(into.shape)
    return values.view(placed.shape)
