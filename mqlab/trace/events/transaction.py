"""Events of transactions: a half message from its hiding place to its commit, its rollback, or its end as nobody's.

`half_offset` is a place in the queue of RMQ_SYS_TRANS_HALF_TOPIC; `topic` and `queue_id` are where the message is meant
to go. `local_state` is COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW, as RocketMQ spells it.
"""

from __future__ import annotations

from typing import NamedTuple

STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""With any other status of `HalfMessageHidden` a half message lies nowhere."""


class HalfMessageHidden(NamedTuple):
    """A message of a transaction is stored as a half message, which nobody can pull; `log_offset` is where.

    `status` is the PutMessageStatus: where it is no PUT_OK, `half_offset` and `log_offset` may be 0 and mean nothing.
    """

    topic: str
    queue_id: int
    unique_key: str
    group: str
    half_offset: int
    log_offset: int
    status: str


class TransactionEnded(NamedTuple):
    """A broker has been told how a transaction ended; it has answered with `code` (0: done, or nothing to do).

    `from_check` says that the broker had asked. After UNKNOW nothing happens: the broker will ask (again).
    """

    topic: str
    unique_key: str
    group: str
    half_offset: int
    local_state: str
    from_check: bool
    code: int


class TransactionOpWritten(NamedTuple):
    """A message in RMQ_SYS_TRANS_OP_HALF_TOPIC says that `messages` half messages are done with.

    `op_offset` is its place in the queue, -1 when the store refused it: those half messages will be asked about.
    """

    messages: int
    op_offset: int


class HalfMessageStoredAgain(NamedTuple):
    """The half message at `half_offset` got a new place, `new_half_offset`, so that those behind it can be looked at.

    `reason` is "asked" or "immune" (its own CHECK_IMMUNITY_TIME_IN_SECONDS is not over); `check_times` is how often the
    copy says that it was asked about.
    """

    topic: str
    unique_key: str
    half_offset: int
    new_half_offset: int
    check_times: int
    reason: str


class TransactionChecked(NamedTuple):
    """A broker asks a producer of the group what became of a transaction; `remote` is empty when none is connected."""

    topic: str
    unique_key: str
    group: str
    half_offset: int
    check_times: int
    remote: str


class HalfMessageGivenUp(NamedTuple):
    """A half message went to TRANS_CHECK_MAX_TIME_TOPIC, asked about too often or too old; `stored` says whether."""

    topic: str
    unique_key: str
    half_offset: int
    check_times: int
    stored: bool


class TransactionRoundEnded(NamedTuple):
    """A broker has looked through its half messages, from `from_offset` up to `half_offset`; `messages` were asked
    about.
    """

    from_offset: int
    half_offset: int
    op_offset: int
    messages: int
    took_ms: int


class LocalTransactionExecuted(NamedTuple):
    """A producer's transaction listener has done the local part, or failed at it (`reason`, else empty)."""

    topic: str
    msg_id: str
    group: str
    local_state: str
    reason: str


class LocalTransactionRemembered(NamedTuple):
    """A producer's transaction listener has said what became of the local part, as a broker asked; or failed at it."""

    topic: str
    msg_id: str
    group: str
    local_state: str
    half_offset: int
    reason: str


class TransactionResolved(NamedTuple):
    """A 5.x producer is about to tell a proxy how a transaction ended; it says COMMIT_MESSAGE or ROLLBACK_MESSAGE."""

    topic: str
    msg_id: str
    local_state: str


class EndTransactionRelayed(NamedTuple):
    """A proxy knows where the half message lies whose end a client tells it, and passes that on to the broker, one-way.

    `from_check` says that the client had been asked. After UNKNOW nothing happens, but the proxy has forgotten it.
    """

    topic: str
    msg_id: str
    group: str
    half_offset: int
    broker_name: str
    client_id: str
    local_state: str
    from_check: bool


class OrphanedTransactionRelayed(NamedTuple):
    """A broker asks a proxy about a half message, and the proxy asks a producer; without one, `client_id` is empty."""

    topic: str
    msg_id: str
    group: str
    half_offset: int
    broker_name: str
    client_id: str
