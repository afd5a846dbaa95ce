"""Calls made in another thread, and calls that somebody is told of."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """What it returns, run in another thread with the variables of this one.

    A process of browser tests runs a loop already, so a coroutine needs one of its own.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()


def watched(call: Callable[..., Any], told: Callable[..., None]) -> Callable[..., Any]:
    """The same call, which tells its inputs before it is made."""

    def made(*inputs: Any, **how: Any) -> Any:
        told(*inputs, **how)
        return call(*inputs, **how)

    return made
