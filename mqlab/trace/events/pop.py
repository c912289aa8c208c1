"""Events of Pop: messages handed out for a while, their check points, acknowledgements, and what happens without.

A delivery is named by group, topic (the one popped from, which may be a retry topic), queue, the first offset of its
batch (`start_offset`), `pop_time` (ms since 1970) and, for one message, `queue_offset`.
"""

from __future__ import annotations

from typing import NamedTuple


class PopReceived(NamedTuple):
    """A consumer asks for messages of a topic; queue -1 means any. `first_pass` is False for a woken request."""

    group: str
    topic: str
    queue_id: int
    max_messages: int
    invisible_ms: int
    poll_ms: int
    order: bool
    attempt_id: str
    opaque: int
    remote: str
    first_pass: bool


class PopQueueBusy(NamedTuple):
    """Another pop of the group is at this queue just now, so it is left out."""

    group: str
    topic: str
    queue_id: int


class MessagePopped(NamedTuple):
    """A message is handed out: nobody else of the group gets it for `invisible_ms` from `pop_time` on.

    `revive_qid` is the revive queue of its check point; 999: popped in order, no check point.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str
    start_offset: int
    pop_time: int
    invisible_ms: int
    revive_qid: int
    reconsume_times: int
    remote: str


class PopAnswered(NamedTuple):
    """A pop is answered with so many `messages`; `rest` counts what was left over in the queues."""

    group: str
    topic: str
    queue_id: int
    messages: int
    rest: int
    code: int
    opaque: int
    remote: str


class PopHeld(NamedTuple):
    """There is nothing to pop (or to tell of): the broker keeps the request instead of answering it."""

    group: str
    topic: str
    queue_id: int
    hold_ms: int
    opaque: int
    remote: str


class PopNotHeld(NamedTuple):
    """A request that found nothing is not kept; `reason` is "polling full", "polling timeout" or "not polling"."""

    group: str
    topic: str
    queue_id: int
    reason: str
    opaque: int
    remote: str


class PopWoken(NamedTuple):
    """A kept request is looked at again after `held_us`; `reason` is "arrived", "forced", "timed out", "left over",
    "unblocked" or "shutdown".
    """

    group: str
    topic: str
    queue_id: int
    reason: str
    held_us: int
    opaque: int
    remote: str


class CheckPointMade(NamedTuple):
    """A batch has a check point; `held_in` is "buffer", "store" or "offset only" (nothing was left after the filter).

    `offsets` are the offsets of its messages, joined by commas.
    """

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_ms: int
    messages: int
    offsets: str
    revive_qid: int
    held_in: str


class CheckPointNotMade(NamedTuple):
    """A batch could not get a check point, so its messages are not handed out."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    messages: int
    reason: str


class CheckPointStored(NamedTuple):
    """A check point was written as a message of the revive topic; `reason` says why now."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    revive_qid: int
    reason: str


class CheckPointMerged(NamedTuple):
    """The buffer needs a check point no longer: every message was acknowledged in memory, or all is in the store."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    messages: int
    acked: int
    in_store: bool


class MergeBufferClosed(NamedTuple):
    """The merge buffer takes nothing in until all its `check_points` are stored: a scan took `scan_ms`, which is too
    long for what is due, or the broker ends (0).
    """

    check_points: int
    scan_ms: int


class MergeBufferOpened(NamedTuple):
    """The merge buffer is empty and takes check points in again."""


class OffsetQueueDropped(NamedTuple):
    """Progress that waited for its batches is forgotten; `reason` is "topic gone", "group gone" or "idle"."""

    group: str
    topic: str
    queue_id: int
    batches: int
    reason: str


class AckReceived(NamedTuple):
    """A consumer says that a message is done."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    start_offset: int
    pop_time: int
    invisible_ms: int
    revive_qid: int
    opaque: int
    remote: str


class AckBuffered(NamedTuple):
    """An acknowledgement met its check point in memory; it is bit `place` of the check point."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    start_offset: int
    pop_time: int
    place: int


class AckStored(NamedTuple):
    """Acknowledgements were written as one message of the revive topic; `offsets` are joined by commas."""

    group: str
    topic: str
    queue_id: int
    offsets: str
    start_offset: int
    pop_time: int
    revive_qid: int


class AckLost(NamedTuple):
    """An acknowledgement has no effect; `reason` says why."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    start_offset: int
    pop_time: int
    reason: str


class InvisibleTimeChanged(NamedTuple):
    """A consumer gets longer for a message, or less long: a new check point from `new_pop_time` on replaces the old."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    new_pop_time: int
    invisible_ms: int
    revive_qid: int
    opaque: int
    remote: str


class ReviveScanBegun(NamedTuple):
    """The reviver of one revive queue begins to read at `from_offset`."""

    revive_qid: int
    from_offset: int


