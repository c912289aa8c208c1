"""The errors of mqlab, split by who can mend them.

Everything mqlab raises on purpose is an `MqlabError`. Below it: `LearnerError` (your code or your input; it says what
to do), `ProtocolError` (a peer or a file sent nonsense), `SimulationError` (the world cannot go on), and RocketMQ's own
named exceptions. Errors carry fields, so that a program can read them without parsing text.
"""

from __future__ import annotations

import sys


class MqlabError(Exception):
    """The base of everything that mqlab raises on purpose."""


class LearnerError(MqlabError):
    """Something in your code or input is wrong; `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\n  What to do: {hint}" if hint else message)
        self.message = message
        self.hint = hint


_MADE = {"spark": "spark", "serve": "spark", "storage": "storage", "clients": "clients", "labs": "lab"}
"""Extras that a clone gets by `make`, with pinned versions."""


def _is_clone() -> bool:
    from pathlib import Path

    return (Path(__file__).parents[1] / "Makefile").exists()


class MissingExtraError(LearnerError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        if sys.platform == "emscripten":
            hint = "run this outside of the browser, where it can be installed"
        else:
            hint = f"make {_MADE[extra]}" if extra in _MADE and _is_clone() else f"pip install 'mqlab[{extra}]'"
        super().__init__(f"this needs the package {package!r}", hint)
        self.package = package
        self.extra = extra


class ProtocolError(MqlabError):
    """The peer, or a file, holds bytes that RocketMQ would not have written."""


class SimulationError(MqlabError):
    """The world cannot go on: a dead task, a wait without end, a real clock or thread inside the world."""


class ObserverError(SimulationError):
    """Somebody who watches a world has failed: a recorder, a breakpoint, a view. The world itself did nothing wrong.

    It is never raised inside of the world, where it would become a part of what happens, but to whoever plays it.
    """

    def __init__(self, observer: str, event: str, error: Exception) -> None:
        """`event` is the kind of the event at which it failed, "" if it was between two slices, as when drawing."""
        when = f"at an event {event}" if event else "between two slices"
        super().__init__(f"{observer}, which watches the world, failed {when}: {type(error).__name__}: {error}")
        self.observer = observer
        self.event = event


class RemotingException(MqlabError):
    """A call between two nodes failed (org.apache.rocketmq.remoting.exception.RemotingException)."""

    retriable = True


class RemotingConnectException(RemotingException):
    """No connection to the address could be made."""

    def __init__(self, address: str) -> None:
        super().__init__(f"connect to {address} failed")
        self.address = address


class RemotingSendRequestException(RemotingException):
    """The request could not be written to the connection."""

    def __init__(self, address: str) -> None:
        super().__init__(f"send request to <{address}> failed")
        self.address = address


class RemotingTimeoutException(RemotingException):
    """No answer came within the time-out; or, as `text` says, none could even be asked for in that time."""

    def __init__(self, address: str, timeout_ms: int, text: str = "") -> None:
        super().__init__(text or f"wait response on the channel <{address}> timeout, {timeout_ms}(ms)")
        self.address = address
        self.timeout_ms = timeout_ms


class RemotingTooMuchRequestException(RemotingException):
    """The client itself refuses the call: no permit, or the time budget is used up."""

    retriable = False


class RemotingCommandException(RemotingException):
    """An answer came, but it cannot be read (org.apache.rocketmq.remoting.exception.RemotingCommandException)."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"the answer of <{address}> cannot be read: {reason}")
        self.address = address
        self.reason = reason


class MQClientException(MqlabError):
    """The client could not do what was asked (org.apache.rocketmq.client.exception.MQClientException)."""

    def __init__(self, message: str, response_code: int = -1) -> None:
        super().__init__(f"CODE: {response_code}  DESC: {message}" if response_code != -1 else message)
        self.response_code = response_code
        self.error_message = message


class RequestTimeoutException(MqlabError):
    """No reply to a request came in time (org.apache.rocketmq.client.exception.RequestTimeoutException)."""

    def __init__(self, message: str, response_code: int) -> None:
        super().__init__(f"CODE: {response_code}  DESC: {message}")
        self.response_code = response_code
        self.error_message = message


class MQBrokerException(MqlabError):
    """The broker answered with an error code (org.apache.rocketmq.client.exception.MQBrokerException)."""

    def __init__(self, response_code: int, error_message: str, broker_address: str = "") -> None:
        where = f" BROKER: {broker_address}" if broker_address else ""
        super().__init__(f"CODE: {response_code}  DESC: {error_message}{where}")
        self.response_code = response_code
        self.error_message = error_message
        self.broker_address = broker_address
