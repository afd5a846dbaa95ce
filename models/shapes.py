"""Shapes of the tensors that pass between modules; the test run checks every annotation.

b batch, t tokens, s tokens of the source, q queries, k keys, h heads, g heads of the keys and
values (h, or fewer when they are grouped), d width of the model, or of one head.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

Ids = Int[Tensor, "b t"]  # token IDs
Stream = Float[Tensor, "b t d"]  # the residual stream, or what a layer reads of it or writes to it
Memory = Float[Tensor, "b s d"]  # the encoder's output, that cross-attention attends to
Keep = Bool[Tensor, "b k"]  # True on real tokens, False on padding
SourceKeep = Bool[Tensor, "b s"]  # the same of the source
Queries = Float[Tensor, "b h q d"]
Keys = Float[Tensor, "b g k d"]  # keys, or values
Words = Float[Tensor, "v d"]  # a vector for each token of the vocabulary
Scores = Float[Tensor, "b h q k"]  # scores, or weights
Mask = Bool[Tensor, "#b #h #q #k"]  # True: this query may attend to this key
AnyMask = Mask | Integer[Tensor, "#b #h #q #k"]  # the same, or 0 where it may not
Bias = Float[Tensor, "#b #h #q #k"]  # added to the scores
Rotation = Callable[[Tensor], Tensor]  # rotates queries or keys by their positions


def check_ids(ids: object, vocabulary: int | None = None) -> None:
    """ValueError, in one sentence, unless these are token IDs (b, t) of this vocabulary.

    Their values are read on a CPU alone: another device would have to wait for that.
    """
    if not isinstance(ids, Tensor):
        raise ValueError(f"Token IDs are a tensor of shape (b, t), not a {type(ids).__name__}.")
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
        theirs = f"{str(ids.dtype).removeprefix('torch.')} of shape {tuple(ids.shape)}"
        raise ValueError(f"Token IDs are int64 or int32 of shape (b, t), not {theirs}.")
    if vocabulary is None or ids.device.type != "cpu" or not ids.numel():
        return
    smallest, largest = map(int, ids.aminmax())
    if smallest < 0 or largest >= vocabulary:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(f"The ID {wrong} is not in the vocabulary, 0 to {vocabulary - 1}.")
