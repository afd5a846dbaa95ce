"""How much a head reads of what each earlier head writes: Q-, K- and V-composition.

‖W_QKᵀ W_OV‖ / ‖W_QK‖ ‖W_OV‖ and its like, Frobenius norms, where W_OV is the earlier head's. A
head that is unrelated, its directions turned at random, has 1 / √d in the mean square.
Shapes: w width of one head, d width of the model, h heads.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), “Analyzing a
Two-Layer Model”.
"""

import torch
from torch import Tensor

from explorer.analysis.head_weights import HeadWeights, head_weights, ov_of_layer, written_later
from explorer.system.cooperative import interruptible
from models import Transformer

READS = ("q", "k", "v")


def composition(model: Transformer, layer: int, head: int) -> Tensor:
    """(3, layer, h): by what is read (q, k, v), the score with every head of every earlier layer.

    Only weights count, so a large score says what could be read, not that it is. Costs
    w² × d for every earlier head: no d × d matrix is made.
    """
    here = head_weights(model, layer, head)
    scores = torch.zeros(len(READS), layer, model.config.n_heads, dtype=torch.float64)
    with torch.no_grad():
        for earlier in interruptible(range(layer)):
            value, output = ov_of_layer(model, earlier)
            output = written_later(model, earlier, output.mT, layer).mT
            scores[:, earlier] = composition_scores(here, value, output)
    return scores


def composition_scores(here: HeadWeights, value: Tensor, output: Tensor) -> Tensor:
    """(3, …): with earlier heads that have `value` (…, w, d) and `output` (…, d, w)."""
    read = _gram(value)
    written = _norm(_gram(output.mT), read)
    circuits = (here.key, here.query), (here.query, here.key), (here.output.mT, here.value)
    found = []
    for far, near in circuits:
        # ‖farᵀ near output value‖, by the w × w matrices that its square is the trace of.
        outer, middle = _gram(far), near @ output
        own = _norm(outer, _gram(near))
        found.append(_root(outer @ middle @ read * middle) / (own * written))
    return torch.stack(found)


def unrelated(d_model: int) -> float:
    """The score of heads that have nothing to do with each other: 1 / √d, a root mean square."""
    return d_model**-0.5


def _gram(rows: Tensor) -> Tensor:
    return rows @ rows.mT


def _norm(left: Tensor, right: Tensor) -> Tensor:
    """‖leftᵀ right‖ of matrices (…, w, d) by their Gram matrices."""
    return _root(left * right)


def _root(parts: Tensor) -> Tensor:
    return parts.sum((-2, -1)).clamp(min=0).sqrt()
