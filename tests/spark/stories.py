"""Worlds of a few events that are written by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mqlab.protocol.hashing import tags_code
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import FIRST, columns_of, field_types
from mqlab.trace.recorder import JsonLinesRecorder

BROKER, READER, SHOP = "broker-a", "reader", "shop"
NOTHING = {"int": 0, "str": "", "bool": False}
SECOND_US = 1_000_000


class Story:
    """A world, told event by event, a millisecond after the other; what is not said of an event is 0 or empty."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.now_us = 0
        self.clocks: dict[str, int] = defaultdict(int)
        """How far the clock of a machine is ahead, us."""

    def tell(self, node: str, kind: str, **fields: Any) -> None:
        self.now_us += 1_000
        values = [fields.pop(name, NOTHING[field_types()[name]]) for name in columns_of(kind)[FIRST:]]
        assert not fields, f"{kind} has no {fields}"
        self.rows.append(
            (len(self.rows), 0, self.now_us + self.clocks[node], node, "task", -1, -1, kind, *values)
        )  # fmt: skip

    def begin(self, expression: str = "*") -> None:
        self.tell(BROKER, "BrokerStarted", broker_name="a")
        self.tell(BROKER, "SubscriptionChanged", group="G", topic="T", expression=expression)
        self.tell(READER, "QueueAllocated", group="G", topic="T", broker_name="a")

    def try_to_send(self, key: str) -> None:
        self.tell(SHOP, "SendAttempted", topic="T", broker_name="a", msg_id=key)

    def store(self, key: str, offset: int, topic: str = "T", at: int | None = None, tag: str = "") -> None:
        at = offset * 100 if at is None else at
        place = {"topic": topic, "queue_offset": offset, "commit_log_offset": at}
        self.tell(BROKER, "MessageStored", **place, store_size=100, unique_key=key)
        self.tell(BROKER, "MessageDispatched", **place, tags_code=tags_code(tag))

    def acknowledge(self, key: str, offset: int = 0) -> None:
        self.tell(SHOP, "SendSucceeded", topic="T", broker_name="a", queue_offset=offset, msg_id=key)

    def send(self, key: str, offset: int, tag: str = "") -> None:
        self.try_to_send(key)
        self.store(key, offset, tag=tag)
        self.acknowledge(key, offset)

    def pull(self, first: int, behind: int, group: str = "G", topic: str = "T") -> None:
        self.tell(
            BROKER, "PullAnswered", group=group, topic=topic, queue_offset=first, next_offset=behind,
            messages=behind - first, status="FOUND",
        )  # fmt: skip

    def call(self, key: str, offset: int, group: str = "G", node: str = READER, times: int = 0) -> None:
        place = {"group": group, "topic": "T", "broker_name": "a", "queue_offset": offset, "msg_id": key}
        self.tell(node, "ConsumeStarted", **place, messages=1, reconsume_times=times)
        self.tell(node, "ConsumeFinished", **place, status="CONSUME_SUCCESS", cost_us=1_000)

    def commit(self, offset: int, group: str = "G") -> None:
        self.tell(BROKER, "OffsetCommitted", group=group, topic="T", queue_offset=offset)

    def recover(self, end: int) -> None:
        self.tell(BROKER, "StoreRecovered", commit_log_max_offset=end)

    def ask(self, connection: int, caller: str, server: str, there_us: int = 1_000, back_us: int = 1_000) -> None:
        """A request and its answer, each of which takes so long."""
        name = {"connection": connection, "opaque": 1}
        asked, answered = {"local": caller, "remote": server}, {"local": server, "remote": caller}
        self.tell(caller, "RequestSent", **name, **asked)
        self.now_us += there_us - 1_000
        self.tell(server, "RequestReceived", **name, **answered)
        self.tell(server, "ResponseSent", **name, **answered)
        self.now_us += back_us - 1_000
        self.tell(caller, "ResponseReceived", **name, **asked)


def record_stories(directory: Path, stories: Mapping[str, Callable[[Story], None]]) -> None:
    """Record each story in a file of its name."""
    for name, tell in stories.items():
        story = Story()
        tell(story)
        with JsonLinesRecorder(directory / f"{name}.jsonl") as recorder:
            for row in story.rows:
                recorder(row)
