"""The QK and OV circuits of a head: its weights, their spectra, composition and copying.

Of a model of one stack. A norm is a linear map but for the scale that it divides by, so its
centring and its gain go into the matrix behind it; the scale, which differs from token to token,
and all biases are left out. Positions that turn queries and keys (rotary) are left out too: what is
said of queries and keys is said of a token and itself.
Shapes: w width of one head, d width of the model, h heads.
Sources: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on copying, and
“Analyzing a Two-Layer Model” on composition; Interpretability in the Wild (Wang et al. 2022),
section 3, on the copy score.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.system.cooperative import interruptible
from models import Transformer, TransformerConfig
from models.attention import MultiHeadAttention
from models.block import Residual
from models.frozen_scales import residual_without_scale, scale_of, without_scale
from models.output_heads import LanguageModelHead


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """What one head reads of the residual stream with, (w, d) each, and what it writes with.

    With a residual stream x, a column, the head's queries, keys and values are `query` x, `key` x
    and `value` x, and it writes `output` (d, w) times its values: the QK circuit is queryᵀ key,
    the OV circuit output value. Heads that share keys and values (grouped-query attention) have
    the same `key` and `value`.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


def head_weights(model: Transformer, layer: int, head: int) -> HeadWeights:
    """Of one head of the stack that the output is read from, in float64. Costs w × d."""
    config, block = model.config, blocks_of(model)[layer]
    attention, norm = block.self_attn, block.self_residual.input_norm
    with torch.no_grad():
        group = config.kv_head(head)
        query = _read_with(norm, _rows(attention.q_proj, head, attention.d_head))
        key, value = (
            _read_with(norm, _rows(each, group, attention.d_head))
            for each in (attention.k_proj, attention.v_proj)
        )
        # The norm of queries and keys, where there is one, has a gain for every row.
        query, key = (
            each * gain.weight[:, None] if hasattr(gain, "weight") else each
            for each, gain in ((query, attention.q_norm), (key, attention.k_norm))
        )
        written, _ = residual_without_scale(block.self_residual)
        output = written(output_columns(attention, head).mT).mT
        return HeadWeights(*(each.double() for each in (query, key, value, output)))


