"""Every key of every family's config with other values: as the reference reads it, or refused."""

from pathlib import Path

import pytest

from tests.parity.cases import CASES
from tests.parity.config_fuzz import (
    EQUAL,
    TURNED,
    Change,
    Fuzz,
    Values,
    changes_of,
    every_key_absent,
    strays_of,
)
from tests.parity.families import Case

STRAYS = strays_of(list(CASES.values()))
FUZZED = {case.name: case for case in (*CASES.values(), *TURNED)}
FIRST = {case.config.model_type: case for case in reversed(CASES.values())}
"""One case of each family."""
STEP = 89
"""Between the changes that the quick run tries."""

READ: list[tuple[str, Values]] = [
    ("gpt2", {"num_hidden_layers": 2}),
    ("gptj", {"num_attention_heads": 2}),
    ("gpt_bigcode", {"num_hidden_layers": 2}),
    ("gpt_neo", {"num_attention_heads": 2}),
    ("bloom", {"num_attention_heads": 2}),
    ("phi", {"head_dim": 8}),
    ("biogpt", {"do_layer_norm_before": False}),
    ("biogpt", {"enable_bias": False}),
    ("gpt2, classes", {"num_labels": 3}),
]
"""Settings under another name or of another family, which a reader might take otherwise."""


@pytest.mark.thorough
@pytest.mark.parametrize("case", FUZZED.values(), ids=str)
def test_no_value_is_read_otherwise(case: Case, tmp_path: Path) -> None:
    fuzz = Fuzz(case, tmp_path)
    report = fuzz.run(changes_of(case, fuzz.config, STRAYS))
    print(f"{case.name}: {report}")
    assert report.every_fault() == []


def test_no_value_of_a_few_is_read_otherwise(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One change of each family, and every key absent that keeps the sizes of the weights."""
    for number, case in enumerate(FIRST.values()):
        fuzz = Fuzz(case, tmp_path / str(number))
        changes = changes_of(case, fuzz.config, STRAYS)
        absent = every_key_absent(case, fuzz.config)
        report = fuzz.run([changes[number * STEP % len(changes)], *absent])
        with subtests.test(case.name):
            assert report.every_fault() == []


def test_settings_of_other_names_are_read_alike(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, (name, values) in enumerate(READ):
        report = Fuzz(CASES[name], tmp_path / str(number)).run([Change(values)])
        with subtests.test(name, values=values):
            assert report.every_fault() == []
            assert report.counts[EQUAL] == 1
