"""One pop on its way: what was asked, and what is found for it, queue by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.headers import PopMessageRequestHeader
    from mqlab.protocol.topic_config import TopicConfig
    from mqlab.remoting import Channel


class PopWork:
    """The state of one POP_MESSAGE request while it is processed: in Java, the local variables of its processor.

    `records` are what is found so far, ready for the answer's body; `rest` counts the messages that were seen and left
    in the queues. The three lists become startOffsetInfo, msgOffsetInfo and orderCountInfo.
    """

    __slots__ = (
        "channel", "group", "header", "message_filter", "messages", "msg_offset_info", "order", "order_count_info",
        "pop_time", "records", "request", "rest", "revive_qid", "start_offset_info", "topic_config",
    )  # fmt: skip

    def __init__(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: PopMessageRequestHeader,
        topic_config: TopicConfig,
        message_filter: MessageFilter | None,
        revive_qid: int,
        pop_time: int,
    ) -> None:
        self.channel = channel
        self.request = request
        self.header = header
        self.group = header.consumer_group
        self.order = bool(header.order)
        self.topic_config = topic_config
        self.message_filter = message_filter
        self.revive_qid = revive_qid
        self.pop_time = pop_time
        self.records: list[bytes] = []
        self.messages = 0
        self.rest = 0
        self.start_offset_info: list[str] = []
        self.msg_offset_info: list[str] = []
        self.order_count_info: list[str] = []

    @property
    def room(self) -> int:
        """How many more messages may be found."""
        return self.header.max_msg_nums - len(self.records)
