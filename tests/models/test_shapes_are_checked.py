"""The shapes written in the signatures of `models` are compared with every call of the tests."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from models.attention import attention_scores, attention_weights
from models.masking import padding_mask
from models.normalization import LayerNorm
from models.training import Batch
from tests.models.building import SMALL, shaken

NUMBERS = torch.zeros(2, 3, 4, 5)


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(TypeCheckError):
        attention_scores(NUMBERS[0], NUMBERS, 1.0)


def test_dimensions_of_one_name_must_agree() -> None:
    with pytest.raises(TypeCheckError):
        attention_weights(NUMBERS, torch.ones(2, 3, 4, 6, dtype=torch.bool))


def test_a_wrong_kind_of_number_is_refused() -> None:
    with pytest.raises(TypeCheckError):
        padding_mask(torch.ones(2, 3))


def test_methods_and_dataclasses_are_checked_too() -> None:
    with pytest.raises(TypeCheckError):
        LayerNorm(4)(torch.zeros(2, 4, dtype=torch.long))
    with pytest.raises(TypeCheckError):
        shaken(SMALL)(torch.zeros(2, 3))
    with pytest.raises(TypeCheckError):
        Batch((torch.zeros(2, 3),), torch.zeros(2, 3, dtype=torch.long))
