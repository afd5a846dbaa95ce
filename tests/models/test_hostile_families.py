"""No word in the config of any family raises more than a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from models.described import describe
from models.families import FAMILIES
from models.families.published import Published
from models.files import CheckpointError
from tests.models.hostile import CONFIG, UGLY
from tests.models.opening import check_sentence

WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    -1,
    3,
    7.5,
    -0.0,
    1e308,
    5e-324,
    10**6,
    10**12,
    -(10**90),
    "",
    "7",
    UGLY,
    [],
    [7],
    [[]],
    [None, UGLY],
    {},
    {"0": None},
    {UGLY: {UGLY: []}},
    {"rope_type": "yarn"},
    {"type": "llama3", "factor": 1e-300},
    {"rope_type": "longrope", "short_factor": [1], "long_factor": "1"},
    [0] * 3_000,
    {str(i): str(i) for i in range(3_000)},
)


class Asked(dict[str, Any]):
    """Values that remember which words were looked up."""

    def __init__(self, values: Mapping[str, Any], words: set[str]) -> None:
        super().__init__(values)
        self.words = words

    def __getitem__(self, word: str) -> Any:
        self.words.add(word)
        return super().__getitem__(word)

    def __contains__(self, word: object) -> bool:
        self.words.add(str(word))
        return super().__contains__(word)

    def get(self, word: str, default: Any = None) -> Any:
        self.words.add(word)
        return super().get(word, default)


def words_of(model_type: str) -> list[str]:
    """What a family looks up in a config that says nothing."""
    words = {"architectures", "quantization_config"}

    def remember(read: Published, values: Mapping[str, Any]) -> None:
        read.values = Asked(values, words)

    with patch.object(Published, "__init__", remember):
        FAMILIES[model_type].config(Published({}))
    return sorted(words)


def outcome(folder: Path, values: dict[str, Any]) -> None:
    (folder / CONFIG).write_text(json.dumps(values))
    try:
        describe(folder)
    except CheckpointError as error:
        check_sentence(str(error), folder)


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
def test_any_word_may_be_anything(
    model_type: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each word alone is a few wrong values, in a thorough run all of them; so are all words."""
    words = words_of(model_type)
    assert len(words) > 12
    every = 1 if request.config.getoption("--thorough") else 9
    for at, word in enumerate(words):
        for wrong in WRONG[at % every :: every]:
            outcome(tmp_path, {"model_type": model_type, word: wrong})
    for wrong in WRONG[len(words) % every :: every]:
        outcome(tmp_path, dict.fromkeys(words, wrong) | {"model_type": model_type})
