"""Headers of consume progress and of the bounds of a queue.

Java: org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader and its neighbours.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, put_first


class QueryConsumerOffsetRequestHeader(NamedTuple):
    """How far has this group consumed this queue? (QUERY_CONSUMER_OFFSET)"""

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None
    bname: str | None = None
    lo: bool | None = None


class QueryConsumerOffsetResponseHeader(NamedTuple):
    """The offset of the next message to consume."""

    offset: Long


@put_first("bname")
class UpdateConsumerOffsetRequestHeader(NamedTuple):
    """This group has consumed this queue up to `commit_offset` (UPDATE_CONSUMER_OFFSET)."""

    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: Long
    bname: str | None = None
    lo: bool | None = None


class UpdateConsumerOffsetResponseHeader(NamedTuple):
    """Nothing but the receipt."""


class SearchOffsetRequestHeader(NamedTuple):
    """Which offset was stored at this time? (SEARCH_OFFSET_BY_TIMESTAMP)

    `timestamp` is in ms; `boundary_type` is LOWER (default) or UPPER and tells which of several equal times is meant.
    """

    topic: str
    queue_id: int
    timestamp: Long
    boundary_type: str | None = None
    bname: str | None = None
    lo: bool | None = None


class SearchOffsetResponseHeader(NamedTuple):
    """The offset that was found for the time."""

    offset: Long


class GetMaxOffsetRequestHeader(NamedTuple):
    """Which offset will the next message of the queue get? (GET_MAX_OFFSET)"""

    topic: str
    queue_id: int
    committed: bool | None = True
    bname: str | None = None
    lo: bool | None = None


class GetMaxOffsetResponseHeader(NamedTuple):
    """One more than the offset of the last message."""

    offset: Long


class GetMinOffsetRequestHeader(NamedTuple):
    """Which is the oldest message of the queue that is still there? (GET_MIN_OFFSET)"""

    topic: str
    queue_id: int
    bname: str | None = None
    lo: bool | None = None


class GetMinOffsetResponseHeader(NamedTuple):
    """The offset of the oldest message."""

    offset: Long


class GetEarliestMsgStoretimeRequestHeader(NamedTuple):
    """When was the oldest message of the queue stored? (GET_EARLIEST_MSG_STORETIME)"""

    topic: str
    queue_id: int
    bname: str | None = None
    lo: bool | None = None


class GetEarliestMsgStoretimeResponseHeader(NamedTuple):
    """The time in ms since 1970, -1 when the queue is empty."""

    timestamp: Long
