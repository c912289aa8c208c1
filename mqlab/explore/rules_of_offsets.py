"""Rules of progress: it only grows, is noted when somebody asks for it, keeps up, and is written before it is lost."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from mqlab.client import MessageModel
from mqlab.client.consumer.offset_serialize_wrapper import OffsetSerializeWrapper
from mqlab.client.consumer.offset_store import LocalFileOffsetStore
from mqlab.explore.places import Place, QueueKey
from mqlab.explore.readers import clients_in, push_consumer_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_settling import BEGINS_AGAIN, BEGINS_AGAIN_TEXT
from mqlab.protocol.message import MessageQueue
from mqlab.trace.record import Record

POLLING = "poll"
"""The thread of an application of a drawn world that polls."""
TWO_OWNERS = "two owners for a moment"
TWO_OWNERS_TEXT = (
    "After a rebalance the old owner of a queue may go on until its own round, up to 20 s later, and a queue taken "
    "over begins at what was committed by then; a commit overwrites what the broker has, also with something smaller."
)
LATE_COMMIT = "a commit that was under way"
LATE_COMMIT_TEXT = (
    "Commits are one-way requests: one that was held back by the network, or by a process that hung, arrives when the "
    "queue has another owner, and the broker takes it."
)
ILLEGAL = "an offset that the broker does not have"
ILLEGAL_TEXT = (
    "A consumer whose offset lies outside of the queue, as after a loss of power, is told another one by the broker, "
    "and goes on from there."
)
LISTENER_AT_WORK = "a listener at work when its consumer ends"
LISTENER_AT_WORK_TEXT = (
    "A consumer that is shut down writes its offsets, and gives its queues up a moment later without waiting for its "
    "listener: what is consumed in between is not written, and the next owner gets it again."
)
READ_NO_MORE = "a topic that is read no more"
READ_NO_MORE_TEXT = (
    "A consumer that gives a topic up drops its queues with the next rebalance, without writing how far it came and "
    "without giving back their locks: what it has consumed since it last wrote comes again, and in order nobody else "
    "gets them until the locks are 60 s old (truncateMessageQueueNotMyTopic)."
)
UNSUBSCRIBED = "the topic is no longer subscribed"
"""The reason of a queue that is dropped so."""
LATE_ANSWER = "an answer to a pull of before"
LATE_ANSWER_TEXT = (
    "A pull that is held when its queue is given up is answered all the same. When it has found nothing, the consumer "
    "notes the offset behind, since nothing is cached where that pull belonged: if it has the queue again by then, it "
    "notes more than it has consumed. An orderly one goes back with its next message."
)
RESETS = ("reset", "pop reset")
"""The origins of offsets to which somebody has set a group."""
OUTSIDE = ("OFFSET_TOO_SMALL", "OFFSET_OVERFLOW_BADLY", "OFFSET_RESET")
OVERLAP_US = 40_000_000
"""How long after a change of owners commits of the former one may come."""
SOON_US = 1_000_000
"""A consumer has ended within this time after it has written its offsets."""
PERSIST_US = 11_000_000
"""Offsets are written every 5 s, the first time after 10 s."""
TAKES_US = 5_000_000
"""A consumer that is told another offset drops the queue and notes the offset at once, and pulls from there soon."""


class Update(NamedTuple):
    """An offset, and when it was noted."""

    ts_us: int
    offset: int


def of_consumer(record: Record) -> tuple[str, QueueKey]:
    """A consumer, and the queue of its that an event is about, with the name of the broker."""
    return record.node, (record.group, record.broker_name, record.topic, record.queue_id)


class OffsetsOnlyGrow(Rule):
    """The offset of a group never goes back but by a named act: a reset, a seek, a restart of its broker.

    A group that is deleted begins anew.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "OffsetCommitted": "_committed", "OffsetReset": "_reset", "QueueSought": "_sought", "QueueAllocated": "_moved",
        "QueueDropped": "_moved", "NodeStarted": "_started", "PullAnswered": "_answered",
        "ClientStopped": "_client_stopped", "SubscriptionGroupDeleted": "_group_deleted",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        TWO_OWNERS: TWO_OWNERS_TEXT, LATE_COMMIT: LATE_COMMIT_TEXT, ILLEGAL: ILLEGAL_TEXT,
        BEGINS_AGAIN: BEGINS_AGAIN_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._last: dict[QueueKey, Update] = {}
        self._moved_us: dict[QueueKey, int] = {}
        """When a queue last got or lost an owner."""
        self._illegal_us: dict[QueueKey, int] = {}

    def _started(self, record: Record) -> None:
        self._last = {key: last for key, last in self._last.items() if key[1] != record.target}

    def _group_deleted(self, record: Record) -> None:
        group = (record.group, record.node)
        self._last = {key: last for key, last in self._last.items() if key[:2] != group}

    def _client_stopped(self, record: Record) -> None:
        self._moved_us.update({key: record.ts_us for key in self._last if key[0] == record.group})

    def _answered(self, record: Record) -> None:
        if record.status in OUTSIDE:
            self._illegal_us[record.group, record.node, record.topic, record.queue_id] = record.ts_us

    def _reset(self, record: Record) -> None:
        self._last.pop((record.group, record.node, record.topic, record.queue_id), None)

    def _sought(self, record: Record) -> None:
        self._last.pop(self.case.ledger.names.queue_of(record), None)

    def _moved(self, record: Record) -> None:
        self._moved_us[self.case.ledger.names.queue_of(record)] = record.ts_us

    def _committed(self, record: Record) -> None:
        if record.origin == "broadcast":
            # What the broker notes of a broadcasting group is the least of its members, and nobody begins there.
            return
        key = (record.group, record.node, record.topic, record.queue_id)
        last = self._last.get(key) if record.origin not in RESETS else None
        self._last[key] = Update(record.ts_us, record.queue_offset)
        self.judged += last is not None
        if last is None or record.queue_offset >= last.offset:
            return
        long_ago_us = -1 << 60
        if record.origin == "popped" and self._begins_again(record):
            self.excuse(BEGINS_AGAIN)
        elif record.ts_us - self._illegal_us.get(key, long_ago_us) < OVERLAP_US:
            self.excuse(ILLEGAL)
        elif record.ts_us - self._moved_us.get(key, long_ago_us) < OVERLAP_US:
            self.excuse(TWO_OWNERS)
        elif not self.case.fault_times.none_between(last.ts_us - OVERLAP_US, record.ts_us):
            self.excuse(LATE_COMMIT)
        else:
            at = f"{record.node} {record.topic} queue {record.queue_id}"
            back = f"goes back from {last.offset} to {record.queue_offset}"
            self.found(record.row, f"the offset of {record.group} in {at} {back}")

    def _begins_again(self, record: Record) -> bool:
        at = (record.node, record.group, record.topic, record.queue_id)
        return self.case.is_live and self.case.begins_again_at(*at) == record.queue_offset


