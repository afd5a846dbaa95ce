"""The shapes written in the signatures of `models` are compared with every call of the tests."""

from collections.abc import Callable

import pytest
import torch
from jaxtyping import TypeCheckError

from models.attention import attention_scores, attention_weights
from models.masking import padding_mask
from models.normalization import LayerNorm
from models.training import Batch
from tests.models.building import SMALL, shaken

NUMBERS = torch.zeros(2, 3, 4, 5)
WRONG: dict[str, Callable[[], object]] = {
    "an axis too few": lambda: attention_scores(NUMBERS[0], NUMBERS, 1.0),
    "two sizes of one name": lambda: attention_weights(NUMBERS, NUMBERS[..., :3].bool()),
    "another kind of number": lambda: padding_mask(torch.ones(2, 3)),
    "a method": lambda: LayerNorm(4)(torch.zeros(2, 4, dtype=torch.long)),
    "a model": lambda: shaken(SMALL)(torch.zeros(2, 3)),
    "a dataclass": lambda: Batch((torch.zeros(2, 3),), torch.zeros(2, 3, dtype=torch.long)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_shape_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeCheckError):
        call()
