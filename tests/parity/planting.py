"""Mistakes that one could make in a family's table or in the core, planted to see them caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from models.checkpoint import load_checkpoint
from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import Names
from models.transformer import Transformer
from tests.parity.comparing import same_values
from tests.parity.families import Case, Pair, build_reference

Table = dict[str, Any]


@dataclass(frozen=True)
class Mistake:
    """Another value of the config, another table of names, or a change of the loaded model.

    `case` is the name of the model in which it is planted.
    """

    what: str
    case: str
    config: Callable[[TransformerConfig], TransformerConfig] = lambda config: config
    table: Callable[[Table], Table] = lambda table: table
    core: Callable[[Transformer], Any] = lambda model: None

    def __str__(self) -> str:
        return f"{self.case}: {self.what}"


def field(what: str, case: str, **values: Any) -> Mistake:
    """Another value of the config."""
    return Mistake(what, case, lambda config: config.replace(**values))


def names(what: str, case: str, one: str, other: str) -> Mistake:
    """Two of their names taken for each other."""
    return Mistake(what, case, table=lambda t: t | {one: t[other], other: t[one]})


def layout(what: str, case: str, name: str, make: Callable[[Any], Any]) -> Mistake:
    """One of their tensors read another way."""
    return Mistake(what, case, table=lambda table: table | {name: make(table[name])})


def core(what: str, case: str, change: Callable[[Transformer], Any]) -> Mistake:
    """Something else in the model, once it is loaded."""
    return Mistake(what, case, core=change)


def lost(what: str, case: str, parameter: str) -> Mistake:
    """A parameter that nobody read."""

    def lose(model: Transformer) -> None:
        with torch.no_grad():
            model.get_parameter(parameter).zero_()

    return Mistake(what, case, core=lose)


def plant(
    mistake: Mistake,
    case: Case,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    shaken: bool = True,
) -> Pair:
    """The reference and what becomes of its folder with the mistake."""
    family = FAMILIES[case.config.model_type]

    def wrong(config: TransformerConfig) -> Names:
        return mistake.table(dict(family.names(config)))

    mistaken = replace(family, config=lambda r: mistake.config(family.config(r)), names=wrong)
    monkeypatch.setitem(FAMILIES, case.config.model_type, mistaken)
    reference = build_reference(case, shaken)
    reference.save_pretrained(folder)
    pair = Pair(case, reference, load_checkpoint(folder))
    mistake.core(pair.ours.model)
    return pair


def differs(mistake: Mistake, case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AssertionError as the families' own tests would raise it: in float32, else in float64."""
    pair = plant(mistake, case, folder, monkeypatch)
    same_values(pair)
    if case.exact:
        same_values(pair.double())
