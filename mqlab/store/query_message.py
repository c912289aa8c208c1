"""Finding messages by key: the index says where they may be, the commit log has them."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.store.commit_log import CommitLog
from mqlab.store.index_service import IndexService

_ROUNDS = 3


class QueryMessageResult(NamedTuple):
    """Raw records that may have the key, oldest first, and how far the index reaches
    (org.apache.rocketmq.store.QueryMessageResult).

    The index keeps hashes only: whoever asked must compare the keys.
    """

    messages: list[bytes]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int

    @property
    def body(self) -> bytes:
        """The records one behind the other: the body of a query response."""
        return b"".join(self.messages)


def query_message(
    index: IndexService, log: CommitLog, topic: str, key: str, max_num: int, begin: int, end: int
) -> QueryMessageResult:
    """Look a key up (DefaultMessageStore.queryMessage); up to three rounds, each ending before what the one before
    found.

    Java: org.apache.rocketmq.store.DefaultMessageStore.queryMessage.
    """
    messages: list[bytes] = []
    last_query_msg_time = end
    for _ in range(_ROUNDS):
        offsets = sorted(index.query_offset(topic, key, max_num, begin, last_query_msg_time))
        if not offsets:
            break
        for i, offset in enumerate(offsets):
            size = log.record_size(offset)
            record = log.get_message(offset, size) if size > 0 else None
            if record is not None:
                messages.append(record)
                if i == 0:
                    last_query_msg_time = log.store_time(offset, size)
        if messages or last_query_msg_time < begin:
            break
    last = index.files[-1] if index.files else None
    return QueryMessageResult(messages, last.end_timestamp if last else 0, last.end_phy_offset if last else 0)
