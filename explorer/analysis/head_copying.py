"""What a head copies by its weights alone: its OV circuit from every token to every token.

The circuit takes a token's embedding, normed as this layer norms it, through the head's values
and output to the logits: W_U N W_O W_V norm(W_E), a matrix of vocabulary × vocabulary of rank w,
the width of the head. N is what later norms leave but for their scale; positions, biases and
what other layers do are left out.
Sources: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021), on copying and
its eigenvalues; Interpretability in the Wild (Wang et al. 2022), section 3, on the copy score.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.frozen_scales import scale_of, without_scale
from explorer.analysis.head_weights import blocks_of, head_weights, written_later
from explorer.system.cooperative import interruptible
from models import Transformer, TransformerConfig
from models.output_heads import LanguageModelHead

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
