"""Beam search finds what an exhaustive search finds, and with one beam what is likeliest."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from models import Transformer, TransformerConfig
from models.beam_search import Beams, beam_search, beam_steps, length_penalty
from models.generation import written
from tests.grids import grid
from tests.models.building import shake
from tests.watching import watched

END, LENGTH = 1, 3
SIZES: dict[str, Any] = {
    "vocab_size": 5,
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 24,
    "max_len": 12,
    "bos_id": 0,
    "eos_id": END,
}
PROMPT = torch.tensor([[2, 3, 4]])


def model(kind: str, seed: int = 0, **more: Any) -> Transformer:
    made = Transformer(TransformerConfig(kind=kind, n_layers=1, **SIZES | more), seed=seed)
    return shake(made.double(), by=0.6).eval()


def everything(made: Transformer, alpha: float) -> dict[tuple[int, ...], float]:
    """The score of every text that ends, or has all its tokens."""
    found: dict[tuple[int, ...], float] = {}
    start = torch.zeros(1, 1, dtype=torch.long)
    for tokens in itertools.product(range(SIZES["vocab_size"]), repeat=LENGTH):
        stop = tokens.index(END) + 1 if END in tokens else LENGTH
        path = tokens[:stop]
        if path in found:
            continue
        ids = torch.tensor([path[:-1]], dtype=torch.long)
        with torch.no_grad():
            if made.config.kind == "decoder":
                logits = made(torch.cat((PROMPT, ids), 1))[0, PROMPT.shape[1] - 1 :]
            else:
                logits = made(PROMPT, torch.cat((start, ids), 1))[0]
        chances = logits.log_softmax(-1)[range(len(path)), list(path)]
        found[path] = float(chances.sum()) / length_penalty(len(path), alpha)
    return found


@grid("kind, alpha, seed", ["decoder", "encoder-decoder"], [0.0, 0.6], range(3))
def test_enough_beams_find_the_best_of_all(kind: str, alpha: float, seed: int) -> None:
    made = model(kind, seed)
    found = beam_search(made, PROMPT, beams=125, max_length=LENGTH, alpha=alpha)
    scores = everything(made, alpha)
    best = max(scores, key=lambda path: scores[path])
    assert tuple(found.path(found.ends[0])) == best
    for place in found.ends[:10]:
        assert found.nodes[place].score == pytest.approx(scores[tuple(found.path(place))], abs=1e-6)


@grid(
    "kind, beams, how",
    ["decoder", "encoder-decoder"],
    [1, 2],
    [{"max_length": 4}, {"max_length": 50}],
)
def test_what_stands_at_the_end_competes_with_as_many_ended_texts(
    kind: str, beams: int, how: dict[str, int]
) -> None:
    """The best of all that ended and all that stand, whether the length or the positions end."""
    won_open = 0
    for seed in range(12, 16):
        room = {"max_len": PROMPT.shape[1] + 3 if kind == "decoder" else 4}
        found = beam_search(model(kind, seed, **room), PROMPT, beams=beams, alpha=0.6, **how)
        last = max(node.step for node in found.nodes)
        ended = [node for node in found.nodes if node.ended]
        stand = [node for node in found.nodes if node.kept and node.step == last]
        best = max((*ended, *stand), key=lambda node: node.score)
        assert found.nodes[found.ends[0]] == best
        assert found.path(found.ends[0])[-1] == best.token
        won_open += len(ended) >= beams and best in stand
    assert won_open, "no example in which what stands beats as many ended texts as beams"


def test_several_tokens_that_end_a_text_leave_every_beam_something_to_go_on_with() -> None:
    beams = 2
    for seed in range(8):
        found = beam_search(
            model("decoder", seed, more_eos_ids=(2, 3)), PROMPT, beams=beams, max_length=4
        )
        for step in range(1, max(node.step for node in found.nodes) + 1):
            assert sum(node.kept for node in found.nodes if node.step == step) == beams


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_one_beam_takes_the_likeliest(kind: str) -> None:
    made = model(kind)
    ids = written(made, PROMPT, max_length=6, greedy=True)[0].tolist()
    found = beam_search(made, PROMPT, beams=1, max_length=6, alpha=0.0)
    begun = PROMPT.shape[1] if kind == "decoder" else 1
    going: list[int] = [node.token for node in found.nodes if node.kept]
    expected = ids[begun:]
    expected = expected[: expected.index(END)] if END in expected else expected
    assert going[: len(expected)] == expected


def test_a_tree_is_told_whole() -> None:
    found: Beams = beam_search(model("decoder"), PROMPT, beams=3, max_length=4)
    for place, node in enumerate(found.nodes):
        assert node.parent < place
        assert node.parent < 0 or found.nodes[node.parent].kept
        assert not (node.kept and node.ended)
    for step in range(4):
        assert sum(node.kept for node in found.nodes if node.step == step) <= 3
    scores = [found.nodes[place].score for place in found.ends]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("how", "why"), [({"beams": 0}, "beams"), ({"max_length": 0}, "max_len")])
def test_what_means_nothing_is_refused(how: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        beam_search(model("decoder"), PROMPT, **how)


def test_what_cannot_write_is_refused() -> None:
    made = Transformer(TransformerConfig(kind="encoder", n_layers=1, **SIZES))
    with pytest.raises(ValueError, match="can write"):
        beam_search(made, PROMPT)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_every_token_is_read_once_and_the_search_stops_when_asked(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, read, encoded = model(kind), list[int](), list[int]()
    decode = watched(made.decode, lambda ids, *_: read.append(ids.numel()))
    monkeypatch.setattr(made, "decode", decode)
    monkeypatch.setattr(made, "encode", watched(made.encode, lambda *_: encoded.append(1)))
    steps = beam_steps(made, PROMPT, beams=3, max_length=6)
    first = next(steps)
    begun = PROMPT.shape[1] if kind == "decoder" else 1
    assert read == [begun], "nothing is done before it is asked for"
    *_, last = steps
    assert last.nodes[: len(first.nodes)] == first.nodes
    taken = 1 + max(node.step for node in last.nodes)
    assert len(read) == taken > 2
    kept = [sum(n.kept for n in last.nodes if n.step == step) for step in range(taken - 1)]
    assert read[1:] == kept
    assert len(encoded) == (kind == "encoder-decoder")
