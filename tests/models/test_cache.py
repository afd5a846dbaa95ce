"""What was read is remembered, and nothing else."""

import pytest
import torch

from explorer.inference.continuation import shorten
from models.cache import KeyValueCache
from models.config import POSITIONS, TransformerConfig
from models.interventions import Edit, ReplaceAt
from models.tap import NO_TAP
from models.trace import RecordingTap
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.tiny import config_of, inputs_of, keep_of_lengths, shaken


@grid(
    "kind, positions, pieces, padded",
    *(("decoder", "encoder-decoder"), POSITIONS),
    *([(1, 1, 1, 1, 1, 1), (4, 2), (1, 5)], [False, True]),
)
def test_reading_pieces(kind: str, positions: str, pieces: tuple[int, ...], padded: bool) -> None:
    config = config_of(kind, positions=positions, n_kv_heads=1, max_len=7)
    model, (*source, target) = shaken(config), inputs_of(config, length=7 - (kind == "decoder"))
    keep = keep_of_lengths([6, 3, 1] if padded else [6, 6, 6], 6, "left")
    memory = model.encode(source[0]) if source else None
    memory_keep = keep_of_lengths([7, 4, 2], 7) if source else None
    at_once = model.decode(target, memory, memory_keep, keep)
    cache, read, logits = KeyValueCache.empty(config.n_layers), 0, []
    for size in pieces:
        assert cache[0]["self_attn"].length == read
        piece = target[:, read : read + size]
        read += size
        logits.append(model.decode(piece, memory, memory_keep, keep[:, :read], cache))
    assert_close_to(torch.cat(logits, 1)[keep], at_once[keep])


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_what_a_trace_holds_stays_when_the_cache_goes_back(kind: str) -> None:
    """Keys and values are recorded as they were, whatever is read in their place afterwards."""
    config = config_of(kind, positions="rotary")
    model, (*source, target) = shaken(config), inputs_of(config)
    memory = model.encode(source[0]) if source else None
    cache, tap = KeyValueCache.empty(config.n_layers), RecordingTap()
    model.decode(target[:, :2], memory, cache=cache)
    model.decode(target[:, 2:4], memory, cache=cache, tap=tap)
    before = {site: value.clone() for site, value in tap.values.items()}
    assert {"decoder.0.self_attn.k", "decoder.1.self_attn.v"} <= before.keys()
    shorten(cache, 2)
    model.decode(target[:, :2], memory, cache=cache)
    for site, value in before.items():
        assert torch.equal(tap.values[site], value), site


WAYS = ("q_input", "k_input", "v_input")
"""In which a head can have an input of its own."""
INPUTS_OF = {
    "grouped": config_of("decoder", n_kv_heads=1, positions="rotary"),
    "scaled rows": config_of("decoder", sink_logit=True, gated_attention=True),
    "two groups": config_of("decoder", n_heads=4, n_kv_heads=2, qk_norm=True, positions="alibi"),
    "a group for each": config_of("decoder", positions="learned"),
    "parallel": config_of("decoder", n_kv_heads=1, parallel=True, windows=(0, 3)),
}


@pytest.mark.usefixtures("shapes_unchecked")
@grid("way, edited, config", WAYS, [(0, 1, 2), (1,), (2,)], INPUTS_OF.values())
def test_head_inputs_are_kept(config: TransformerConfig, way: str, edited: tuple[int, ...]) -> None:
    """Two heads read inputs of their own, in some of three pieces of two tokens.

    The keys that they share with other heads in an earlier piece are copied.
    """
    model, (ids,) = shaken(config), inputs_of(config)
    vector = torch.linspace(-1, 1, config.d_model, dtype=torch.float64)

    def edits(begin: int) -> list[Edit]:
        site = f"decoder.0.self_attn.{way}"
        return [ReplaceAt(site, begin, vector, 1), ReplaceAt(site, begin + 1, -vector, 0)]

    every = [edit for piece in edited for edit in edits(2 * piece)]
    at_once = model.decode(ids, tap=RecordingTap((), every))
    last = 2 * edited[0] + 1
    assert not torch.allclose(at_once[:, last:], model.decode(ids)[:, last:])
    cache, logits = KeyValueCache.empty(config.n_layers), []
    for number, piece in enumerate(ids.split(2, 1)):
        tap = RecordingTap((), edits(0)) if number in edited else NO_TAP
        logits.append(model.decode(piece, cache=cache, tap=tap))
    assert_close_to(torch.cat(logits, 1), at_once)
