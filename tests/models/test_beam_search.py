"""Beam search finds what an exhaustive search finds, and with one beam what is likeliest."""

import itertools
from typing import Any

import pytest
import torch

from models import Transformer, TransformerConfig
from models.beam_search import beam_search, beam_steps
from models.config import GenerationConfig
from tests.grids import grid
from tests.tiny import shake

END, LENGTH = 1, 3
SIZES: dict[str, Any] = {
    "n_layers": 1,
    "vocab_size": 5,
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 24,
    "max_len": 12,
    "bos_id": 0,
    "generation": GenerationConfig(eos_ids=(END,)),
}
PROMPT = torch.tensor([[2, 3, 4]])


def model(kind: str, seed: int = 0, **more: Any) -> Transformer:
    made = Transformer(TransformerConfig(kind=kind, **SIZES | more), seed=seed)
    return shake(made.double(), by=0.6).eval()


def everything(made: Transformer, alpha: float) -> dict[tuple[int, ...], float]:
    """The score of every text that ends, or has all its tokens."""
    texts = torch.tensor(list(itertools.product(range(SIZES["vocab_size"]), repeat=LENGTH)))
    prompts = PROMPT.expand(len(texts), -1)
    with torch.no_grad():
        if made.config.kind == "decoder":
            logits = made(torch.cat((prompts, texts[:, :-1]), 1))[:, PROMPT.shape[1] - 1 :]
        else:
            logits = made(prompts, torch.cat((torch.zeros_like(texts[:, :1]), texts[:, :-1]), 1))
    chances = logits.log_softmax(-1).gather(-1, texts[..., None])[..., 0]
    found: dict[tuple[int, ...], float] = {}
    for tokens, chance in zip(texts.tolist(), chances, strict=True):
        stop = tokens.index(END) + 1 if END in tokens else LENGTH
        found[tuple(tokens[:stop])] = float(chance[:stop].sum()) / ((5 + stop) / 6) ** alpha
    return found


@pytest.mark.usefixtures("shapes_unchecked")
@grid("kind, alpha, seed", ("decoder", "encoder-decoder"), (0.0, 0.6), range(3))
def test_enough_beams_find_the_best_of_all(kind: str, alpha: float, seed: int) -> None:
    made = model(kind, seed)
    found = beam_search(made, PROMPT, beams=125, max_length=LENGTH, alpha=alpha)
    scores = everything(made, alpha)
    assert tuple(found.path(found.ends[0])) == max(scores, key=lambda path: scores[path])
    for place in found.ends[:10]:
        assert found.nodes[place].score == pytest.approx(scores[tuple(found.path(place))], abs=1e-6)


@pytest.mark.usefixtures("shapes_unchecked")
@grid("kind, beams, max_length", ("decoder", "encoder-decoder"), (1, 2), (4, 50))
def test_the_end_competes_with_as_many_ended_texts(kind: str, beams: int, max_length: int) -> None:
    """The best of all that ended and all that stand, whether the length or the positions end."""
    won_open = 0
    for seed in range(12, 16):
        room = {"max_len": PROMPT.shape[1] + 3 if kind == "decoder" else 4}
        found = beam_search(model(kind, seed, **room), PROMPT, beams=beams, max_length=max_length)
        last = max(node.step for node in found.nodes)
        ended = [node for node in found.nodes if node.ended]
        stand = [node for node in found.nodes if node.kept and node.step == last]
        best = max((*ended, *stand), key=lambda node: node.score)
        assert found.nodes[found.ends[0]] == best
        won_open += len(ended) >= beams and best in stand
    assert won_open, "no example in which what stands beats as many ended texts as beams"


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_tree_is_told_whole_and_every_beam_has_something_to_go_on_with() -> None:
    """However many tokens end a text."""
    for beams, more in ((3, ()), (2, (2, 3))):
        for seed in range(4):
            made = model("decoder", seed, generation=GenerationConfig(eos_ids=(END, *more)))
            found = beam_search(made, PROMPT, beams=beams, max_length=4)
            for place, node in enumerate(found.nodes):
                assert node.parent < place
                assert node.parent < 0 or found.nodes[node.parent].kept
                assert not (node.kept and node.ended)
            for step in range(1, max(node.step for node in found.nodes) + 1):
                assert sum(node.kept for node in found.nodes if node.step == step) == beams
            scores = [found.nodes[place].score for place in found.ends]
            assert scores == sorted(scores, reverse=True)


def test_what_cannot_be_searched_is_refused() -> None:
    for how in ({"beams": 0}, {"max_length": 0}):
        with pytest.raises(ValueError, match="beams and max_length must be at least 1"):
            beam_search(model("decoder"), PROMPT, **how)
    with pytest.raises(ValueError, match="can write"):
        beam_search(model("encoder"), PROMPT)
    decoder = model("decoder")
    too_long = PROMPT[:, :1].expand(1, decoder.config.max_len + 1)
    with pytest.raises(ValueError, match=r"A prompt has 1 to \d+ tokens, not"):
        beam_steps(decoder, too_long)
    with pytest.raises(ValueError, match="Beam search continues one prompt, not 2"):
        beam_steps(decoder, PROMPT.expand(2, -1))
