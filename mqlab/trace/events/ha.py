"""Events of replication: a slave that follows its master's commit log, and puts that wait until a copy is there.

`commit_log_offset` counts bytes of the master's log, which are the same bytes in the slave's.
"""

from __future__ import annotations

from typing import NamedTuple


class ReplicaConnected(NamedTuple):
    """A master has taken in a slave's connection; nothing is sent before the slave's first report."""

    remote: str
    connection_id: int


class ReplicaDisconnected(NamedTuple):
    """A master has lost or closed a slave's connection; the slave had all before `ack_offset` then (-1: never told)."""

    remote: str
    connection_id: int
    ack_offset: int
    reason: str


class ReplicationBegun(NamedTuple):
    """A slave's first report has come: the master sends its log from `commit_log_offset` on.

    `asked_offset` is what the slave reported. One that has nothing gets no more than the master's last file.
    """

    remote: str
    asked_offset: int
    commit_log_offset: int


class ReplicaDataSent(NamedTuple):
    """A master has sent a piece of its log to a slave."""

    remote: str
    commit_log_offset: int
    body_bytes: int


class ReplicaHeartbeatSent(NamedTuple):
    """A master has told a slave that it is there, as it had nothing to send for a while."""

    remote: str
    commit_log_offset: int


class ReplicaAcked(NamedTuple):
    """A slave's report has reached its master: the slave has all before `ack_offset`, in its page cache at least."""

    remote: str
    ack_offset: int


class MasterConnected(NamedTuple):
    """A slave has connected to its master's HA port; its own log ends at `commit_log_offset`."""

    remote: str
    commit_log_offset: int


class MasterConnectFailed(NamedTuple):
    """A slave could not connect to its master; it tries again after 5 s."""

    remote: str
    reason: str


class MasterDisconnected(NamedTuple):
    """A slave's connection to its master has ended; `reason` says who or what ended it."""

    remote: str
    commit_log_offset: int
    reason: str


class ReplicaDataAppended(NamedTuple):
    """A slave has appended a piece of its master's log to its own."""

    commit_log_offset: int
    body_bytes: int


class ReplicaPutWaiting(NamedTuple):
    """A message is stored here, and its producer is answered when `ack_nums` brokers have it, this one included.

    It is there when a slave has reported `ack_offset` or more.
    """

    ack_offset: int
    ack_nums: int


class ReplicaPutAnswered(NamedTuple):
    """A producer's wait for copies has ended after `waited_ms`; `status` is PUT_OK or FLUSH_SLAVE_TIMEOUT."""

    ack_offset: int
    ack_nums: int
    status: str
    waited_ms: int


class SlaveSynchronized(NamedTuple):
    """A slave has taken a table over from its master: `table` is the request's name, `entries` what the table has."""

    table: str
    remote: str
    entries: int


class SlaveSynchronizeFailed(NamedTuple):
    """A slave could not get a table from its master; the others are tried all the same."""

    table: str
    remote: str
    reason: str