def ov_of_layer(model: Transformer, layer: int) -> tuple[Tensor, Tensor]:
    """`value` (h, w, d) and `output` (h, d, w) of all heads of a layer, as `head_weights` has them.

    Where heads share values, each has a copy.
    """
    config, block = model.config, blocks_of(model)[layer]
    attention, residual = block.self_attn, block.self_residual
    with torch.no_grad():
        value = attention.v_proj.weight.unflatten(0, (-1, attention.d_head))
        value = value.repeat_interleave(config.n_heads // config.kv_heads, 0)
        written = attention.o_proj.weight.mT.unflatten(0, (-1, attention.d_head))
        value = _read_with(residual.input_norm, value)
        output = residual_without_scale(residual)[0](written).mT
    return value.double(), output.double()


def written_later(model: Transformer, layer: int, written: Tensor, until: int) -> Tensor:
    """What layer `until` finds of what attention in an earlier layer wrote, (…, d).

    The same where norms stand in front of the sub-layers or behind them; norms of the residual
    stream itself (post-norm) are linear but for their scale, which is left out.
    """
    for residual in _residuals_between(model, layer, until):
        written = residual_without_scale(residual)[1](written)
    return written


def _residuals_between(model: Transformer, layer: int, until: int) -> Iterator[Residual]:
    for block in blocks_of(model)[layer:until]:
        yield block.self_residual
        if block.mlp is not None:
            yield block.mlp_residual


def _read_with(norm: nn.Module, rows: Tensor) -> Tensor:
    """Rows (…, d) that read the residual stream in front of a norm, but for its scale."""
    back = torch.func.vjp(without_scale(norm), torch.zeros_like(rows))[1]
    found: Tensor = back(rows)[0]
    return found


def blocks_of(model: Transformer) -> Any:
    """The blocks of the stack that the output is read from."""
    return model.last_stack.blocks


def _rows(proj: nn.Linear, group: int, width: int) -> Tensor:
    return proj.weight[group * width :][:width].detach()


def output_columns(attention: MultiHeadAttention, head: int) -> Tensor:
    """The columns (d, w) of the output projection that a head's output is multiplied with."""
    return attention.o_proj.weight.detach()[:, head * attention.d_head :][:, : attention.d_head]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The singular values (w,) of a circuit, the largest first, and those of a random head's.

    `random` are those of a product of two matrices of independent numbers of the same sizes,
    drawn from a seed and scaled to the same Frobenius norm.
    """

    values: Tensor
    random: Tensor

    @property
    def above_random(self) -> int:
        """How many singular values are larger than the largest of the random head."""
        return int((self.values > self.random[0]).sum())


def spectra(head: HeadWeights) -> tuple[Spectrum, Spectrum]:
    """Those of the QK and of the OV circuit. Costs w² × d."""
    return _spectrum(head.query, head.key), _spectrum(head.output.mT, head.value)


def singular_values_of_product(left: Tensor, right: Tensor) -> Tensor:
    """The singular values of leftᵀ right that may not be zero, of left and right (w, d)."""
    # With leftᵀ = Q R, Q turns and changes no singular value.
    inner = torch.linalg.qr(left.mT).R @ torch.linalg.qr(right.mT).R.mT
    return torch.linalg.svdvals(inner)


def _spectrum(left: Tensor, right: Tensor) -> Spectrum:
    values = singular_values_of_product(left, right)
    source = torch.Generator().manual_seed(0)
    drawn = (torch.randn(each.shape, generator=source).to(values) for each in (left, right))
    random = singular_values_of_product(*drawn)
    return Spectrum(values, random * (values.norm() / random.norm()))


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


AT_ONCE = 1 << 13
"""Tokens of the vocabulary that are read together."""
SOURCES, TOP = 200, 5
"""Tokens that are drawn as sources, and among how many of its own a token is looked for."""


@dataclass(frozen=True, eq=False)
class Copying:
    """The eigenvalues (w,) of a head's OV circuit, and how it ranks a token for itself.

    `ranks` (n,) has of each source token how many tokens the head raises more than the token
    itself when it attends to it alone, out of `vocabulary`.
    """

    eigenvalues: Tensor
    ranks: Tensor
    vocabulary: int

    @property
    def score(self) -> float:
        """Σ λ / Σ |λ|: 1 where every direction is copied, −1 where each is turned around."""
        size = float(self.eigenvalues.abs().sum())  # NaN where a weight is no number
        return float(self.eigenvalues.real.sum()) / size if size else 0.0

    @property
    def own_in_top(self) -> float:
        """The share of source tokens that are among the five that the head raises most."""
        return float((self.ranks < TOP).double().mean())

    @property
    def by_chance(self) -> float:
        """The same share of a head that ranks tokens at random."""
        return min(1.0, TOP / self.vocabulary)


def why_no_copying(config: TransformerConfig) -> str:
    """Why there is no circuit from tokens to tokens, in a sentence; empty where there is one."""
    if config.kind == "encoder-decoder":
        return "Encoder-decoders have two stacks, and a circuit is read in models of one."
    if config.head != "language-model":
        return "Its output head is no linear map to the tokens, so copying has no meaning."
    return ""


def copying(model: Transformer, layer: int, head: int, seed: int = 0) -> Copying:
    """Of one head of a language model of one stack. Costs vocabulary × d × w, twice."""
    stack, output_head = model.last_stack, model.head
    assert isinstance(output_head, LanguageModelHead)
    found = head_weights(model, layer, head)
    with torch.no_grad():
        written = written_later(model, layer, found.output.mT, len(stack.blocks))
        read = without_scale(stack.norm)(written).float()  # (w, d)
        value, norm = found.value.float(), blocks_of(model)[layer].self_residual.input_norm
        embedding = stack.embedding.weight
        words = embedding if output_head.weight is None else output_head.weight
        outputs, values = [], []
        for rows in interruptible(range(0, len(words), AT_ONCE)):
            some = slice(rows, rows + AT_ONCE)
            x = stack.embedding_norm(embedding[some] * stack.embedding_scale)
            values.append(x * scale_of(norm, x) @ value.to(x).mT)
            outputs.append(words[some] @ read.to(words).mT)
        by_output, by_source = torch.cat(outputs), torch.cat(values)  # (v, w) each
        # Those of the whole circuit by_output · by_sourceᵀ that are not zero.
        inner = (by_source.mT @ by_output).double()
        is_finite = bool(inner.isfinite().all())  # an unused token may have no numbers
        eigenvalues = torch.linalg.eigvals(inner if is_finite else torch.zeros_like(inner))
        eigenvalues = eigenvalues if is_finite else eigenvalues * torch.nan
        drawn = torch.randperm(len(words), generator=torch.Generator().manual_seed(seed))[:SOURCES]
        raised = by_source[drawn] @ by_output.mT
        ranks = (raised > raised.gather(1, drawn[:, None])).sum(1)
    return Copying(eigenvalues, ranks, len(words))
