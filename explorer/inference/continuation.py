"""Generation from the reader's text, along any path of tokens: its next logits, its samples."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.inference.branches import Branches
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, run_text, unknown
from explorer.inference.generation_limits import (
    CANNOT_GENERATE,
    MAX_GENERATED,
    Prompt,
    can_generate,
    require_probabilities,
)
from explorer.inference.model_inputs import ids_of, record
from explorer.inference.results_cache import cached, is_cached
from explorer.inference.sampling_stages import generator_at
from explorer.system.cooperative import Report
from explorer.system.limits import PASS_TOKENS
from explorer.text import Token
from models import TransformerConfig
from models.cache import KeyValueCache
from models.generation import DecodingState, check_prompt
from models.masking import keep_of
from models.sampling import Sampling, ban_tokens, choose_from, sample

NEXT = Token(-1, "next", 0, 0, special=True)
"""Labels the row that predicts the next token."""
LATER = "·"
"""Labels the positions after the current step."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """The forward pass over a prompt of `begun` tokens and the `steps` tokens of a path.

    `all_logits` (steps + 1, vocabulary) are those of the token after each step, −∞ for tokens
    that the model never generates. `forward` has one row per token of the path, and one for
    the next.

    Since the mask is causal, its first rows are the pass of each earlier step: the values of a
    `step` are those after that many tokens, in tensors of the whole size.
    """

    forward: ForwardPass
    begun: int
    all_logits: Tensor
    steps: int

    @property
    def logits(self) -> Tensor:
        """The logits of the token after the last (vocabulary,)."""
        return self.all_logits[-1]

    @property
    def bytes(self) -> int:
        return self.forward.bytes + self.all_logits.nbytes

    def size(self, part: str, step: int) -> tuple[int, int]:
        """The rows and columns of a map after `step` tokens."""
        rows, columns = len(self.forward.rows(part)), len(self.forward.columns(part))
        if part == "encoder.self_attn":
            return rows, columns
        if part == "decoder.cross_attn":  # a row is labelled by the token that it predicts
            return step + 1, columns
        return self.begun + step, self.begun + step

    def rows(self, part: str, step: int) -> list[Token | str]:
        """The queries after `step` tokens, a dot for each later query."""
        count, tokens = self.size(part, step)[0], self.forward.rows(part)
        if part != "decoder.cross_attn":
            return _until(tokens, count)
        return [*_until(tokens, step)[:step], NEXT, *[LATER] * (len(tokens) - count)]

    def columns(self, part: str, step: int) -> list[Token | str]:
        """The keys after `step` tokens, a dot for each later key."""
        return _until(self.forward.columns(part), self.size(part, step)[1])

    def mask(self, part: str, layer: int, step: int) -> Tensor:
        """The mask after `step` tokens: no query or key that comes later is visible."""
        return self._so_far(self.forward.mask(part, layer), part, step, later=False)

    def weights(self, part: str, layer: int, head: int, step: int) -> Tensor:
        """The head's weights after `step` tokens; NaN for later queries and keys."""
        return self._so_far(self.forward.weights(part, layer, head), part, step, later=torch.nan)

    def _so_far(self, whole: Tensor, part: str, step: int, later: float) -> Tensor:
        rows, columns = self.size(part, step)
        so_far = torch.full_like(whole, later)
        so_far[:rows, :columns] = whole[:rows, :columns]
        return so_far


def _until(tokens: Sequence[Token], count: int) -> list[Token | str]:
    return [token if at < count else LATER for at, token in enumerate(tokens)]


def prompt_of(opened: OpenModel, text: str) -> Prompt:
    """The prompt of a text; ForwardPassError if the model cannot generate or read it."""
    if not can_generate(opened):
        raise ForwardPassError(CANNOT_GENERATE)
    forward = run_text(opened, text)
    require_probabilities(forward.trace.output)
    try:
        check_prompt(opened.model, ids_of([forward.tokens]))
    except ValueError as error:  # it ends in padding, which no token can follow
        raise ForwardPassError(str(error)) from error
    tokens = forward.target[:1] if forward.source else forward.target
    room = min(MAX_GENERATED, min(opened.config.max_len, PASS_TOKENS.most) - len(tokens) + 1)
    return Prompt(forward.source, tokens, room)


def continue_from(opened: OpenModel, text: str, path: Sequence[int]) -> Continuation:
    """The forward pass after these tokens, cached. Memory: tokens × layers; time: tokens²."""
    return cached(
        opened, ("continuation", text, tuple(path)), lambda: _continue_from(opened, text, path)
    )


