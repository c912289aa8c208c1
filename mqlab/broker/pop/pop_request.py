"""A pop, or a question whether there is something to pop, that waits in the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.headers import NotificationRequestHeader, PopMessageRequestHeader
    from mqlab.remoting import Channel

WAKE_EARLY_MS = 50
"""A request is looked at for the last time so long before its time is up, so that its answer comes in time."""


class PopRequest:
    """One request that is kept (org.apache.rocketmq.broker.longpolling.PopRequest).

    `expired_ms` is when its time is up, ms since 1970; `order` numbers requests as they came. `parked_us` is when it
    was put aside. Without a `message_filter` any message wakes it.
    """

    __slots__ = ("channel", "completed", "expired_ms", "header", "message_filter", "order", "parked_us", "request")

    def __init__(
        self,
        request: RemotingCommand,
        header: PopMessageRequestHeader | NotificationRequestHeader,
        channel: Channel,
        order: int,
        parked_us: int,
        message_filter: MessageFilter | None,
    ) -> None:
        self.request = request
        self.header = header
        self.channel = channel
        self.order = order
        self.parked_us = parked_us
        self.expired_ms = header.born_time + header.poll_time
        self.message_filter = message_filter
        self.completed = False

    @property
    def wake_ms(self) -> int:
        """The first millisecond at which it is late enough to look at it for the last time."""
        return self.expired_ms - WAKE_EARLY_MS + 1

    def __lt__(self, other: PopRequest) -> bool:
        """Whose time is up first; of two the one that came first."""
        return (self.expired_ms, self.order) < (other.expired_ms, other.order)

    def __repr__(self) -> str:
        header = self.header
        return (
            f"<PopRequest {header.consumer_group} waits for {header.topic}/{header.queue_id}, "
            f"at most until {self.expired_ms} ms>"
        )
