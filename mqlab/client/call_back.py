"""Calling an application's callback: once, plain or `async`, and whatever it raises the client goes on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from mqlab.errors import SimulationError


class OutcomeCallback:
    """Hears how an asynchronous request ended: one of the two methods is called."""

    def on_success(self, result: Any) -> object:
        """It has a result."""

    def on_exception(self, error: Exception) -> object:
        """The call has failed for this reason."""


def call_back(
    callback: OutcomeCallback | Callable[[Any, Exception | None], object],
    result: object | None,
    error: Exception | None,
    report: Callable[[Exception], None],
) -> Coroutine[Any, Any, None] | None:
    """Tell an application's callback of an error, or without one of the result.

    `report` gets what the callback raises. The answer is a coroutine when the callback is one, else None.
    """
    try:
        answer = _tell(callback, result, error)
    except SimulationError:
        raise
    except Exception as mistake:  # noqa: BLE001  # RocketMQ swallows it as well; here at least an event tells
        report(mistake)
        return None
    return _finish(answer, report) if isinstance(answer, Coroutine) else None


def _tell(
    callback: OutcomeCallback | Callable[[Any, Exception | None], object],
    result: object | None,
    error: Exception | None,
) -> object:
    if not isinstance(callback, OutcomeCallback):
        return callback(result, error)
    return callback.on_success(result) if error is None else callback.on_exception(error)


async def _finish(answer: Coroutine[Any, Any, object], report: Callable[[Exception], None]) -> None:
    try:
        await answer
    except SimulationError:
        raise
    except Exception as mistake:  # noqa: BLE001  # as above
        report(mistake)
