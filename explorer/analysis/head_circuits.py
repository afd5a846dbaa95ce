"""The QK and OV circuits of a head: its weights, their spectra, composition and copying.

For models of one stack. A norm is linear except for the scale that it divides by, so its centring
and its gain go into the matrix behind it; the scale, which differs from token to token, and all
biases are left out. So are rotary positions: the QK circuit here is that of a token and itself.
Shapes: w width of one head, d width of the model, h heads.
Sources: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on copying, and
“Analyzing a Two-Layer Model” on composition; Interpretability in the Wild (Wang et al. 2022),
section 3, on the copy score.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.system.cooperative import interruptible
from models import Transformer, TransformerConfig
from models.attention import MultiHeadAttention
from models.frozen_scales import Linear, residual_without_scale, scale_of, without_scale
from models.output_heads import LanguageModelHead


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The weights of one head.

    For a residual stream x, a column, the head's queries, keys and values are `query` x, `key` x
    and `value` x, (w, d) each, and it writes `output` (d, w) times its values: the QK circuit is
    queryᵀ key, the OV circuit output value. Heads that share keys and values (grouped-query
    attention) have the same `key` and `value`.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


def head_weights(model: Transformer, layer: int, head: int) -> HeadWeights:
    """The weights of one head of the last stack, in float64. Costs w × d."""
    config, block = model.config, blocks_of(model)[layer]
    attention, linear = block.self_attn, without_scale(block.self_residual.input_norm)
    with torch.no_grad():
        group = config.kv_head(head)
        query = read_with(linear, _rows(attention.q_proj, head, attention.d_head))
        key, value = (
            read_with(linear, _rows(projection, group, attention.d_head))
            for projection in (attention.k_proj, attention.v_proj)
        )
        # The norm of queries and keys, where there is one, has a gain for every row.
        query, key = (
            matrix * gain.weight[:, None] if hasattr(gain, "weight") else matrix
            for matrix, gain in ((query, attention.q_norm), (key, attention.k_norm))
        )
        write_without_scale, _ = residual_without_scale(block.self_residual)
        output = write_without_scale(output_columns(attention, head).mT).mT
        return HeadWeights(*(matrix.double() for matrix in (query, key, value, output)))


def ov_of_layer(model: Transformer, layer: int) -> tuple[Tensor, Tensor]:
    """`value` (h, w, d) and `output` (h, d, w) of all heads of a layer, as in `head_weights`.

    Where heads share values, each has a copy.
    """
    config, block = model.config, blocks_of(model)[layer]
    attention, residual = block.self_attn, block.self_residual
    with torch.no_grad():
        value = attention.v_proj.weight.unflatten(0, (-1, attention.d_head))
        value = value.repeat_interleave(config.n_heads // config.kv_heads, 0)
        columns = attention.o_proj.weight.mT.unflatten(0, (-1, attention.d_head))
        value = read_with(without_scale(residual.input_norm), value)
        output = residual_without_scale(residual)[0](columns).mT
    return value.double(), output.double()


def carry_to_layer(model: Transformer, layer: int, write: Tensor, until: int) -> Tensor:
    """The write (…, d) of attention in `layer`, as it is in the residual stream at layer `until`.

    With pre-norm and sandwich norm it does not change; with post-norm the norms of the stream
    apply to it, without their scale.
    """
    for block in blocks_of(model)[layer:until]:
        write = residual_without_scale(block.self_residual)[1](write)
        if block.mlp is not None:
            write = residual_without_scale(block.mlp_residual)[1](write)
    return write


def read_with(linear: Linear, rows: Tensor) -> Tensor:
    """The rows (…, d) as they read the input of a map of d numbers to d, such as a norm."""
    with torch.enable_grad():  # torch.func.vjp takes seconds to import
        start = torch.zeros_like(rows, requires_grad=True)
        return torch.autograd.grad(linear(start), start, rows)[0]


def blocks_of(model: Transformer) -> Any:
    """The blocks of the last stack, whose output the head reads."""
    return model.last_stack.blocks


def _rows(proj: nn.Linear, group: int, width: int) -> Tensor:
    return proj.weight[group * width :][:width].detach()


def output_columns(attention: MultiHeadAttention, head: int) -> Tensor:
    """The columns (d, w) of the output projection that multiply a head's output."""
    return attention.o_proj.weight.detach()[:, head * attention.d_head :][:, : attention.d_head]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values (w,) of a circuit, the largest first, and those of a random head's.

    `random` are those of a product of two random matrices of the same sizes, from a fixed seed
    and scaled to the same Frobenius norm.
    """

    values: Tensor
    random: Tensor


def spectra(head: HeadWeights) -> tuple[Spectrum, Spectrum]:
    """The spectra of the QK and the OV circuit. Costs w² × d."""
    return _spectrum(head.query, head.key), _spectrum(head.output.mT, head.value)


def singular_values_of_product(left: Tensor, right: Tensor) -> Tensor:
    """The w largest singular values of leftᵀ right, for left and right (w, d)."""
    # With leftᵀ = Q R, Q is orthogonal and changes no singular value.
    inner = torch.linalg.qr(left.mT).R @ torch.linalg.qr(right.mT).R.mT
    return torch.linalg.svdvals(inner)


def _spectrum(left: Tensor, right: Tensor) -> Spectrum:
    values = singular_values_of_product(left, right)
    source = torch.Generator().manual_seed(0)
    random_pair = (
        torch.randn(matrix.shape, generator=source).to(values) for matrix in (left, right)
    )
    random = singular_values_of_product(*random_pair)
    return Spectrum(values, random * (values.norm() / random.norm()))


READS = ("q", "k", "v")


def composition(model: Transformer, layer: int, head: int) -> Tensor:
    """(3, layer, h): Q-, K- and V-composition with every head of every earlier layer.

    Only weights count: a head with a large score could read what the earlier head writes. Costs
    w² × d for every earlier head, without any d × d matrix.
    """
    here = head_weights(model, layer, head)
    scores = torch.zeros(len(READS), layer, model.config.n_heads, dtype=torch.float64)
    with torch.no_grad():
        for earlier in interruptible(range(layer)):
            value, output = ov_of_layer(model, earlier)
            output = carry_to_layer(model, earlier, output.mT, layer).mT
            scores[:, earlier] = composition_scores(here, value, output)
    return scores


def composition_scores(here: HeadWeights, value: Tensor, output: Tensor) -> Tensor:
    """(3, …): the scores with earlier heads of `value` (…, w, d) and `output` (…, d, w)."""
    value_gram = _gram(value)
    output_norm = _norm(_gram(output.mT), value_gram)
    circuits = (here.key, here.query), (here.query, here.key), (here.output.mT, here.value)
    scores = []
    for far, near in circuits:
        # ‖farᵀ near output value‖: its square is the trace of a product of w × w matrices.
        outer, middle = _gram(far), near @ output
        own = _norm(outer, _gram(near))
        scores.append(_root(outer @ middle @ value_gram * middle) / (own * output_norm))
    return torch.stack(scores)


def unrelated(d_model: int) -> float:
    """The root mean square of the score of two random heads: 1 / √d."""
    return d_model**-0.5


def _gram(rows: Tensor) -> Tensor:
    return rows @ rows.mT


def _norm(left: Tensor, right: Tensor) -> Tensor:
    """‖leftᵀ right‖ of matrices (…, w, d) by their Gram matrices."""
    return _root(left * right)


def _root(parts: Tensor) -> Tensor:
    return parts.sum((-2, -1)).clamp(min=0).sqrt()


AT_ONCE = 1 << 13
"""Tokens of the vocabulary in one multiplication."""
SOURCES, TOP = 200, 5
"""The number of sampled source tokens, and the rank that a token reaches to count as copied."""


@dataclass(frozen=True, eq=False)
class Copying:
    """The eigenvalues (w,) of a head's OV circuit, and the rank that it gives to its own token.

    `ranks` (n,) are, for each source token, how many of the `vocabulary` the head raises more
    than this token, when it attends to it alone.
    """

    eigenvalues: Tensor
    ranks: Tensor
    vocabulary: int

    @property
    def score(self) -> float:
        """Σ λ / Σ |λ|: 1 where the head copies every direction, −1 where it negates all."""
        size = float(self.eigenvalues.abs().sum())  # NaN where a weight is NaN
        return float(self.eigenvalues.real.sum()) / size if size else 0.0

    @property
    def own_in_top(self) -> float:
        """The share of source tokens that are among the `TOP` that the head raises most."""
        return float((self.ranks < TOP).double().mean())

    @property
    def by_chance(self) -> float:
        """The share for a head that ranks tokens at random."""
        return min(1.0, TOP / self.vocabulary)


def why_no_copying(config: TransformerConfig) -> str:
    """Why there is no circuit from tokens to tokens; empty where there is one."""
    if config.kind == "encoder-decoder":
        return "An encoder-decoder has two stacks; these circuits need a model of one."
    if config.head != "language-model":
        return "The output head is not a linear map to the tokens, so copying has no meaning."
    return ""


def copying(model: Transformer, layer: int, head: int, seed: int = 0) -> Copying:
    """The copying of one head of a language model of one stack. Costs vocabulary × d × w, twice."""
    stack, output_head = model.last_stack, model.head
    assert isinstance(output_head, LanguageModelHead)
    weights = head_weights(model, layer, head)
    with torch.no_grad():
        output = carry_to_layer(model, layer, weights.output.mT, len(stack.blocks))
        output = without_scale(stack.norm)(output).float()  # (w, d)
        value, norm = weights.value.float(), blocks_of(model)[layer].self_residual.input_norm
        embedding = stack.embedding.weight
        unembedding = embedding if output_head.weight is None else output_head.weight
        outputs, values = [], []
        for rows in interruptible(range(0, len(unembedding), AT_ONCE)):
            some = slice(rows, rows + AT_ONCE)
            x = stack.embedding_norm(embedding[some] * stack.embedding_scale)
            values.append(x * scale_of(norm, x) @ value.to(x).mT)
            outputs.append(unembedding[some] @ output.to(unembedding).mT)
        by_output, by_source = torch.cat(outputs), torch.cat(values)  # (v, w) each
        # It has all eigenvalues of the whole circuit by_output · by_sourceᵀ that are not zero.
        inner = (by_source.mT @ by_output).double()
        is_finite = bool(inner.isfinite().all())  # an unused token may have no numbers
        eigenvalues = torch.linalg.eigvals(inner if is_finite else torch.zeros_like(inner))
        eigenvalues = eigenvalues if is_finite else eigenvalues * torch.nan
        generator = torch.Generator().manual_seed(seed)
        sources = torch.randperm(len(unembedding), generator=generator)[:SOURCES]
        raised = by_source[sources] @ by_output.mT
        ranks = (raised > raised.gather(1, sources[:, None])).sum(1)
    return Copying(eigenvalues, ranks, len(unembedding))
