"""Rules of the questions that a broker asks about half messages which nobody has ended."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT, GAP, GAP_TEXT
from mqlab.explore.rules_of_transactions import LOST_AGAIN, LOST_AGAIN_TEXT, STORED
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import CID_SYS_RMQ_TRANS, RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC, RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.trace.record import Record

ASKED_US = 80_000_000
"""A half message is asked about at the first round, each 30 s, in which its immunity is over: 6 s, or up to 20 of its
own; the rest is for a round that takes long.
"""


class QuestionsAreCounted(Rule):
    """Each copy of a half message that is made for a question counts one more than the one before."""

    kinds = ("HalfMessageHidden", "HalfMessageStoredAgain", "BrokerStarted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._times: dict[tuple[str, int], int] = {}
        """(broker, half offset) -> what the copy there counts."""

    def on_event(self, record: Record) -> None:
        """Compare a copy with the one that it is made of; what a broker that starts again goes on with is not known."""
        if record.kind == "BrokerStarted":
            self._times = {key: times for key, times in self._times.items() if key[0] != record.node}
        elif record.kind == "HalfMessageHidden":
            if record.status in STORED:
                self._times[record.node, record.half_offset] = 0
        else:
            before = self._times.get((record.node, record.half_offset))
            self.judged += before is not None
            if before is not None and record.check_times != before + 1:
                self.found(record.row, f"copy {record.check_times} of {record.unique_key} is made of copy {before}")
            self._times[record.node, record.new_half_offset] = record.check_times


class RelayedNamesTheHalf(Rule):
    """A proxy tells a broker the end of a half message where it lies there, also when the broker has asked.

    Java: TransactionDataManager keeps the place of each half message that was sent through a proxy, or asked about.
    """

    kinds = ("HalfMessageHidden", "HalfMessageStoredAgain", "EndTransactionRelayed")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._places: dict[str, list[tuple[str, int]]] = {}
        """Unique key -> (broker, half offset) of the message and of its copies."""

    def on_event(self, record: Record) -> None:
        """Compare the place that is named with those that are known."""
        if record.kind == "HalfMessageHidden":
            if record.status in STORED:
                self._places.setdefault(record.unique_key, []).append((record.node, record.half_offset))
        elif record.kind == "HalfMessageStoredAgain":
            self._places.setdefault(record.unique_key, []).append((record.node, record.new_half_offset))
        elif places := self._places.get(record.msg_id):
            self.judged += 1
            if (self.case.ledger.names.broker_of(record.broker_name), record.half_offset) not in places:
                text = f"{record.node} ends {record.msg_id} at half offset {record.half_offset}"
                lies = " and ".join(f"{broker} {offset}" for broker, offset in places)
                self.found(record.row, f"{text} of {record.broker_name}, and it lies at {lies}")


class QuestionsStop(Rule):
    """A half message is asked about as often as transactionCheckMax says, at the most; what is put aside is kept.

    It lies in TRANS_CHECK_MAX_TIME_TOPIC then. A producer that sends again stores another half message, and a round
    that was under way when its broker stopped is begun anew: each copy is counted by those that it was made from.
    """

    kinds = ("HalfMessageStoredAgain", "TransactionChecked", "HalfMessageGivenUp")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LOST_AGAIN: LOST_AGAIN_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, DELETED: DELETED_TEXT
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._asked: dict[tuple[str, int], int] = {}
        """(broker, half offset) of a copy -> how often somebody was asked about it and those before it."""
        self._put_aside: dict[tuple[str, str], Record] = {}

    def on_event(self, record: Record) -> None:
        """Count the questions, and note what is put aside."""
        key = (record.node, record.unique_key)
        if record.kind == "HalfMessageStoredAgain":
            before = self._asked.get((record.node, record.half_offset), 0)
            self._asked[record.node, record.new_half_offset] = before
            return
        if record.kind == "HalfMessageGivenUp":
            if record.stored:
                self._put_aside[key] = record
            return
        self.judged += 1
        copy = (record.node, record.half_offset)
        self._asked[copy] = asked = self._asked.get(copy, 0) + 1
        # How often it was asked about stands in the newest copy, which a loss of power may take.
        if not self.case.is_live or record.node in self.case.ledger.processes.power_lost_us:
            return
        most = self.case.broker(record.node).running().broker_config.transaction_check_max
        if asked > most:
            self.found(record.row, f"question {asked} about half message {record.unique_key}, and {most} are allowed")

    def at_end(self) -> None:
        """Look where what was put aside lies."""
        found = self.case.contents.found.values()
        topic = RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC
        aside = [each for each in found if each.place.topic == topic]
        there = {(each.place.broker, each.unique_key) for each in aside}
        stores = self.case.ledger.stores
        for key, record in self._put_aside.items():
            broker, unique_key = key
            self.judged += 1
            if key in there:
                continue
            if unique_key in stores.in_gaps or unique_key in stores.in_passed_over:
                self.excuse(GAP if unique_key in stores.in_gaps else STALE)
            elif unique_key in stores.lost_keys and broker in self.case.ledger.processes.power_lost_us:
                self.excuse(LOST_AGAIN)
            elif any(place.broker == broker for place in stores.deleted):
                self.excuse(DELETED)
            else:
                self.found(record.row, f"half message {unique_key} was put aside, and is not in {topic}")


class QuestionsComeAtTheirTime(Rule):
    """Nobody is asked about a half message that is still immune, and behind that time somebody is asked soon.

    It is immune for transactionTimeOut, or for as long as it says itself: then its producer is refused behind that
    time, and not before. Clocks that go wrong are not judged.
    """

    kinds = (
        "HalfMessageHidden", "HalfMessageStoredAgain", "TransactionChecked", "TransactionEnded", "ClockDrifted",
        "BrokerStarted",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {TORN: TORN_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._own_ms: dict[str, int] = {}
        """How long a message says that it is immune."""
        self._copied: dict[tuple[str, int], Record] = {}
        """(broker, half offset) -> how a copy came there."""
        self._drifted = False
        self._started_us: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Note the copies, and compare the time of a question with that of the message."""
        if record.kind == "ClockDrifted":
            self._drifted = True
        elif record.kind == "BrokerStarted":
            self._started_us[record.node] = record.ts_us
        elif record.kind == "HalfMessageHidden":
            if record.status in STORED:
                self._hidden(record)
        elif record.kind == "HalfMessageStoredAgain":
            self._copied[record.node, record.new_half_offset] = record
        elif not self._drifted and record.unique_key in self.case.ledger.sends.attempted:
            self._compare(record)

    def _compare(self, record: Record) -> None:
        """Compare the age of a message with its immunity, when its producer is asked, or says how it ends."""
        time_out_ms = self.case.broker(record.node).running().broker_config.transaction_time_out
        own_ms = self._own_ms.get(record.unique_key)
        age_ms = (record.ts_us - self.case.ledger.sends.attempted[record.unique_key]) // 1_000
        if record.kind == "TransactionChecked":
            self.judged += 1
            immune_ms = time_out_ms if own_ms is None else own_ms
            if age_ms < immune_ms and not record.topic and record.node in self.case.ledger.processes.power_lost_us:
                self.excuse(TORN)
            elif age_ms < immune_ms:
                self.found(record.row, f"a half message that is {age_ms} ms old is immune for {immune_ms} ms")
        elif not record.from_check:
            self.judged += 1
            is_refused = record.code == ResponseCode.ILLEGAL_OPERATION
            if is_refused and (own_ms is None or age_ms < max(own_ms, time_out_ms)):
                self.found(record.row, f"the end of a half message is refused, which is immune and {age_ms} ms old")

    def _hidden(self, record: Record) -> None:
        self._copied[record.node, record.half_offset] = record
        message = self.case.broker(record.node).store.look_message_by_offset(record.log_offset)
        own = message.properties.get(MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS) if message is not None else None
        if own is not None and own.isdigit():
            self._own_ms[record.unique_key] = int(own) * 1_000

    def at_end(self) -> None:
        """Look for what waits and should have been asked about."""
        now_us = self.case.lab.world.now_us
        begin_us = now_us - ASKED_US
        if self._drifted or not self.case.fault_times.none_between(begin_us, now_us):
            return
        for found in self.case.contents.found.values():
            broker, offset = found.place.broker, found.place.queue_offset
            copied = self._copied.get((broker, offset))
            if found.place.topic != RMQ_SYS_TRANS_HALF_TOPIC or copied is None or copied.ts_us > begin_us:
                continue
            if self._started_us.get(broker, now_us) > begin_us or copied.unique_key != found.unique_key:
                continue
            self.judged += 1
            offsets = self.case.broker(broker).running().consumer_offset_manager
            if offset >= offsets.query_offset(CID_SYS_RMQ_TRANS, RMQ_SYS_TRANS_HALF_TOPIC, 0):
                waits_ms = (now_us - copied.ts_us) // 1_000
                self.found(copied.row, f"no round has come to half message {found.unique_key} for {waits_ms} ms")


