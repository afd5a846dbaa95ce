"""One cell of a stage of the pass, and the equation that makes its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk


@dataclass(frozen=True)
class Made:
    """The right side of the equation, and what it gives."""

    latex: str
    total: float


@dataclass(frozen=True)
class Cell:
    """A row and a column of the stage's values."""

    walk: Walk
    stage: Stage
    row: int
    column: int

    def read(self, at: int = 0) -> Tensor:
        """The same row of a stage that this one reads."""
        return self.whole(at)[self.row].double()

    def whole(self, at: int = 0) -> Tensor:
        return self.walk[self.stage.reads[at]].detach()

    @property
    def module(self) -> Any:
        return self.walk.module(self.stage)
