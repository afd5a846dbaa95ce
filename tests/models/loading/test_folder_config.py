"""What a config says it is: no word of any family raises more than a sentence."""

import re
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from models.families import FAMILIES
from models.families.family import SUGGESTION
from models.families.gguf_architectures import ARCHITECTURES
from models.families.published import Published
from models.loading.folder_config import read_folder_config
from models.loading.safe_files import CheckpointError
from tests.models.loading.mutations import VALUES
from tests.models.loading.opening import check_sentence

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

WRONG: tuple[Any, ...] = (
    *(*VALUES, 5e-324, {"rope_type": "yarn"}, {"type": "llama3", "factor": 1e-300}),
    {"rope_type": "longrope", "short_factor": [1], "long_factor": "1"},
)


class Asked(UserDict[str, Any]):
    """Values that remember which words were looked up, by `get` too."""

    words: set[str]

    def __getitem__(self, word: str) -> Any:
        self.words.add(word)
        return super().__getitem__(word)

    def __contains__(self, word: object) -> bool:
        self.words.add(str(word))
        return super().__contains__(word)


def words_of(model_type: str) -> list[str]:
    """What a family looks up in a config that says nothing."""
    words = {"architectures", "quantization_config"}

    def remember(read: Published, values: Mapping[str, Any]) -> None:
        read.values = asked = Asked(values)
        asked.words = words

    with patch.object(Published, "__init__", remember):
        FAMILIES[model_type].config(Published({}))
    return sorted(words)


def fault_of(folder: Path) -> str | None:
    """What comes in place of a model or a fit sentence."""
    try:
        try:
            read_folder_config(folder)
        except CheckpointError as error:
            check_sentence(str(error), folder)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is no sentence)
        return f"{error!r:.200}"
    return None


def test_any_value_of_any_word_of_any_family_ends_in_a_model_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Each word alone, with some of the values unless thorough, and all words alike.

    The file itself is left out to be quick.
    """
    said: dict[str, Any] = {}
    monkeypatch.setattr("models.loading.folder_config.read_json", lambda *_: dict(said))
    step = 1 if request.config.getoption("--thorough") else 6
    offenders = []
    for number, family in enumerate(FAMILIES):
        words = words_of(family)
        assert len(words) > 12
        told = [(words, wrong) for wrong in WRONG]
        for place, word in enumerate(words, number):
            told += [([word], wrong) for wrong in WRONG[place % step :: step]]
        for some, wrong in told:
            said = dict.fromkeys(some, wrong) | {"model_type": family}
            if fault := fault_of(tmp_path):
                offenders.append(f"{family}, {some}: {wrong!r:.60}: {fault}")
    assert offenders == []


def test_the_families_of_the_way_out_open() -> None:
    named = set(re.findall(r"[a-z]+\d?", SUGGESTION.partition("such as ")[2])) - {"or"}
    assert len(named) == 4
    assert named <= FAMILIES.keys() & ARCHITECTURES.keys()
