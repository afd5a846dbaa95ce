"""Shapes of the tensors that pass between modules; the test run checks every annotation.

b batch, t tokens, s tokens of the source, q queries, k keys, h heads, g heads of the keys and
values (h, or fewer when they are grouped), d width of the model, or of one head.
"""

from collections.abc import Callable

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
