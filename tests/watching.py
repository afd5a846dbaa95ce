"""A call that goes on as it is, and somebody who is told of it."""

from collections.abc import Callable
from typing import Any


def watched(call: Callable[..., Any], told: Callable[..., None]) -> Callable[..., Any]:
    """The same call, which tells its inputs before it is made."""

    def made(*inputs: Any, **how: Any) -> Any:
        told(*inputs, **how)
        return call(*inputs, **how)

    return made
