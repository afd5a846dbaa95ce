"""How the tests check the types and shapes written in `models`."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import config

AS_TYPED = BeartypeConf(is_pep484_tower=True)
"""An int passes for a float, as it does for every static checker."""
JUDGED_BY_FAULT = ("TransformerConfig.__init__", "TrainConfig.__init__")
"""Settings may be made of anything: their `fault()` says in words what is wrong with them."""


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with every argument and result compared with its annotation.

    The check is made at the first call, since most functions are never called with checks. A
    function within another is made anew at every call of that one, which takes longer than a
    small pass: so where nothing is checked, it is left as it is.
    """
    name = function.__qualname__
    if name in JUDGED_BY_FAULT or ("<locals>" in name and config.jaxtyping_disable):
        return function

    @cache
    def checked() -> Callable[..., Any]:
        return beartype(conf=AS_TYPED)(function)

    @wraps(function)
    def check_and_call(*inputs: Any, **options: Any) -> Any:
        return checked()(*inputs, **options)

    return check_and_call
