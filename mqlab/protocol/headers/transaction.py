"""Headers of transactions.

Java: org.apache.rocketmq.remoting.protocol.header.EndTransactionRequestHeader, CheckTransactionStateRequestHeader,
ResumeCheckHalfMessageRequestHeader.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, put_first


@put_first("topic")
class EndTransactionRequestHeader(NamedTuple):
    """Commits or rolls back a half message (END_TRANSACTION, one-way).

    `commit_or_rollback` takes the values of MessageSysFlag: 0 unknown, 8 commit, 12 rollback. `tran_state_table_offset`
    is the queue offset of the half message, `commit_log_offset` its byte offset in the commit log.
    """

    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: int
    msg_id: str
    from_transaction_check: bool | None = False
    transaction_id: str | None = None
    topic: str | None = None
    bname: str | None = None


class CheckTransactionStateRequestHeader(NamedTuple):
    """The broker asks a producer what became of a half message (CHECK_TRANSACTION_STATE, one-way)."""

    topic: str | None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


class ResumeCheckHalfMessageRequestHeader(NamedTuple):
    """Brings a message that was asked about too often back among the half messages (RESUME_CHECK_HALF_MESSAGE).

    `msg_id` is its offset message id.
    """

    topic: str | None = None
    msg_id: str | None = None
