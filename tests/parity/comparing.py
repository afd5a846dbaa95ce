"""Whether our core and the reference say the same, value by value and token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from models.generation import FIRST_OF_ALL, written
from models.trace import CHEAP_SITES, EVERYTHING, Trace
from tests.parity.families import (
    AllInDouble,
    Case,
    Inputs,
    Pair,
    inputs_of,
    open_pair,
    our_trace,
    our_values,
    reference_values,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
LENGTH = 11
PASSES = (("none", LENGTH), ("right", LENGTH), ("left", LENGTH), ("none", 1))
"""Padding and number of tokens of the texts that are compared."""
WRITTEN = 12
"""Tokens that both generate."""


def is_the_reference(case: Case, folder: Path) -> None:
    """All that is asked of a family: default-initialised and shaken, float32 and float64, writing.

    Shaken weights alone would hide what only shows at unit norms, default ones what only
    shows away from them.
    """
    default = open_pair(case, folder / "default", shaken=False)
    compare(default, inputs_of(default, LENGTH, "left"))
    pair = open_pair(case, folder / "shaken")
    same_values(pair, PASSES[:2] if case.exact else PASSES)
    pair.double()
    if case.exact:
        same_values(pair, PASSES[2:])
    if pair.ours.config.head == "language-model" and pair.ours.model.decoder is not None:
        same_writing(pair)


def same_values(pair: Pair, passes: Sequence[tuple[str, int]] = PASSES) -> None:
    """Streams, attention weights and logits agree on every text, watched and derived."""
    for padding, length in passes:
        compare(pair, inputs_of(pair, length, padding))
    if pair.ours.config.n_segments > 1:
        compare(pair, inputs_of(pair, LENGTH, "right", segments=True))


def compare(pair: Pair, inputs: Inputs) -> None:
    theirs = reference_values(pair, inputs)
    for sites in (EVERYTHING, CHEAP_SITES):
        seen = our_trace(pair, inputs, sites)
        ours = our_values(seen, inputs, list(theirs))
        assert sites == CHEAP_SITES or ours.keys() == theirs.keys()
        for name, value in ours.items():
            assert_close(value, theirs[name], name)
    one_head_alone(pair, seen)


def one_head_alone(pair: Pair, cheap: Trace) -> None:
    """The weights of a single head, derived, are those of the whole."""
    last = pair.ours.config.n_heads - 1
    for site in {name.rpartition(".")[0] for name in cheap.sites if name.endswith("_attn.q")}:
        assert_close(cheap.weights(site, head=last), cheap.weights(site)[:, last], site)


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, relative to the largest value; infinite where a value is none."""
    if ours.shape != theirs.shape or not torch.isfinite(ours).all():
        return float("inf")
    largest = theirs.abs().max().clamp(min=torch.finfo(theirs.dtype).tiny)
    return ((ours - theirs).abs().max() / largest).item()


def assert_close(ours: Tensor, theirs: Tensor, what: str) -> None:
    assert ours.shape == theirs.shape, what
    assert ours.dtype == theirs.dtype, what
    by = difference(ours, theirs)
    assert by <= TOLERANCE[theirs.dtype], f"{what} differs by {by:.2g} of its largest value"


def same_writing(pair: Pair) -> None:
    """Greedy generation: the same tokens, ours with and without its cache.

    In float64, where no two tokens are likely to be equally good up to rounding.
    """
    for padding in ("none", "left"):
        inputs = inputs_of(pair, LENGTH, padding)
        theirs = reference_writing(pair, inputs)
        assert theirs.shape[1] > 2
        for use_cache in (True,) if padding == "none" else (True, False):
            ours = written(
                pair.ours.model,
                inputs.ids,
                max_length=WRITTEN,
                keep=inputs.keep,
                greedy=True,
                use_cache=use_cache,
            )
            assert ours.tolist() == theirs.tolist(), f"{padding} padding, cache {use_cache}"


def reference_writing(pair: Pair, inputs: Inputs, **settings: Any) -> Tensor:
    """What the reference writes, told to begin, stop and fill up as our config says."""
    config = pair.ours.config
    ends = [end for end in (config.eos_id, *config.more_eos_ids) if end is not None]
    filler = next(i for i in (config.pad_id, config.eos_id, FIRST_OF_ALL) if i is not None)
    settings = {"eos_token_id": ends or None, "pad_token_id": filler} | settings
    if config.kind == "encoder-decoder":
        settings["decoder_start_token_id"] = config.bos_id
    pair.reference.generation_config = GenerationConfig(
        do_sample=False, max_new_tokens=WRITTEN, **settings
    )
    keep = torch.ones_like(inputs.ids) if inputs.keep is None else inputs.keep.long()
    with torch.no_grad(), AllInDouble():
        return pair.reference.generate(inputs.ids, attention_mask=keep)