class ReviveCheckPointRead(NamedTuple):
    """The reviver has read a check point, at `revive_offset` of its revive queue."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    invisible_ms: int
    messages: int
    offsets: str
    revive_qid: int
    revive_offset: int


class ReviveAckRead(NamedTuple):
    """The reviver has read acknowledgements; `bits` are the places that it marks in the check point, joined by commas.

    No bits: there is no such check point among those that it has read, or it has no such message.
    """

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    bits: str
    revive_qid: int
    revive_offset: int


class ReviveScanWaits(NamedTuple):
    """The reviver has read all that is there, and waits for more: for "acks", or for "the timer", which is behind.

    It looks every 100 ms, but nothing can change before `until_ms` (ms since 1970; 0: never) unless something comes.
    """

    revive_qid: int
    to_offset: int
    check_points: int
    acks: int
    end_time: int
    until_ms: int
    reason: str


class ReviveScanEnded(NamedTuple):
    """The reviver stops reading, with so many check points and acknowledgements.

    `reason` is "nothing there", "nothing more", "long enough", "scan time over" or "unreadable: " and why; `end_time`
    is the newest time of delivery that it has seen, ms since 1970.
    """

    revive_qid: int
    to_offset: int
    check_points: int
    acks: int
    end_time: int
    reason: str


class CheckPointWaits(NamedTuple):
    """The reviver leaves a check point, and those behind it, to its next round: acks for it may not have been read."""

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    revive_time: int
    end_time: int
    revive_qid: int
    revive_offset: int


class CheckPointSettled(NamedTuple):
    """The reviver is done with a check point; `reason` is "all acked", "revived", "topic gone", "group gone" or "put
    again".
    """

    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int
    messages: int
    acked: int
    revive_qid: int
    revive_offset: int
    reason: str


class MessageRevived(NamedTuple):
    """A message that nobody acknowledged goes to the retry topic, `late_ms` behind the end of its invisible time.

    `queue_offset` is where it was popped from.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str
    pop_time: int
    invisible_ms: int
    retry_topic: str
    reconsume_times: int
    late_ms: int


class MessageNotRevived(NamedTuple):
    """A message that nobody acknowledged is not put again; `reason` says why."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    reason: str


class CheckPointPutAgain(NamedTuple):
    """One message could not be revived now: a new check point for it comes due `invisible_ms` behind `pop_time`."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    invisible_ms: int
    times: int
    reason: str


class ReviveOffsetCommitted(NamedTuple):
    """The reviver will not read again what lies up to `revive_offset` of its queue."""

    revive_qid: int
    revive_offset: int


class OrderTaken(NamedTuple):
    """Messages are handed out in order under the name of an attempt ("": without one): until they are settled or
    visible again, `invisible_ms` behind `pop_time`, every other attempt is turned away.
    """

    group: str
    topic: str
    queue_id: int
    attempt_id: str
    offsets: str
    pop_time: int
    invisible_ms: int


class OrderBlocked(NamedTuple):
    """Nothing is popped in order from a queue: messages of the last batch are neither settled nor visible again."""

    group: str
    topic: str
    queue_id: int
    attempt_id: str
    pop_time: int


class OrderFreed(NamedTuple):
    """Messages can be popped in order from a queue again; `reason` is "settled", "visible again" or "reset"."""

    group: str
    topic: str
    queue_id: int
    reason: str


class OrderAcked(NamedTuple):
    """A message popped in order is done; the group goes on at `next_offset`."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    next_offset: int


class PopAssigned(NamedTuple):
    """A consumer begins to pop a topic on a broker; queue -1 means any. It owns nothing: others pop there, too.

    `init_mode` says where a group without an offset begins: 0 at the oldest message, 1 at the newest.
    """

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    init_mode: int


class PopUnassigned(NamedTuple):
    """A consumer ends to pop a topic on a broker; what it holds and has not acknowledged comes again."""

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str


class PopRequested(NamedTuple):
    """A consumer asks a broker for messages of a topic; queue -1 means any."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    max_messages: int
    invisible_ms: int
    poll_ms: int


class PopFinished(NamedTuple):
    """The answer to a consumer's pop: its status, how many messages its listener will get, and how many were left."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    pop_status: str
    messages: int
    rest: int


class MessagesTaken(NamedTuple):
    """Messages came to a consumer that pops; `unacked` of them wait for their acknowledgement now."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    messages: int
    unacked: int


class PopGivenUp(NamedTuple):
    """A consumer is done with popped messages and tells nobody; the fields are those of the first of `messages`.

    `reason` says whether the invisible time was over or the assignment was gone, and when that was seen.
    """

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    messages: int
    reason: str


class PopThreadFailed(NamedTuple):
    """A consumer could not tell what became of a popped message; the fields are those of the first of its batch."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    reason: str


class AckRequested(NamedTuple):
    """A consumer tells a broker that a message is done; `reason` is "consumed", "filtered" or "tried too often"."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    pop_time: int
    reason: str


class AckFailed(NamedTuple):
    """An acknowledgement did not get through, or was refused; nobody sends it again."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    reason: str


class InvisibleTimeRequested(NamedTuple):
    """A listener failed: its consumer asks that the message come again `invisible_ms` from now."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    pop_time: int
    invisible_ms: int
    reconsume_times: int


class InvisibleTimeNotChanged(NamedTuple):
    """A wish for another invisible time did not get through, or was refused: the old time goes on to count."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    reason: str


class PopRecordWritten(NamedTuple):
    """The key-value engine notes that a group has a message in hand; `held_in` is "cache" or "store".

    `attempts` counts how often putting the message into the retry topic has failed.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    invisible_ms: int
    attempts: int
    held_in: str


class PopRecordDeleted(NamedTuple):
    """The key-value engine forgets a message that a group had in hand; `reason` is "acked", "changed",
    "revived" or "rolled back".
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int
    reason: str


class PopRecordsNotWritten(NamedTuple):
    """So many notes of the key-value engine could not be written or deleted; `reason` says why."""

    records: int
    reason: str


class PopRecordsRecovered(NamedTuple):
    """The key-value engine has read its notes from the disk; `torn_bytes` at the end of its log were no whole ones."""

    records: int
    torn_bytes: int