class CommitsAreAsked(Rule):
    """A pull commits the offset that came with it once, when it comes; one that was held commits nothing later."""

    kinds = ("PullReceived", "OffsetCommitted", "NodeStarted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._times: dict[tuple[str, str, int], int] = {}
        """(broker, remote address, opaque) -> how often the broker has dealt with this pull."""
        self._now: dict[tuple[str, str], Record] = {}
        """(broker, task) -> the pull that it deals with."""

    def on_event(self, record: Record) -> None:
        """Note the pulls, and judge what is committed with them."""
        if record.kind == "NodeStarted":
            self._times = {key: times for key, times in self._times.items() if key[0] != record.target}
        elif record.kind == "PullReceived":
            key = (record.node, record.remote, record.opaque)
            self._times[key] = self._times.get(key, 0) + 1
            self._now[record.node, record.task] = record
        elif record.origin == "pull":
            pull = self._now.get((record.node, record.task))
            if not self.case.fault_times.none_between(record.ts_us - TAKES_US, record.ts_us):
                # On a slow disk a thread begins with other pulls before it is done with one.
                return
            self.judged += 1
            of_pull = pull and (pull.group, pull.topic, pull.queue_id) == (record.group, record.topic, record.queue_id)
            if pull is None or not of_pull or self._times[record.node, pull.remote, pull.opaque] > 1:
                at = f"{record.node} {record.topic} queue {record.queue_id}"
                self.found(record.row, f"{record.group} commits {record.queue_offset} in {at}, and no pull just came")


class OffsetsKeepUp(Rule):
    """The offset that a push consumer notes is that of the first message it holds, and does not go back.

    A thread may lose the processor between taking a message out and noting the offset; where the seed draws that, only
    the second half is judged.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "OffsetUpdated": "_updated", "QueueAllocated": "_allocated", "QueueDropped": "_dropped",
        "PullRequested": "_requested", "PullFinished": "_finished", "PullPutOff": "_put_off", "NodeStarted": "_started",
        "MessagesPolled": "_polled", "ClientStopped": "_client_stopped",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {LATE_ANSWER: LATE_ANSWER_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._noted: dict[tuple[str, QueueKey], int] = {}
        self._pulled: dict[tuple[str, QueueKey], int] = {}
        """The offsets of pulls that were not answered yet."""
        self._of_before: dict[tuple[str, QueueKey], int] = {}
        """Such pulls of queues that were given up meanwhile."""
        self._late: dict[tuple[str, QueueKey], Update] = {}
        """What the answer to such a pull said."""
        self._handed_out: dict[tuple[str, QueueKey], Record] = {}
        """What was polled last."""
        self._stopped: dict[tuple[str, str], None] = {}
        """(process, group) of the consumers that have been stopped."""

    def _started(self, record: Record) -> None:
        for pulls in (self._pulled, self._of_before):
            for gone in [key for key in pulls if key[0] == record.target]:
                del pulls[gone]

    def _client_stopped(self, record: Record) -> None:
        self._stopped[record.node, record.group] = None

    def _requested(self, record: Record) -> None:
        self._pulled[of_consumer(record)] = record.queue_offset

    def _put_off(self, record: Record) -> None:
        self._pulled.pop(of_consumer(record), None)

    def _finished(self, record: Record) -> None:
        key = of_consumer(record)
        if not record.messages and self._of_before.get(key) == record.next_offset:
            self._late[key] = Update(record.ts_us, self._of_before.pop(key))
        else:
            self._pulled.pop(key, None)

    def _allocated(self, record: Record) -> None:
        self._noted.pop(of_consumer(record), None)

    def _dropped(self, record: Record) -> None:
        key = of_consumer(record)
        self._noted.pop(key, None)
        if key in self._pulled:
            self._of_before[key] = self._pulled.pop(key)

    def _polled(self, record: Record) -> None:
        """A consumer that polls notes what lies behind the messages that it hands out: none is left before them."""
        self.judged += 1
        self._handed_out[of_consumer(record)] = record
        if record.next_offset <= record.queue_offset:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            what = f"hands out offset {record.queue_offset} of {at}, and notes {record.next_offset}"
            self.found(record.row, f"{record.node} {what}")

    def _updated(self, record: Record) -> None:
        """Compare the offset with what the consumer holds at this moment."""
        self._look_at_poll(record)
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if not self.case.is_live or consumer is None:
            return
        queue = MessageQueue(record.topic, record.broker_name, record.queue_id)
        held = consumer.impl.rebalance_impl.process_queue_table.get(queue)
        if held is None or held.dropped or not held.queue_offset_max:
            return
        self.judged += 1
        key = of_consumer(record)
        expected = min([*held.msg_tree_map, *held.consuming_msg_orderly_tree_map], default=held.queue_offset_max + 1)
        if held.msg_count and self._late.get(key) == Update(record.ts_us, record.queue_offset):
            self.excuse(LATE_ANSWER)
            return
        before = self._noted.get(key, 0)
        self._noted[key] = record.queue_offset
        if record.queue_offset < before:
            self.found(record.row, f"{record.node} goes back from {before} to {record.queue_offset} in {queue}")
        is_behind = record.queue_offset < expected and not self.case.lab.world.tie_is_choice
        if is_behind and not self._nothing_between(record, expected):
            self.found(record.row, f"{record.node} came to {expected} in {queue}, and notes {record.queue_offset}")


    def _look_at_poll(self, record: Record) -> None:
        """What commits by itself commits at the begin of a poll what the polls before have handed out, and no more.

        Where a consumer was started again two threads may poll. An application that does nothing between two polls, or
        commits by hand, cannot be told apart: those of drawn worlds, whose thread has a name of its own, work a while.
        """
        if record.task != POLLING or (record.node, record.group) in self._stopped:
            return
        handed = self._handed_out.get(of_consumer(record))
        if handed is None or handed.ts_us != record.ts_us or not handed.queue_offset < record.queue_offset:
            return
        for client, group, _ in clients_in(self.case.lab, record.node) if self.case.is_live else ():
            if group == record.group and getattr(client, "is_auto_commit", False):
                self.found(record.row, f"{record.node} commits {record.queue_offset}, which it hands out just now")

    def _nothing_between(self, record: Record, expected: int) -> bool:
        """Does an orderly consumer's subscription leave out all from the noted offset to the first message it holds?

        It notes the offset behind the last consumed message, not that of the next one (ProcessQueue.commit in
        RocketMQ 5.3).
        """
        reader = self.case.readers.get(record.group)
        if reader is None or not reader.in_order or not reader.is_choosy(record.topic):
            return False
        broker = self.case.ledger.names.broker_of(record.broker_name)
        noted = Place(broker, record.topic, record.queue_id, record.queue_offset)
        return not self.case.ledger.consumption.wanted_between(reader, noted, expected)


class GivenUpIsWritten(Rule):
    """Who gives a queue up writes its offset first, so that the next owner does not consume it all again."""

    LOOKS: ClassVar[dict[str, str]] = {
        "OffsetUpdated": "_noted", "OffsetPersisted": "_persisted", "QueueDropped": "_dropped",
        "QueueAllocated": "_allocated", "NodeStarted": "_started",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LISTENER_AT_WORK: LISTENER_AT_WORK_TEXT, READ_NO_MORE: READ_NO_MORE_TEXT
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._updated: dict[tuple[str, QueueKey], Update] = {}
        self._written: dict[tuple[str, QueueKey], Update] = {}

    def _started(self, record: Record) -> None:
        self._updated = {key: at for key, at in self._updated.items() if key[0] != record.target}

    def _allocated(self, record: Record) -> None:
        key = of_consumer(record)
        self._updated.pop(key, None)
        self._written[key] = Update(record.ts_us, record.queue_offset)

    def _noted(self, record: Record) -> None:
        self._updated[of_consumer(record)] = Update(record.ts_us, record.queue_offset)

    def _persisted(self, record: Record) -> None:
        self._written[of_consumer(record)] = Update(record.ts_us, record.queue_offset)

    def _dropped(self, record: Record) -> None:
        """Compare what is noted with what is written, when a queue is given up."""
        key = of_consumer(record)
        updated = self._updated.pop(key, None)
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        written = self._written.get(key, Update(-SOON_US, 0))
        if updated is None or consumer is None:
            return
        self.judged += 1
        if updated.offset <= written.offset:
            return
        just_written = record.ts_us - SOON_US < written.ts_us <= updated.ts_us
        if record.reason == "the consumer ends" and just_written:
            self.excuse(LISTENER_AT_WORK)
            return
        if record.reason == UNSUBSCRIBED:
            self.excuse(READ_NO_MORE)
            return
        # Who cannot reach the broker, or does not know it any more, cannot write.
        if self.case.fault_times.none_between(record.ts_us - OVERLAP_US, record.ts_us):
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.node} gives {at} up and does not say that it came to {updated.offset}")


class LocalOffsetsAreKept(Rule):
    """The file of a consumer that broadcasts says of each queue what it wrote last, also while it does not have it.

    So it goes on there when a broker that was away is back (LocalFileOffsetStore.persistAll).
    """

    kinds = ("OffsetPersisted", "PowerLost")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._written: dict[tuple[str, str], dict[MessageQueue, int]] = {}
        """(process, group) -> queue -> the offset that was written last."""
        self._read: tuple[tuple[int, str, str], dict[MessageQueue, int]] = ((-1, "", ""), {})
        """When a file was read last, and what it said."""

    def on_event(self, record: Record) -> None:
        """Compare the file with what was written; a machine that loses power may lose it."""
        if record.kind == "PowerLost":
            self._written = {at: offsets for at, offsets in self._written.items() if at[0] != record.target}
            return
        store = self._store_of(record)
        if store is None:
            return
        written = self._written.setdefault((record.node, record.group), {})
        this = MessageQueue(record.topic, record.broker_name, record.queue_id)
        written[this] = record.queue_offset
        self.judged += 1
        said = self._said_at(record, store.path)
        if said.get(this) != record.queue_offset:
            # A process that was frozen may write twice at one moment.
            self._read = (-1, "", ""), {}
            said = self._said_at(record, store.path)
        # Of the others the offsets may be newer than the events that follow.
        wrong = [each for each in written if each not in said or (each == this and said[each] != record.queue_offset)]
        for queue in wrong:
            offset = written.pop(queue)
            self.found(record.row, f"{record.node} has written {offset} of {queue}, and the file has {said.get(queue)}")

    def _store_of(self, record: Record) -> LocalFileOffsetStore | None:
        consumer = push_consumer_of(self.case.lab, record.node, record.group) if self.case.is_live else None
        store = consumer.impl.offset_store if consumer is not None else None
        return store if isinstance(store, LocalFileOffsetStore) else None

    def _said_at(self, record: Record, path: str) -> dict[MessageQueue, int]:
        """What the file says at this moment; it is written once for the queues of which events tell side by side."""
        moment = (record.ts_us, path, record.node)
        if self._read[0] != moment:
            data = self.case.lab.world.nodes[record.node].disk.read_bytes(path)
            self._read = moment, OffsetSerializeWrapper.decode(data).offset_table
        return self._read[1]


class ProgressIsKept(Rule):
    """What was committed 11 s before a process ended is known when it was started again.

    A broker that was shut down knows all that was committed before. What a slave takes over from its master counts as
    committed there, also when it is less.
    """

    kinds = (
        "OffsetCommitted", "OffsetUpdated", "SlaveSynchronized", "BrokerStarted", "QueueAllocated",
        "SubscriptionGroupDeleted",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._history: dict[tuple[str, QueueKey], list[Update]] = {}

    def on_event(self, record: Record) -> None:
        """Note the offsets, and compare after a restart."""
        if record.kind == "OffsetCommitted":
            self._note(record, (record.node, (record.group, record.node, record.topic, record.queue_id)))
        elif record.kind == "SlaveSynchronized":
            if record.table == "GET_ALL_CONSUMER_OFFSET":
                self._taken_over(record)
        elif record.kind == "OffsetUpdated":
            if self._is_broadcasting(record):
                self._note(record, (record.node, (record.group, record.broker_name, record.topic, record.queue_id)))
        elif record.kind == "SubscriptionGroupDeleted":
            of_group = [key for key in self._history if key[0] == record.node and key[1][0] == record.group]
            for key in of_group:
                del self._history[key]
        elif record.kind == "BrokerStarted":
            self._broker_is_back(record)
        elif self._has_ended(record.node) and self._is_broadcasting(record):
            key = (record.node, (record.group, record.broker_name, record.topic, record.queue_id))
            self._compare(record, key, record.queue_offset)
            self._history.pop(key, None)

    def _taken_over(self, record: Record) -> None:
        """Note what a slave knows now; what happened while the world was built is noted with the next one."""
        if not self.case.is_live:
            return
        manager = self.case.broker(record.node).running().consumer_offset_manager
        for key, history in self._history.items():
            if key[0] == record.node:
                group, _, topic, queue_id = key[1]
                history.append(Update(record.ts_us, manager.query_offset(group, topic, queue_id)))

    def _note(self, record: Record, key: tuple[str, QueueKey]) -> None:
        self._history.setdefault(key, []).append(Update(record.ts_us, record.queue_offset))

    def _is_broadcasting(self, record: Record) -> bool:
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        return consumer is not None and consumer.impl.message_model is MessageModel.BROADCASTING

    def _broker_is_back(self, record: Record) -> None:
        if not self._has_ended(record.node):
            return
        manager = self.case.broker(record.node).running().consumer_offset_manager
        for key in [key for key in self._history if key[0] == record.node]:
            group, _, topic, queue_id = key[1]
            self._compare(record, key, manager.query_offset(group, topic, queue_id))
            del self._history[key]

    def _has_ended(self, name: str) -> bool:
        processes = self.case.ledger.processes
        return name in processes.stopped_hard_us or name in processes.shut_down_us

    def _compare(self, record: Record, key: tuple[str, QueueKey], offset: int) -> None:
        processes = self.case.ledger.processes
        shut_us = processes.shut_down_us.get(record.node, -1)
        stopped_us = processes.stopped_hard_us.get(record.node, -1)
        ended_us = max(shut_us, stopped_us)
        written_us = shut_us if shut_us > stopped_us else stopped_us - PERSIST_US
        history = self._history.get(key, [])
        old = [update for update in history if update.ts_us < written_us]
        # A process that hung, or whose disk was full, may have had to wait with writing.
        if not old or not self.case.fault_times.none_between(ended_us - PERSIST_US, ended_us - 1):
            return
        self.judged += 1
        least = min(update.offset for update in (old[-1], *history[len(old) :]))
        if offset < least:
            group, broker, topic, queue_id = key[1]
            at = f"{broker} {topic} queue {queue_id}"
            self.found(record.row, f"{group} was at {least} in {at}, and begins at {offset}")
