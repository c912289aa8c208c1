"""Headers of pulling messages and of looking messages up.

Java: org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader, PullMessageResponseHeader,
QueryMessageRequestHeader, QueryMessageResponseHeader, ViewMessageRequestHeader.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, fast_codes

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""The extension field that says whether a QUERY_MESSAGE looks for a unique key instead of one of the KEYS."""


@fast_codes
class PullMessageRequestHeader(NamedTuple):
    """Which messages a consumer wants from one queue (PULL_MESSAGE, LITE_PULL_MESSAGE).

    `sys_flag` is built by PullSysFlag: `commit_offset` counts only with its first bit, `subscription` with its third.
    `suspend_timeout_millis` is how long the broker may hold the request when there is nothing; `sub_version` in ms.
    """

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: Long
    max_msg_nums: int
    sys_flag: int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: int | None = None
    request_source: int | None = None
    proxy_froward_client_id: str | None = None
    bname: str | None = None
    lo: bool | None = None


@fast_codes
class PullMessageResponseHeader(NamedTuple):
    """Where to go on pulling, and the bounds of the queue; the body holds the records themselves."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None
    forbidden_type: int | None = None


class QueryMessageRequestHeader(NamedTuple):
    """Looks for messages by key within a time window in ms (QUERY_MESSAGE); see UNIQUE_KEY_QUERY."""

    topic: str
    key: str
    max_num: int
    begin_timestamp: Long
    end_timestamp: Long


class QueryMessageResponseHeader(NamedTuple):
    """How far the index reaches."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class ViewMessageRequestHeader(NamedTuple):
    """Asks for the one message at a byte offset of the commit log (VIEW_MESSAGE_BY_ID)."""

    topic: str | None
    offset: Long
