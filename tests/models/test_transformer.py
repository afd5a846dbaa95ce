"""The model as a whole: its parts, and fresh weights that follow from the seed alone."""

from contextlib import suppress

import pytest
import torch

from models.attention import MultiHeadAttention
from models.config import KINDS, POSITIONS, TransformerConfig
from models.model import Transformer
from models.output_heads import first_kept, last_kept, mean_of_kept
from models.transformer import evaluating
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.models.grid import ODDITIES
from tests.tiny import SMALL, config_of, ids_of, inputs_of, keep_of_lengths, shaken

X = torch.randn(3, 5, 12, generator=torch.Generator().manual_seed(1))


@grid("kind, positions", KINDS, POSITIONS)
def test_padding_changes_nothing(kind: str, positions: str) -> None:
    model = shaken(config_of(kind, positions=positions))
    inputs = inputs_of(model.config, batch=2)
    bare, pad = model(*inputs), torch.zeros(2, 3, dtype=torch.long)
    names = ["source_keep", "target_keep"] if kind == "encoder-decoder" else ["keep"]
    for side, real in (("left", slice(3, None)), ("right", slice(-3))):
        padded = [torch.cat((pad, ids) if side == "left" else (ids, pad), 1) for ids in inputs]
        keeps = [keep_of_lengths([ids.shape[1]] * 2, ids.shape[1] + 3, side) for ids in inputs]
        for answer in (model(*padded), model(*padded, **dict(zip(names, keeps, strict=True)))):
            assert_close_to(answer[:, real], bare)


def test_a_wrong_call_is_told_in_a_sentence() -> None:
    decoder, ids = shaken(SMALL), ids_of(2, 6)
    both = shaken(config_of("encoder-decoder"))
    for call, words in (
        (lambda: decoder(ids, ids), "kind decoder reads one sequence"),
        (lambda: both(ids), "reads two sequences: source and"),
        (lambda: decoder.encode(ids), "nothing that encodes"),
        (lambda: shaken(config_of("encoder")).decode(ids), "nothing that decodes"),
        (lambda: Transformer(SMALL, d_model=12), "not both"),
        (lambda: Transformer(colour="red"), "colour"),
        (lambda: decoder(ids_of(2, 17)), "17 tokens are too many for 16 positions: shorten"),
        (lambda: both(ids_of(1, 17), ids[:1]), "17 tokens are too"),
        (lambda: shaken(SMALL.replace(positions="learned"))(ids_of(2, 17)), "17 tokens are too"),
        (lambda: decoder(ids, segments=ids), "This model has no segments"),
        (lambda: shaken(config_of("encoder"))(ids, segments=ids), "This model has no segments"),
        (lambda: MultiHeadAttention(10, 3), "d_model 10 is not divisible by n_heads 3"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            call()


def test_evaluating_leaves_a_model_as_it_was() -> None:
    model, ids = Transformer(SMALL.replace(dropout=0.5)), ids_of(2, 6)
    assert not torch.equal(model(ids), model(ids))
    with suppress(ZeroDivisionError), evaluating(model):
        assert torch.equal(model(ids), model(ids))
        assert not torch.is_grad_enabled()
        raise ZeroDivisionError
    assert model.training
    assert torch.is_grad_enabled()
    model.eval()
    with evaluating(model):
        pass
    assert not model.training


def test_pooling_sees_real_tokens_only() -> None:
    lengths = [5, 2, 1]
    for side in ("left", "right"):
        keep = keep_of_lengths(lengths, 5, side)
        first, mean, last = first_kept(X, keep), mean_of_kept(X, keep), last_kept(X, keep)
        for row, length in enumerate(lengths):
            real = X[row, :length] if side == "right" else X[row, 5 - length :]
            assert_close_to(first[row], real[0])
            assert_close_to(mean[row], real.mean(0))
            assert_close_to(last[row], real[-1])
    everything, nothing = torch.ones(3, 5, dtype=torch.bool), torch.zeros(3, 5, dtype=torch.bool)
    for pooling in (first_kept, mean_of_kept, last_kept):
        assert_close_to(pooling(X, None), pooling(X, everything))
        assert pooling(X, nothing).isfinite().all()
    assert (mean_of_kept(X, nothing) == 0).all(), "a text of padding has a mean of zeros"


def differing(one: Transformer, other: Transformer) -> set[str]:
    pairs = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    return {name for (name, mine), theirs in pairs if not torch.equal(mine, theirs)}


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_seed_decides_and_the_random_state_is_left_alone() -> None:
    for name, config in ODDITIES.items():
        before = torch.get_rng_state()
        one = Transformer(config, seed=5)
        assert torch.equal(before, torch.get_rng_state()), name
        torch.rand(3)
        assert not differing(one, Transformer(config, seed=5)), name
        named = one.named_parameters(remove_duplicate=False)
        matrices = {each for each, parameter in named if parameter.dim() > 1}
        assert differing(one, Transformer(config, seed=6)) == matrices, name


def test_nothing_is_left_as_memory_held_it() -> None:
    """With deterministic algorithms torch fills new memory with NaN."""
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3).isnan().all()
        for config in ODDITIES.values():
            model = Transformer(config)
            for name, value in [*model.named_parameters(), *model.named_buffers()]:
                assert value.isfinite().all(), name
    finally:
        torch.use_deterministic_algorithms(False)


def test_sizes_of_fresh_weights() -> None:
    config = TransformerConfig(d_model=256, n_layers=8, n_heads=4, d_ff=512, vocab_size=300)
    spread = 0.8 / 256**0.5
    for name, parameter in Transformer(config).named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            writes = name.endswith(("o_proj.weight", "down_proj.weight"))
            expected = spread / 4 if writes else spread  # √(2 · 8 layers) = 4
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name
