"""Whom to ask: one of a group's channels, each in its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

TRIES = 3


class _Askable(Protocol):
    @property
    def is_active(self) -> bool: ...


AskableT = TypeVar("AskableT", bound=_Askable)


def available_channel(channels: Sequence[AskableT], turn: int) -> AskableT | None:
    """The first active one of three channels, from the one whose turn it is; None if those are not, or there is none.

    Java: org.apache.rocketmq.broker.client.ProducerManager.getAvailableChannel.
    """
    for place in range(turn, turn + TRIES) if channels else ():
        channel = channels[place % len(channels)]
        if channel.is_active:
            return channel
    return None
