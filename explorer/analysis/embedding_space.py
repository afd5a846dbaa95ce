"""A text's tokens, their nearest tokens and their paths through the layers, on three axes.

Source: interpreting GPT: the logit lens (nostalgebraist 2020), for what the output head reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.analysis.nearest_tokens import NearestTokens
from explorer.analysis.principal_components import PrincipalAxes, sample_rows
from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import interruptible
from models import Transformer
from models.output_heads import LanguageModelHead


@dataclass(frozen=True, eq=False)
class TokenPaths:
    """`states` (steps, tokens, d): the token embedding, then the residual stream.

    `steps` are their names: the embedding, the input of the first layer where positions or
    segments change it, and the output of every layer. `ids` are the tokens.
    """

    steps: tuple[str, ...]
    ids: tuple[int, ...]
    states: Tensor


def token_paths(forward: ForwardPass, stack: str, places: Sequence[int]) -> TokenPaths:
    """The paths of the tokens at these places, from the recorded pass, without computing any."""
    tokens = forward.source if stack == "encoder" else forward.target
    ids = tuple(tokens[place].id for place in places)
    part = getattr(forward.trace.model, stack)
    with torch.no_grad():
        embedded = part.embedding.weight[list(ids)] * part.embedding_scale
    steps, states = ["embedding"], [embedded]
    entering = forward.trace[f"{stack}.0.resid_pre"][forward.row, list(places)]
    if not torch.equal(entering, embedded):
        steps.append("into layer 0")
        states.append(entering)
    for layer in interruptible(range(len(part.blocks))):
        steps.append(f"after layer {layer}")
        states.append(forward.trace[f"{stack}.{layer}.resid_post"][forward.row, list(places)])
    return TokenPaths(tuple(steps), ids, torch.stack([state.float() for state in states]))


def unembedding(model: Transformer) -> Tensor | None:
    """The output head's matrix (v, d), a row for every token; None without a language model's."""
    if not isinstance(model.head, LanguageModelHead):
        return None
    own = model.head.weight
    return model.last_stack.embedding.weight if own is None else own


def is_tied(model: Transformer) -> bool:
    """Whether the unembedding is the token embedding."""
    return isinstance(model.head, LanguageModelHead) and model.head.weight is None


def as_read(model: Transformer, paths: TokenPaths) -> TokenPaths:
    """The paths after the final norm, as the unembedding reads them.

    A masked language model transforms them too. Scale, bias and soft cap of the logits come
    after the product.
    """
    assert isinstance(model.head, LanguageModelHead)
    with torch.no_grad():
        return replace(paths, states=model.head.transform(model.last_stack.norm(paths.states)))


EMBEDDING, STREAM, UNEMBEDDING = "Token embedding", "Residual stream", "Unembedding"
"""The vectors whose principal components are the axes."""
MOST_SAMPLED = 1_000
"""The most sampled tokens of the vocabulary: a whole one would hide everything."""
MOST_MOVING_TOKENS = 24
NEAREST = 3


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """The places of the tokens at every step, and of some of the vocabulary, on the axes.

    `places` are (steps, tokens, 3); `shares[step]` is the part of the tokens' variance that the
    axes hold. `nearest` has the nearest tokens (steps, tokens, k). `around` (n, 3) are the places
    of the IDs in `vocabulary`: first the `sampled`, then the nearest ones that are not sampled.
    """

    axes: PrincipalAxes
    paths: TokenPaths
    places: Tensor
    shares: tuple[float | None, ...]
    nearest: NearestTokens
    vocabulary: tuple[int, ...]
    around: Tensor
    sampled: int


def embedding_space(
    table: Tensor, axes: PrincipalAxes, paths: TokenPaths, nearest: NearestTokens
) -> EmbeddingSpace:
    """The vectors of `paths` and rows of `table` (v, d) on `axes`; costs d for each number."""
    sample = sample_rows(len(table), MOST_SAMPLED).tolist()
    near = nearest.ids[nearest.cosines > -torch.inf].unique().tolist()
    vocabulary = tuple(dict.fromkeys([*sample, *near]))
    return EmbeddingSpace(
        axes=axes,
        paths=paths,
        places=axes.places(paths.states),
        shares=tuple(axes.share_of(states) for states in paths.states),
        nearest=nearest,
        vocabulary=vocabulary,
        around=axes.places(table.detach()[list(vocabulary)].float()),
        sampled=len(sample),
    )
