"""How the tests check the types and shapes written in `models`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

AS_TYPED = BeartypeConf(is_pep484_tower=True)
"""An int passes for a float, as it does for every static checker."""
JUDGED_BY_FAULT = ("TransformerConfig.__init__", "TrainConfig.__init__")
"""Settings may be made of anything: their `fault()` says in words what is wrong with them."""


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with every argument and result compared with its annotation."""
    if function.__qualname__ in JUDGED_BY_FAULT:
        return function
    return beartype(conf=AS_TYPED)(function)