class QuestionsNameTheCopy(Rule):
    """Whoever stores a half message again to ask about it asks, and names the new copy: the old one is done with."""

    kinds = (
        "MessageStored", "HalfMessageStoredAgain", "TransactionChecked", "TransactionRoundEnded", "NodeCrashed",
        "PowerLost",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._to_ask: dict[str, Record] = {}
        """Broker -> the copy that it has made and not asked about yet."""
        self._newest: dict[tuple[str, str], int] = {}
        """(broker, unique key) -> where its newest half message was stored."""

    def on_event(self, record: Record) -> None:
        """Compare the question with the copy, and the copy with what was stored."""
        if record.kind == "MessageStored":
            if record.topic == RMQ_SYS_TRANS_HALF_TOPIC:
                self._newest[record.node, record.unique_key] = record.queue_offset
        elif record.kind in ("NodeCrashed", "PowerLost"):
            self._to_ask.pop(record.target, None)
        elif record.kind != "TransactionChecked":
            copy = self._to_ask.pop(record.node, None)
            self.judged += copy is not None
            if copy is not None:
                self.found(copy.row, f"half message {copy.unique_key} was stored again, and nobody was asked about it")
            if record.kind == "HalfMessageStoredAgain" and record.reason == "asked":
                self._to_ask[record.node] = record
                self.judged += 1
                newest = self._newest.get((record.node, record.unique_key), record.new_half_offset)
                if record.new_half_offset != newest:
                    self.found(record.row, f"the copy at {newest} of {record.unique_key} is taken for another one")
        else:
            self.judged += 1
            copy = self._to_ask.pop(record.node, None)
            if copy is None or (copy.unique_key, copy.new_half_offset) != (record.unique_key, record.half_offset):
                at = f"{record.half_offset} of {record.unique_key}"
                self.found(record.row, f"a question names the copy at {at}, which is not the new one")
