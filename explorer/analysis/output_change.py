"""How much the outputs of two passes differ: probabilities, KL, loss, logits.

The model's own last norm and head read the last residual stream of both recorded passes, at one
position or at all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from models import TransformerConfig
from models.trace import Trace

AT_ONCE = 64
"""The most positions whose logits over the vocabulary are in memory at a time."""


@dataclass(frozen=True, eq=False)
class ChangeOverText:
    """KL in nats at every position, (tokens,), and the cross-entropy of the text.

    `loss` is before and after, in nats per token; None where no next token is predicted.
    """

    kl: Tensor
    loss: tuple[float, float] | None


def has_words(config: TransformerConfig) -> bool:
    """Whether the output head predicts a token at every position."""
    return config.head in ("language-model", "masked-language-model")


def last_streams(config: TransformerConfig) -> tuple[str, int]:
    """The name of the stack that the output head reads, and its number of layers."""
    if config.kind == "encoder":
        return "encoder", config.encoder_layers
    return "decoder", config.n_layers


def last_stream(passed: Trace, row: int = 0) -> Tensor:
    """The residual stream after the last norm, (1, tokens, d_model)."""
    stack, layers = last_streams(passed.model.config)
    after = passed[f"{stack}.{layers - 1}.resid_post"][row : row + 1]
    with torch.no_grad():
        normed: Tensor = passed.model.last_stack.norm(after)
    return normed


def logits_at(passed: Trace, position: int, row: int = 0) -> Tensor:
    """The logits at one position, (vocabulary,), or of the whole text, (classes,)."""
    if not has_words(passed.model.config):
        return passed.output[row]
    return _read(passed, last_stream(passed, row)[:, position : position + 1])[0]


def kl(before: Tensor, after: Tensor) -> Tensor:
    """KL(before ‖ after) = Σ p (ln p − ln q) in nats, of logits (…, options)."""
    log_p, log_q = (logits.double().log_softmax(-1) for logits in (before, after))
    return _kl(log_p, log_q)


def divergence(config: TransformerConfig, before: Tensor, after: Tensor) -> Tensor:
    """How much whole outputs (…, options) change: KL, or squared values of a regression.

    Labels with probabilities of their own are independent, so their KL add up.
    """
    match config.score_function:
        case "none":
            return (after - before).double().square().sum(-1)
        case "sigmoid":
            return kl(with_absence(before), with_absence(after)).sum(-1)
    return kl(before, after)


def with_absence(logits: Tensor) -> Tensor:
    """(…, labels, 2): each label's logit and 0, of which a softmax is what a sigmoid is of one."""
    return torch.stack([logits, torch.zeros_like(logits)], -1)


def _kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    return (log_p.exp() * (log_p - log_q)).sum(-1).clamp(min=0)


def likeliest(before: Tensor, after: Tensor, most: int = 6) -> list[int]:
    """The likeliest options of both, in one list, in the order of `before`."""
    most = min(most, len(before))
    both = [logits.topk(most).indices for logits in (before, after)]
    options = dict.fromkeys(torch.cat(both).tolist())
    return sorted(options, key=lambda option: -float(before[option]))


def over_text(
    before: Trace, after: Trace, predicted: tuple[Tensor, Tensor], first: tuple[int, int] = (0, 0)
) -> ChangeOverText:
    """KL and loss over all positions of one text. Time grows with tokens × vocabulary.

    `predicted` are the next tokens' IDs of the first positions of each pass: the loss is the mean
    of their −ln p. Positions before `first`, one for each pass, are left out.
    """
    passes = before, after
    streams = [last_stream(passed)[:, at:] for passed, at in zip(passes, first, strict=True)]
    divergences: list[Tensor] = []
    log_likelihoods: tuple[list[Tensor], list[Tensor]] = [], []
    for start in range(0, streams[0].shape[1], AT_ONCE):
        some = slice(start, start + AT_ONCE)
        log_probabilities = [
            _read(passed, stream[:, some]).double().log_softmax(-1)
            for passed, stream in zip(passes, streams, strict=True)
        ]
        divergences.append(_kl(*log_probabilities))
        for numbers, ids, logs in zip(log_likelihoods, predicted, log_probabilities, strict=True):
            here = ids[some]
            numbers.append(logs[: len(here)].gather(-1, here[:, None])[:, 0])
    loss = None
    if len(predicted[0]):
        old, new = (-float(torch.cat(numbers).mean()) for numbers in log_likelihoods)
        loss = old, new
    return ChangeOverText(torch.cat(divergences), loss)


def _read(passed: Trace, stream: Tensor) -> Tensor:
    """Logits of a residual stream after the last norm, (positions, vocabulary)."""
    with torch.no_grad():
        logits: Tensor = passed.model.read(stream)[0]
    return logits
