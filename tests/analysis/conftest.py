"""A shaken model of every kind over one text, in double precision, for what must hold of all."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.text import word_tokenizer
from explorer.text.token import DECODER, SOURCE
from tests.analysis.kinds_of_model import KINDS_OF_MODEL, each_kind
from tests.tiny import WORDS, saved_and_opened

TEXT = "the black cat sleeps le chat"


def opened_of(folder: Path, name: str, dtype: torch.dtype = torch.float64) -> OpenModel:
    """A shaken model of this kind, which is put into this folder."""
    changes = KINDS_OF_MODEL[name]
    words = word_tokenizer(WORDS, SOURCE if "encoder-decoder" in changes.values() else DECODER)
    return saved_and_opened(folder, name, words, shaken_by=0.4, dtype=dtype, **changes)


def read(folder: Path, name: str) -> ForwardPass:
    """Its reading of the text."""
    return forward_pass.run_batch_uncached(opened_of(folder, name), (TEXT,))[0]


def inputs_of(found: ForwardPass) -> list[Tensor]:
    """What the model was given to read: ids, or source and target."""
    sides = [side for side in (found.source, found.target) if side]
    return [torch.tensor([[token.id for token in side]]) for side in sides]


@pytest.fixture(scope="session")
def shaken_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], OpenModel]:
    """A model of a kind, which no test may change."""
    return cache(partial(opened_of, tmp_path_factory.mktemp("kinds")))


@pytest.fixture(params=each_kind(KINDS_OF_MODEL))
def found(request: pytest.FixtureRequest, shaken_model: Callable[[str], OpenModel]) -> ForwardPass:
    """A reading that a test may change."""
    return forward_pass.run_batch_uncached(shaken_model(request.param), (TEXT,))[0]
