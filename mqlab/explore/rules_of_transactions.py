"""Rules of transactions: nobody sees a half message, what was let go is there, and nothing is forgotten."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_storing import (
    DELETED,
    DELETED_TEXT,
    GAP,
    GAP_TEXT,
    UNFLUSHED,
    UNFLUSHED_TEXT,
    may_lose_the_unflushed,
)
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.protocol.topics import (
    CID_SYS_RMQ_TRANS,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
    is_system_topic,
)
from mqlab.trace.record import Record

WRITTEN_DOWN_US = 7_000_000
"""An end is written down at the second look of a thread that looks every 3 s, at the latest."""

COMMIT, ROLLBACK = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE"

STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
"""With any other status a half message lies nowhere, and its offsets mean nothing."""

LOST_AGAIN = "half messages stored again without a flush"
LOST_AGAIN_TEXT = (
    "A half message that is asked about is stored again, and its copy is not waited for, also with SYNC_FLUSH. The "
    "check's progress may be written before that copy is flushed: when the machine then loses power nobody is asked "
    "any more."
)
NOT_WRITTEN = "an end that is not written down"
NOT_WRITTEN_TEXT = (
    "What ended is written into the op topic for many half messages at a time. A store that refuses that message, as "
    "on a full disk, is not tried again: all of them are asked about. So they are where the store takes it, and has no "
    "room for its entry in the queue."
)


class HalfMessagesAreHidden(Rule):
    """A message of a transaction is stored where consumers read only once its producer has said that it may be."""

    kinds = (
        "HalfMessageHidden", "LocalTransactionExecuted", "LocalTransactionRemembered", "TransactionResolved",
        "MessageStored",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._half: dict[str, None] = {}
        self._committed: dict[str, None] = {}

    def on_event(self, record: Record) -> None:
        """Note what is hidden and what was said of it, and judge what is stored."""
        if record.kind == "HalfMessageHidden":
            self._half[record.unique_key] = None
        elif record.kind != "MessageStored":
            if record.local_state == COMMIT:
                self._committed[record.msg_id] = None
        elif record.unique_key in self._half and not is_system_topic(record.topic):
            self.judged += 1
            if record.unique_key not in self._committed:
                self.found(record.row, f"message {record.unique_key} is in {record.topic} and nobody has committed it")


class CommittedGoesWhereItWasSent(Rule):
    """What a transaction lets go is stored in the queue that its producer has chosen for it."""

    kinds = ("HalfMessageHidden", "MessageStored")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._chosen: dict[tuple[str, str, str], list[int]] = {}
        """(broker, unique key, topic) -> the queues of its half messages: more than one after a retry."""

    def on_event(self, record: Record) -> None:
        """Compare where a message is stored with what its half message says."""
        if not record.unique_key:
            return
        message = record.node, record.unique_key, record.topic
        if record.kind == "HalfMessageHidden":
            if record.status in STORED:
                self._chosen.setdefault(message, []).append(record.queue_id)
            return
        chosen = self._chosen.get(message)
        if chosen is not None:
            self.judged += 1
            if record.queue_id not in chosen:
                where = f"queue {record.queue_id} of {record.topic}, and was sent to {chosen[0]}"
                self.found(record.row, f"message {record.unique_key} is stored in {where}")


class EndsAreSaid(Rule):
    """A transaction ends as its producer's listener said, once that has said anything."""

    kinds = ("LocalTransactionExecuted", "LocalTransactionRemembered", "TransactionResolved", "TransactionEnded")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._said: dict[str, dict[str, None]] = {}
        """Unique key -> all that listeners have said of it."""

    def on_event(self, record: Record) -> None:
        """Compare the end with what was said."""
        if record.kind != "TransactionEnded":
            self._said.setdefault(record.msg_id, {})[record.local_state] = None
            return
        said = self._said.get(record.unique_key)
        self.judged += said is not None
        if said is not None and record.code == 0 and record.local_state not in said:
            words = " and ".join(said)
            self.found(record.row, f"{record.unique_key} ended with {record.local_state}, and was said to be {words}")


