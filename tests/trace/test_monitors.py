"""Monitors: a small judge notes what breaks its rule, and a verdict shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.trace.events.client import SendSucceeded
from mqlab.trace.events.store import MessageStored
from mqlab.trace.history import History
from mqlab.trace.monitors import Monitor, judge
from mqlab.trace.record import Record

Play = Callable[[Any], History]


def stored(key: str) -> tuple[str, Any]:
    return "broker-a", MessageStored("TopicTest", 0, 0, 0, 100, key)


def acknowledged(key: str) -> tuple[str, Any]:
    return "producer-1", SendSucceeded("TopicTest", "broker-a", 0, 0, key, "SEND_OK")


class StoredFirst(Monitor):
    """Nothing is acknowledged that no broker has stored."""

    kinds = ("MessageStored", "SendSucceeded")

    def __init__(self) -> None:
        super().__init__()
        self._stored: set[str] = set()

    def on_event(self, record: Record) -> None:
        if record.kind == "MessageStored":
            self._stored.add(record.unique_key)
        elif record.msg_id not in self._stored:
            self.broken(record, f"message {record.msg_id} was acknowledged and is in no store")


class NothingIsSentTwice(Monitor):
    """No message is acknowledged twice."""

    kinds = ("SendSucceeded",)

    def on_event(self, record: Record) -> None:
        """This one is content."""


def test_a_verdict_names_the_rule_and_shows_the_events_that_broke_it(play: Play) -> None:
    history = play([(1, *acknowledged("A")), (2, *stored("B")), (3, *acknowledged("B"))])
    stored_first, sent_once = judge(history.rows(), StoredFirst(), NothingIsSentTwice())
    assert not stored_first.holds
    assert str(stored_first).splitlines() == [
        "BROKEN 1 times: Nothing is acknowledged that no broker has stored.",
        "message A was acknowledged and is in no store",
        f"  {history[0]}",
    ]
    assert str(sent_once) == "holds: No message is acknowledged twice."