def _continue_from(opened: OpenModel, text: str, path: Sequence[int]) -> Continuation:
    prompt, forward, config = prompt_of(opened, text), run_text(opened, text), opened.config
    tokens = tuple(map(opened.tokenizer.token, path))
    full = (*prompt.tokens, *tokens)
    # A generated padding token may be attended to, padding of the prompt may not.
    keep = torch.ones(1, len(full), dtype=torch.bool)
    of_prompt = None if prompt.source else keep_of(prompt.ids, config.pad_id)
    if of_prompt is not None:
        keep[:, : len(prompt.tokens)] = of_prompt
    stacks, how = [[full]], dict[str, Any](keep=keep)
    if prompt.source:
        stacks, how = [[prompt.source], [full]], {"target_keep": keep}
    passed = record(opened, *stacks, read_at=slice(len(prompt.tokens) - 1, None), **how)
    logits = allowed_rows(passed.output[0].float(), config, first=len(prompt.tokens) == 1)
    require_probabilities(logits)
    rows = (*tokens, NEXT) if prompt.source else ()
    whole = replace(forward, target=full, output_tokens=rows, trace=passed, row=0)
    return Continuation(whole, len(prompt.tokens), logits, len(path))


def unknown_in(opened: OpenModel, typed: str) -> tuple[str, ...]:
    """A sentence that names what the vocabulary does not have; empty if it has everything."""
    return unknown(opened, typed, "", opened.tokenizer.encode(typed), "written")


def sample_tokens(
    opened: OpenModel, text: str, path: Sequence[int], sampling: Sampling, seed: int
) -> Iterator[int]:
    """Sample tokens after a path; each costs one step with the KV cache."""
    decoder = DecodingState(opened.model, prompt_of(opened, text).ids)
    logits = decoder.read(torch.tensor([path]))[:, -1] if path else decoder.first_logits
    generator = generator_at(seed, len(path), logits.shape[-1], sampling)
    while float(logits.max()) < math.inf:  # the next forward pass reports logits without a softmax
        token = int(sample(choose_from(logits.float(), sampling), sampling, generator))
        yield token
        logits = decoder.read(torch.tensor([[token]]))[:, -1]


def log_probabilities(
    opened: OpenModel,
    text: str,
    branches: Branches,
    continuation: Continuation,
    last: int,
    report: Report,
) -> tuple[float, ...]:
    """The log-probability of each node's token after its parent, in nats; 0 for the root.

    `continuation` is the pass up to node `last`; the nodes up to there and their children need no
    other pass. Cached for each state of the branches.
    """
    branches, scores = branches.appended, dict[int, float]()
    for step, node in enumerate([0, *branches.nodes_to(last)]):
        if children := branches.children[node]:
            after = continuation.all_logits[step].log_softmax(-1)
            scores |= {child: float(after[token]) for token, child in children.items()}

    def cached_scores(state: Branches, make: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
        return cached(opened, ("branches", text, state.in_effect), make)

    state = branches  # back to the first that is cached, or whose last action has an unknown node
    while state.done and not is_cached(opened, ("branches", text, state.in_effect)):
        if any(node not in scores for node in range(len(state.before.nodes), len(state.nodes))):
            break
        state = state.before
    first: tuple[float, ...] = (0.0,)
    if state.done:
        first = cached_scores(state, lambda: _score_nodes(opened, text, state, report))
    later = (scores[node] for node in range(len(state.nodes), len(branches.nodes)))
    return first if state is branches else cached_scores(branches, lambda: (*first, *later))


def _score_nodes(
    opened: OpenModel, text: str, branches: Branches, report: Report
) -> tuple[float, ...]:
    """One pass for each leaf, over the tokens that it does not share with the leaf before."""
    decoder = DecodingState(opened.model, prompt_of(opened, text).ids)
    first = decoder.first_logits[0].log_softmax(-1)
    tokens = torch.tensor([node.token for node in branches.nodes])
    scores, inputs_before = [0.0] * len(tokens), list[int]()
    lines = sorted(map(branches.nodes_to, branches.leaves()))
    for done, line in enumerate(lines):
        report(done / len(lines))
        scores[line[0]] = float(first[tokens[line[0]]])
        inputs = line[:-1]
        if not inputs:
            continue
        shared = sum(own == before for own, before in zip(inputs, inputs_before, strict=False))
        again = max(0, shared - 1)  # the last shared token is fed again for what follows it
        back_to(decoder, again)
        logits = decoder.read(tokens[inputs[again:]][None])[0].float()
        after = line[again + 1 :]
        probabilities = logits.log_softmax(-1).gather(-1, tokens[after][:, None])[:, 0]
        for node, score in zip(after, probabilities.tolist(), strict=True):
            scores[node] = score
        inputs_before = inputs
    return tuple(scores)


def back_to(decoder: DecodingState, n_generated: int) -> None:
    """Forget all but the first `n_generated` tokens after the prompt."""
    length = decoder.n_start + n_generated
    assert decoder.cache is not None
    shorten(decoder.cache, length)
    decoder.keep = None if decoder.keep is None else decoder.keep[:, :length]


def shorten(cache: KeyValueCache, length: int) -> None:
    """Drop all tokens but the first `length`; the memory's keys and values stay.

    No room is left, so the next keys and values are written into a copy: a trace keeps its values.
    """
    for layer in (block["self_attn"] for block in cache):
        layer.length = length
        layer.keys, layer.values = layer.read()


def allowed_rows(logits: Tensor, config: TransformerConfig, first: bool) -> Tensor:
    """`ban_tokens` of successive tokens; `first` says whether row 0 is the first one generated."""
    return torch.cat((ban_tokens(logits[:1], config, first), ban_tokens(logits[1:], config, False)))
