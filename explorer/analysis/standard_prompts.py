"""Head scores on prompts that are the same for every text: repeated random tokens.

A sequence of different random tokens, drawn from a seed, and the same once more: only where a
token came before tells what comes next. A special token that the tokenizer puts around every
text is put around these too.
Source: In-context Learning and Induction Heads (Olsson et al. 2022).
"""

from collections.abc import Iterator
from itertools import takewhile

import torch
from torch import Tensor

from explorer.analysis.head_metrics import Tokens, metrics_of_heads, pattern_cells
from explorer.analysis.output_change import last_streams
from explorer.catalog.opened_model import Opened
from explorer.inference.model_inputs import one_stack
from explorer.inference.results_cache import kept
from explorer.system.cooperative import interruptible
from explorer.text import TextError, Token

SEED, ROWS, LENGTH = 0, 4, 25
"""So many sequences, each of so many tokens and the same again, where the model reads as many."""
SCORES = ("previous", "duplicate", "induction", "first")


def standard_scores(opened: Opened) -> dict[str, Tensor]:
    """Each of SCORES of every head, (layers, h), the mean over the sequences; made once.

    Costs one pass over 200 tokens. For models of one stack.
    """
    return kept(
        opened,
        ("standard scores",),
        lambda: _measured(opened),
        lambda made: sum(each.nbytes for each in made.values()),
    )


def repeated_random_tokens(opened: Opened, seed: int = SEED) -> list[tuple[Token, ...]]:
    """The sequences, each with what the tokenizer puts before and after a text.

    None where the model reads too little, or knows no token that is not special.
    """
    before, after = _around(opened)
    room = opened.config.max_len - len(before) - len(after)
    special = opened.tokenizer.special_ids
    usual = torch.tensor([i for i in range(opened.config.vocab_size) if i not in special])
    length = min(LENGTH, room // 2, len(usual))
    if length < 1:
        return []
    source = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(ROWS):
        drawn = usual[torch.randperm(len(usual), generator=source)[:length]].tolist()
        rows.append((*before, *[Token(i, "") for i in drawn * 2], *after))
    return rows


def _around(opened: Opened) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The special tokens before and after every text."""
    try:
        tokens = opened.tokenizer.encode(opened.example)
    except TextError:
        return (), ()

    def added(some: Iterator[Token]) -> tuple[Token, ...]:
        return tuple(takewhile(lambda token: token.special and token.start == token.end, some))

    before = added(iter(tokens))
    return before, added(reversed(tokens[len(before) :]))[::-1]


def _measured(opened: Opened) -> dict[str, Tensor]:
    rows = repeated_random_tokens(opened)
    if not rows:
        shape = last_streams(opened.config)[1], opened.config.n_heads
        return {name: torch.full(shape, torch.nan) for name in SCORES}
    passed = one_stack(opened, rows, slice(-1, None))
    stack, layers = last_streams(opened.config)
    tokens = Tokens.of(rows[0])
    by_layer = []
    for layer in interruptible(range(layers)):
        at = f"{stack}.{layer}.self_attn"
        visible = passed.mask(at)[0, 0]
        # The tokens differ from row to row, the cells of the patterns do not.
        cells = pattern_cells(tokens, tokens, visible, same_text=True)
        weights = passed.weights(at)
        found = metrics_of_heads(
            weights.flatten(0, 1), visible, tokens.special, cells, same_text=True
        )
        by_layer.append([found[name].unflatten(0, weights.shape[:2]).mean(0) for name in SCORES])
    return {name: torch.stack([layer[at] for layer in by_layer]) for at, name in enumerate(SCORES)}
