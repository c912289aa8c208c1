"""A pull that the broker keeps because there is nothing to give yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.headers import PullMessageRequestHeader
    from mqlab.remoting import Channel


class PullRequest:
    """One held request with everything needed to look at it again (org.apache.rocketmq.broker.longpolling.PullRequest).

    `suspended_us` is when it was put aside, `timeout_ms` how long it may wait; `message_filter` is what its consumer
    wants.
    """

    __slots__ = ("channel", "header", "message_filter", "offset", "request", "suspended_us", "timeout_ms")

    def __init__(
        self,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        channel: Channel,
        timeout_ms: int,
        suspended_us: int,
        message_filter: MessageFilter,
    ) -> None:
        self.request = request
        self.header = header
        self.channel = channel
        self.timeout_ms = timeout_ms
        self.suspended_us = suspended_us
        self.offset = header.queue_offset
        self.message_filter = message_filter

    def __repr__(self) -> str:
        header = self.header
        return (
            f"<PullRequest {header.consumer_group} waits for {header.topic}/{header.queue_id} at {self.offset}, "
            f"at most {self.timeout_ms} ms since {self.suspended_us} us>"
        )
