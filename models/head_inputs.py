"""An input of its own for the queries, keys and values of every head, where a tap changes one.

So a single edge between two heads can be cut: only `decoder.4.self_attn.q_input` of head 2
reads the residual stream without what head 1 of layer 3 wrote.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from models.attention import EarlierKeys, MultiHeadAttention
from models.shapes import Bias, Mask, Rotation, Stream
from models.tap import Tap

HEAD_INPUTS = ("q_input", "k_input", "v_input")  # what each head reads, before the norm


def choose_head_inputs(
    attention: MultiHeadAttention, norm: nn.Module, x: Stream, tap: Tap
) -> Callable[..., Stream]:
    """The attention itself, or `attention_by_head` where the tap changes what a head reads of x."""
    if not any(map(tap.wants, HEAD_INPUTS)):
        return attention
    shared = x[:, None].expand(-1, attention.n_heads, -1, -1)  # a view: n_heads times the same
    inputs = [tap(name, shared) for name in HEAD_INPUTS]
    if all(value is shared for value in inputs):
        return attention
    return partial(attention_by_head, attention, [norm(value) for value in inputs])


def attention_by_head(
    of: MultiHeadAttention,
    inputs: list[Float[Tensor, "b h t D"]],
    x: Stream,
    mask: Mask | None,
    bias: Bias | None,
    rotate: Rotation | None,
    cache: EarlierKeys | None,
    tap: Tap,
) -> Stream:
    """Self-attention whose heads read these normed inputs for q, k and v instead of x.

    Every head has keys and values of its own, also where the heads of a group share theirs.
    """
    projections = of.q_proj, of.k_proj, of.v_proj
    q, k, v = (project_by_head(p, x, of.d_head) for p, x in zip(projections, inputs, strict=True))
    q = tap("q_norm", of.q_norm(tap("q_proj", q)))
    k = tap("k_norm", of.k_norm(tap("k_proj", k)))
    q, k = (q, k) if rotate is None else (rotate(q), rotate(k))
    k, v = (k, v) if cache is None else cache.append(k, v)
    tap = tap if of.rows is None else of.rows(inputs[0], tap)
    return of.combine(q, k, v, mask, bias, tap)


def project_by_head(
    proj: nn.Linear, x: Float[Tensor, "b h t D"], d_head: int
) -> Float[Tensor, "b h t d"]:
    """The projection of the input of each head; heads of a group share rows of its matrix."""
    weight = proj.weight.unflatten(0, (-1, d_head))  # (g, d, D)
    # The batch is flattened into the tokens: a broadcast product would copy the weights per row.
    of_groups = x.unflatten(1, (len(weight), -1)).transpose(0, 1)  # (g, b, h/g, t, D)
    projected = of_groups.flatten(1, 3) @ weight.mT  # (g, b·h/g·t, d)
    if proj.bias is not None:
        projected = projected + proj.bias.unflatten(0, (-1, 1, d_head))
    return projected.unflatten(1, of_groups.shape[1:4]).transpose(0, 1).flatten(1, 2)
