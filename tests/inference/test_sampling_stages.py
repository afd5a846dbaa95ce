"""Every stage of a choice is what the model writes with, and what is cut adds up."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.inference.sampling_stages import sample_token, sampling_stages
from models.sampling import Sampling, choose_from
from tests.closeness import assert_close_to

samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.none() | st.floats(0.05, 1.0),
)


@given(values=st.lists(st.floats(-20, 20), min_size=2, max_size=12), sampling=samplings)
def test_the_last_stage_is_what_the_model_draws_from(
    values: list[float], sampling: Sampling
) -> None:
    found = sampling_stages(torch.tensor(values), sampling)
    assert torch.equal(found.final, choose_from(torch.tensor(values)[None], sampling)[0])
    for stage in (found.plain, found.tempered, found.final):
        assert float(stage.sum()) == pytest.approx(1.0, abs=1e-5)
    together = float(found.top_p.sum()) + found.cut_by_k + found.cut_by_p
    assert together == pytest.approx(1.0, abs=1e-5)
    assert torch.all(found.top_p <= found.top_k)
    assert torch.all(found.top_k <= found.tempered)
    assert found.left == int((found.top_p > 0).sum())


def test_top_k_and_top_p_cut_what_they_say() -> None:
    chances = torch.tensor([0.5, 0.3, 0.15, 0.05])
    found = sampling_stages(chances.log(), Sampling(top_k=3, top_p=0.8))
    assert (found.top_k > 0).tolist() == [True, True, True, False]
    assert (found.top_p > 0).tolist() == [True, True, False, False]
    assert found.cut_by_k == pytest.approx(0.05, abs=1e-6)
    assert found.cut_by_p == pytest.approx(0.15, abs=1e-6)
    assert_close_to(found.final, torch.tensor([0.625, 0.375, 0.0, 0.0]))
    forbidden = sampling_stages(torch.tensor([1.0, -math.inf, 0.0]), Sampling(temperature=4.0))
    assert forbidden.final[1] == 0


def test_a_seed_draws_the_same_token_again_and_seeds_follow_the_chances() -> None:
    sampling = Sampling()
    found = sampling_stages(torch.tensor([0.7, 0.3]).log(), sampling)
    assert sample_token(found, sampling, 3) == sample_token(found, sampling, 3)
    share = sum(sample_token(found, sampling, seed) for seed in range(400)) / 400
    assert share == pytest.approx(0.3, abs=0.08)
    assert sample_token(found, Sampling(temperature=0.0), 3) == 0
