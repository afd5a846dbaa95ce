"""The whole model: what it takes, what it gives, and what padding must not change."""

from __future__ import annotations

import pytest
import torch

from models import Transformer
from models.config import KINDS, POSITIONS
from models.transformer import evaluating
from tests.grids import grid
from tests.models.building import SMALL, config_of, ids_of, inputs_of, keep_of_lengths, shaken
from tests.models.grid import KINDS_AND_POSITIONS

close = torch.testing.assert_close
PAD = torch.zeros(2, 3, dtype=torch.long)


def test_shapes_of_the_answers() -> None:
    for config, shape in (
        (config_of("decoder"), (3, 6, 13)),
        (config_of("encoder"), (3, 6, 13)),
        (config_of("encoder", head="classifier", n_classes=4), (3, 4)),
        (config_of("encoder", head="none"), (3, 6, 12)),
        (config_of("encoder-decoder"), (3, 5, 13)),
    ):
        assert shaken(config)(*inputs_of(config)).shape == shape


def test_stacks() -> None:
    assert Transformer(config_of("decoder")).encoder is None
    assert Transformer(config_of("encoder")).decoder is None
    both = Transformer(config_of("encoder-decoder"))
    assert both.encoder is not None
    assert both.decoder is not None
    assert (len(both.encoder.blocks), len(both.decoder.blocks)) == (1, 2)
    assert both.last_stack is both.decoder
    assert not hasattr(both.encoder.blocks[0], "cross_attn")


@grid("kind, positions, side", KINDS, POSITIONS, ["left", "right"])
def test_padding_changes_nothing(kind: str, positions: str, side: str) -> None:
    model = shaken(config_of(kind, positions=positions))

    def padded(ids: torch.Tensor) -> torch.Tensor:
        return torch.cat((PAD, ids) if side == "left" else (ids, PAD), 1)

    inputs = inputs_of(model.config, batch=2)
    answer, bare = model(*map(padded, inputs)), model(*inputs)
    answer = answer[:, 3:] if side == "left" else answer[:, :-3]
    close(answer, bare, rtol=0, atol=1e-10)
    keeps = [keep_of_lengths([ids.shape[1]] * 2, ids.shape[1] + 3, side) for ids in inputs]
    names = ["source_keep", "target_keep"] if kind == "encoder-decoder" else ["keep"]
    told = model(*map(padded, inputs), **dict(zip(names, keeps, strict=True)))
    close(told[:, 3:] if side == "left" else told[:, :-3], bare, rtol=0, atol=1e-10)


@KINDS_AND_POSITIONS
def test_a_decoder_sees_no_future_and_an_encoder_does(kind: str, positions: str) -> None:
    model = shaken(config_of(kind, positions=positions))
    *source, ids = inputs_of(model.config, batch=2)
    changed = ids.clone()
    changed[:, -1] = 3 + (changed[:, -1] - 2) % 10
    before, after = model(*source, ids)[:, :-1], model(*source, changed)[:, :-1]
    if kind == "encoder":
        assert not torch.allclose(before, after)
    else:
        close(before, after)


def test_without_positions_an_encoder_sees_a_set() -> None:
    ids, order = ids_of(2, 6), torch.tensor([3, 1, 5, 0, 2, 4])
    blind = shaken(config_of("encoder", positions="none"))
    close(blind(ids)[:, order], blind(ids[:, order]))
    for positions in ("sinusoidal", "learned", "rotary", "alibi"):
        model = shaken(config_of("encoder", positions=positions))
        assert not torch.allclose(model(ids)[:, order], model(ids[:, order]))


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_relative_positions_do_not_count_from_the_start(positions: str) -> None:
    """An encoder that never sees absolute positions answers a shifted text alike."""
    model = shaken(config_of("encoder", positions=positions))
    stack = model.last_stack
    ids = ids_of(2, 6)
    before = stack(ids)
    later = torch.zeros(2, 11, dtype=torch.bool)
    later[:, 5:] = True
    padded = torch.cat((torch.zeros(2, 5, dtype=torch.long), ids), 1)
    close(stack(padded, later)[:, 5:], before)


def test_the_embedding_is_scaled_where_the_config_says_so() -> None:
    from models.trace import trace

    for scale, factor in ((True, 12**0.5), (False, 1.0)):
        model = shaken(SMALL.replace(scale_embedding=scale))
        ids = ids_of(2, 6)
        embedded = model.last_stack.embedding(ids) * factor
        close(trace(model, ids)["decoder.embed"], embedded.detach())


def test_a_wrong_call_is_told_in_a_sentence() -> None:
    decoder, ids = shaken(SMALL), ids_of(2, 6)
    encoder, both = shaken(config_of("encoder")), shaken(config_of("encoder-decoder"))
    with pytest.raises(ValueError, match="kind decoder reads one sequence"):
        decoder(ids, ids)
    with pytest.raises(ValueError, match="reads two sequences: source and target"):
        both(ids)
    with pytest.raises(ValueError, match="nothing that encodes"):
        decoder.encode(ids)
    with pytest.raises(ValueError, match="nothing that decodes"):
        encoder.decode(ids)
    with pytest.raises(TypeError, match="not both"):
        Transformer(SMALL, d_model=12)
    with pytest.raises(TypeError):
        Transformer(colour="red")
    with pytest.raises(ValueError, match="d_model 10 is not divisible by n_heads 8"):
        Transformer(d_model=10)


def test_evaluating_leaves_a_model_as_it_was() -> None:
    model = Transformer(SMALL.replace(dropout=0.5))

    def stumble() -> None:
        with evaluating(model):
            assert not model.training
            assert not torch.is_grad_enabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stumble()
    assert model.training
    assert torch.is_grad_enabled()
    model.eval()
    with evaluating(model):
        pass
    assert not model.training


def test_dropout_acts_in_training_alone() -> None:
    model, ids = Transformer(SMALL.replace(dropout=0.5)), ids_of(2, 6)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_n_parameters_counts_a_shared_one_once() -> None:
    model = Transformer(SMALL.replace(tie_embeddings=True))
    assert model.n_parameters == sum(value.numel() for value in model.state_dict().values())