class EndsAreKept(Rule):
    """A message whose commit was carried out can be read where it belongs; one of a rollback cannot."""

    kinds = ("TransactionEnded",)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        UNFLUSHED: UNFLUSHED_TEXT, DELETED: DELETED_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ends: dict[str, Record] = {}

    def on_event(self, record: Record) -> None:
        """Note what was carried out; a commit outweighs a rollback."""
        known = self._ends.get(record.unique_key)
        outweighed = known is not None and known.local_state == COMMIT and record.local_state != COMMIT
        if record.code == 0 and record.local_state in (COMMIT, ROLLBACK) and not outweighed:
            self._ends[record.unique_key] = record

    def at_end(self) -> None:
        """Look where the messages are."""
        there: dict[str, bool] = {}
        for found in self.case.contents.found.values():
            if not is_system_topic(found.place.topic):
                # An entry of a lost message may point to another message by now, also to a half message.
                is_stale = there.get(found.unique_key, True) and self.case.is_stale(found.place)
                there[found.unique_key] = is_stale
        stores = self.case.ledger.stores
        for key, record in self._ends.items():
            if key in stores.forgotten_keys:
                continue
            self.judged += 1
            if record.local_state == ROLLBACK:
                if there.get(key):
                    self.excuse(STALE)
                elif key in there:
                    self.found(record.row, f"message {key} was rolled back and is in {record.topic}")
            elif key not in there:
                if key in stores.lost_keys and may_lose_the_unflushed(self.case, record.node):
                    self.excuse(UNFLUSHED)
                elif key in stores.in_gaps or key in stores.in_passed_over:
                    self.excuse(GAP)
                elif any(stores.stored[p].unique_key == key for p in stores.deleted if p in stores.stored):
                    self.excuse(DELETED)
                elif any(map(self.case.is_stale, self._places_of(key))):
                    self.excuse(STALE)
                else:
                    self.found(record.row, f"message {key} was committed and is not in {record.topic}")

    def _places_of(self, key: str) -> list[Place]:
        stored = self.case.ledger.stores.stored
        return [place for place, kept in stored.items() if kept.unique_key == key and not is_system_topic(place.topic)]


class HalfMessagesEnd(Rule):
    """Every half message is ended, put aside, or will be asked about."""

    kinds = ("TransactionEnded", "HalfMessageGivenUp", "HalfMessageHidden")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LOST_AGAIN: LOST_AGAIN_TEXT, GAP: GAP_TEXT, TORN: TORN_TEXT, DELETED: DELETED_TEXT
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._open: dict[str, Record] = {}

    def on_event(self, record: Record) -> None:
        """Note what is open."""
        if record.kind == "HalfMessageHidden":
            if record.status == "PUT_OK":
                self.judged += 1
                self._open[record.unique_key] = record
        elif record.kind == "HalfMessageGivenUp" or (record.code == 0 and record.local_state in (COMMIT, ROLLBACK)):
            self._open.pop(record.unique_key, None)

    def at_end(self) -> None:
        """Look whether what is open lies behind the check's progress."""
        waits = {
            found.unique_key
            for found in self.case.contents.found.values()
            if found.place.topic == RMQ_SYS_TRANS_HALF_TOPIC
            and found.place.queue_offset >= self._checked_up_to(found.place.broker)
        }
        stores = self.case.ledger.stores
        for key, record in self._open.items():
            if key in waits:
                continue
            if key in stores.in_gaps or key in stores.in_passed_over:
                self.excuse(GAP)
            elif Place(record.node, RMQ_SYS_TRANS_HALF_TOPIC, 0, record.half_offset) in stores.deleted:
                self.excuse(DELETED)
            elif key in stores.lost_keys and record.node in self.case.ledger.processes.power_lost_us:
                self.excuse(LOST_AGAIN)
            elif self._newest_is_torn(record.node, key):
                self.excuse(TORN)
            else:
                self.found(record.row, f"half message {key} is neither ended nor going to be asked about")

    def _newest_is_torn(self, broker: str, key: str) -> bool:
        """Has the copy that is to be asked about lost its properties? Those before it are done with."""
        copies = [
            place
            for place, kept in self.case.ledger.stores.stored.items()
            if kept.unique_key == key and place.broker == broker and place.topic == RMQ_SYS_TRANS_HALF_TOPIC
        ]
        return bool(copies) and self.case.is_torn(max(copies))

    def _checked_up_to(self, broker: str) -> int:
        offsets = self.case.broker(broker).running().consumer_offset_manager
        return offsets.query_offset(CID_SYS_RMQ_TRANS, RMQ_SYS_TRANS_HALF_TOPIC, 0)


