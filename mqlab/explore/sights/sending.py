"""Goals of sending: what producers live through before a message is stored, or is not."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.codes import ResponseCode
from mqlab.trace.record import Record


class SightsOfSending(Sights):
    """Sending: tries, brokers that refuse, batches, and what a producer never learns."""

    SUBJECT = "sending"
    SEEN = (
        seen(
            "send-goes-to-another-broker", "QueueSelected",
            "A producer whose try has failed at one broker tries another one.",
            lambda r: r.last_broker not in ("", r.broker_name),
        ),
        seen(
            "send-is-given-up-after-several-tries", "SendFailed",
            "A producer gives a message up that it has tried more than once.", lambda r: r.attempts > 1,
        ),
        seen(
            "send-without-a-route", "SendFailed",
            "A producer gives a message up that it could not try, as it knows no route.", attempts=0,
        ),
        seen(
            "send-is-not-tried-again", "SendAttemptFailed",
            "A try fails in a way that is not tried again.", retriable=False,
        ),
        seen(
            "batch-is-stored", "SendSucceeded", "A producer is told that a batch is stored.",
            lambda r: "," in r.msg_id,
        ),
        seen(
            "flush-takes-too-long", "SendSucceeded",
            "A producer is told that its message is stored and not flushed.", send_status="FLUSH_DISK_TIMEOUT",
        ),
        seen(
            "broker-is-avoided", "FaultItemUpdated",
            "A producer avoids a broker for a time, since a try took long or failed.",
            lambda r: r.not_available_ms > 0,
        ),
        seen(
            "broker-answers-busy-at-once", "RequestRefused",
            "A broker whose threads and queue are full answers SYSTEM_BUSY before anybody looks at the request.",
            lambda r: r.response_code == ResponseCode.SYSTEM_BUSY and "[OVERLOAD]" in r.reason,
        ),
        seen(
            "page-cache-is-busy", "RequestRefused",
            "A broker refuses to store, since a put holds the lock of its log for a second and more.",
            lambda r: r.response_code == ResponseCode.SYSTEM_BUSY and "[REJECTREQUEST]" in r.reason,
        ),
        seen(
            "request-waits-too-long-for-a-thread", "RequestTimedOutInQueue",
            "A request that has waited too long for a thread is answered SYSTEM_BUSY.",
        ),
        seen(
            "topic-is-made-by-a-send", "TopicCreated",
            "A broker makes a topic because somebody sends to it.", origin="template",
        ),
        seen(
            "send-is-refused-by-the-store", "PutRefused", "A store refuses a message.",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "async-send-is-tried-again": "A message that is sent without waiting is tried again.",
        "one-way-message-is-lost": "A message that was sent one-way is in no store in the end, and nobody was told.",
        "message-is-stored-twice": "A message is stored twice, since its producer did not hear of the first time.",
        "stored-message-counts-as-failed": "A producer gives a message up that is stored all the same.",
    }
    FOLLOWS = ("SendAttempted", "SendAttemptFailed", "SendFailed", "MessageSendAnswered")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._async: dict[str, None] = {}
        """The messages that were sent without waiting."""
        self._one_way: dict[str, Record] = {}
        self._stored: Counter[str] = Counter()

    def follow(self, record: Record) -> None:
        """Note what is tried and what is stored."""
        if record.kind == "SendAttempted":
            if record.mode == "ONEWAY":
                self._one_way[record.msg_id] = record
            elif record.mode == "ASYNC":
                self._async[record.msg_id] = None
        elif record.kind == "SendAttemptFailed":
            if record.retriable and record.msg_id in self._async:
                self.reach("async-send-is-tried-again", record)
        elif record.kind == "MessageSendAnswered":
            if record.status == "PUT_OK":
                self._stored[record.unique_key] += 1
                if self._stored[record.unique_key] == 2:
                    self.reach("message-is-stored-twice", record)
        elif record.kind == "SendFailed" and record.msg_id in self._stored:
            self.reach("stored-message-counts-as-failed", record)

    def at_end(self) -> None:
        """Look which of the messages that were sent one-way are anywhere."""
        keys = {found.unique_key for found in self.case.contents.found.values()}
        for msg_id, record in self._one_way.items():
            if msg_id not in keys and (msg_id not in self._stored or msg_id in self.case.ledger.stores.lost_keys):
                self.reach("one-way-message-is-lost", record)
