"""Headers of Pop, the way of consuming in which the broker hands out messages for a while.

Java: org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader and its neighbours. All times are in ms.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, put_first


@put_first("pollTime")
class PopMessageRequestHeader(NamedTuple):
    """Give me messages, and show them to nobody else for a while (POP_MESSAGE).

    `queue_id` -1 means any queue; `poll_time` is how long the request may wait from `born_time` on; `init_mode` 0
    starts an unknown group at the oldest message, 1 at the newest.
    """

    consumer_group: str
    topic: str
    queue_id: int
    max_msg_nums: int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    init_mode: int
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = False
    attempt_id: str | None = None
    bname: str | None = None


class PopMessageResponseHeader(NamedTuple):
    """What a client needs to name the messages again; the body holds the records."""

    pop_time: Long
    invisible_time: Long
    revive_qid: int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(NamedTuple):
    """This message is done (ACK_MESSAGE); `extra_info` is its receipt handle."""

    consumer_group: str
    topic: str
    queue_id: int
    extra_info: str
    offset: Long
    bname: str | None = None


class ChangeInvisibleTimeRequestHeader(NamedTuple):
    """I need longer for this message, or less long (CHANGE_MESSAGE_INVISIBLETIME)."""

    consumer_group: str
    topic: str
    queue_id: int
    extra_info: str
    offset: Long
    invisible_time: Long
    bname: str | None = None


class ChangeInvisibleTimeResponseHeader(NamedTuple):
    """What the new receipt handle is made of."""

    pop_time: Long
    invisible_time: Long
    revive_qid: int


class NotificationRequestHeader(NamedTuple):
    """Tell me when there is something to pop (NOTIFICATION)."""

    consumer_group: str
    topic: str
    queue_id: int
    poll_time: Long
    born_time: Long
    order: bool | None = False
    attempt_id: str | None = None
    bname: str | None = None


class NotificationResponseHeader(NamedTuple):
    """Whether there is something, or too many are waiting."""

    has_msg: bool = False
    polling_full: bool = False


class PollingInfoRequestHeader(NamedTuple):
    """How many pop requests are waiting? (POLLING_INFO)"""

    consumer_group: str
    topic: str
    queue_id: int


class PollingInfoResponseHeader(NamedTuple):
    """How many requests wait at this queue."""

    polling_num: int


class PeekMessageRequestHeader(NamedTuple):
    """Show me messages without handing them out (PEEK_MESSAGE)."""

    consumer_group: str
    topic: str
    queue_id: int
    max_msg_nums: int