class EndedIsLeftAlone(Rule):
    """A broker that has been told an end, and has had the time to write it down, asks no more.

    Each copy of a half message is ended by itself: an end that comes behind a question is about the copy before it.
    """

    kinds = (
        "TransactionEnded", "TransactionOpWritten", "DispatchStalled", "HalfMessageStoredAgain", "BrokerStarted",
        "NodeThawed", "DiskHung", "DiskUnhung", "DiskSlowed", "DiskQuick",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {NOT_WRITTEN: NOT_WRITTEN_TEXT, STALE: STALE_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ended_us: dict[tuple[str, int], int] = {}
        """(broker, half offset) -> when it was told the end."""
        self._refused_us: dict[str, list[int]] = {}
        """Broker -> when its store refused an op message, or had no room for an entry."""
        self._hung: dict[str, None] = {}
        """Machines whose disks hang, or are slow: there an end waits for what is being written."""

    def on_event(self, record: Record) -> None:
        """Note ends, forget those of a broker that was stopped or could not write, and judge questions."""
        if record.kind == "TransactionEnded":
            if record.code == 0 and record.local_state in (COMMIT, ROLLBACK) and record.node not in self._hung:
                self.judged += 1
                self._ended_us.setdefault((record.node, record.half_offset), record.ts_us)
        elif record.kind == "DispatchStalled" or (record.kind == "TransactionOpWritten" and record.op_offset < 0):
            self._refused_us.setdefault(record.node, []).append(record.ts_us)
        elif record.kind == "HalfMessageStoredAgain":
            self._asked(record)
        elif record.kind != "TransactionOpWritten":
            stopped = record.node if record.kind == "BrokerStarted" else record.target
            if record.kind in ("DiskHung", "DiskSlowed"):
                self._hung[stopped] = None
            elif record.kind in ("DiskUnhung", "DiskQuick"):
                self._hung.pop(stopped, None)
            self._ended_us = {key: us for key, us in self._ended_us.items() if key[0] != stopped}

    def _asked(self, record: Record) -> None:
        ended_us = self._ended_us.get((record.node, record.half_offset), record.ts_us)
        if record.reason != "asked" or record.ts_us - ended_us <= WRITTEN_DOWN_US:
            return
        if any(0 <= us - ended_us <= WRITTEN_DOWN_US for us in self._refused_us.get(record.node, ())):
            self.excuse(NOT_WRITTEN)
        elif self._stands_at_a_stale_entry(record.node):
            self.excuse(STALE)
        else:
            self.found(record.row, f"message {record.unique_key} is ended and asked about")

    def _stands_at_a_stale_entry(self, node: str) -> bool:
        """Is the next op message an entry behind which there is none, since the machine has lost power?

        A round that is given no more than one entry at a time (maxTransferCountOnMessageInMemory) reads no further.
        """
        if not self.case.is_live or not self.case.broker(node).is_up():
            return False
        offsets = self.case.broker(node).running().consumer_offset_manager
        at = max(0, offsets.query_offset(CID_SYS_RMQ_TRANS, RMQ_SYS_TRANS_OP_HALF_TOPIC, 0))
        return self.case.is_stale(Place(node, RMQ_SYS_TRANS_OP_HALF_TOPIC, 0, at))
