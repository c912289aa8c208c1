"""Coroutines that hardly ever wait, played without a task of their own.

This module is never compiled: a compiled function can't be a coroutine that yields.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from mqlab.sim.future import Future

T = TypeVar("T")


def play_at_once(coroutine: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """Play a coroutine in this slice: what it returns, or a coroutine of the rest when it has to wait for something.

    A job of a pool can return either: only what waits becomes a task, which keeps its thread.
    """
    try:
        trap = coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    return _rest_of(coroutine, trap)


async def _rest_of(coroutine: Coroutine[Any, Any, T], trap: Any) -> T:
    return await _go_on(coroutine, trap)


@types.coroutine
def _go_on(coroutine: Coroutine[Any, Any, T], trap: Any) -> Generator[Any, None, T]:
    """Wait for what the coroutine waits for, as often as it does."""
    try:
        while True:
            if type(trap) is not Future or not trap.done:
                yield trap
            try:
                trap = coroutine.send(None)
            except StopIteration as end:
                value: T = end.value
                return value
    finally:
        coroutine.close()
