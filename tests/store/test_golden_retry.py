"""A real broker's queue of `retry` and mqlab's agree in what they hold: the same sends, the same listeners, here anew.

The consumer group with an SQL92 filter (G_SQL) is left out: its messages are sent and compared, but not consumed.
Where consume threads or groups raced in the recording, the order inside of one round of tries is not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, MessageQueue
from mqlab.client import ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.client.consumer.offset_serialize_wrapper import OffsetSerializeWrapper
from mqlab.protocol.record import decode_record

GOLDEN = Path(__file__).parents[1] / "golden" / "store"
SYSTEM_PROPERTIES = {"CLUSTER", "MSG_REGION", "TRACE_ON", "UNIQ_KEY", "WAIT", "KEYS", "TAGS"}
TIMED_PROPERTIES = {"MAX_OFFSET", "CONSUME_START_TIME"}
"""Present or not, but the value depends on when the message was pulled."""
SENT_AFTER_MS = 3_600
"""From the start of the consumers: new groups pull their retry queues 21 s after it, 17.4 s after the sends here."""
RETRIES, SCHEDULED = 12, 15


def n_of(body: str) -> int:
    """The number at the end of every body: "lv0 x 4" is message 4 of its topic."""
    return int(body.rsplit(maxsplit=1)[-1])


class Again:
    """The recorded scenario, played in mqlab."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.lab = Lab(seed=11)
        self.lab.name_server()
        self.broker = self.lab.broker("broker-a")
        for topic in ("GoldenRetry", "GoldenOrder", "GoldenSql", "GoldenBc"):
            self.lab.create_topic(topic, 2)
        self.consumed: list[tuple[str, Any]] = []
        self.consumers = [
            self._concurrent("G_RETRY", "GoldenRetry", "*", self._retry),
            self._concurrent("G_DLQ", "GoldenRetry", "TagX", self._later(1), max_reconsume_times=1),
            self._concurrent("G_DLQNOW", "GoldenRetry", "TagX", self._later(-1)),
            self._orderly("G_ORDER"),
            self._concurrent("G_BC", "GoldenBc", "*", self._content, message_model="BROADCASTING"),
        ]
        for consumer in self.consumers:
            self.lab.run(consumer.start())
        producer = self.lab.producer("G_PRODUCER", node="producer")
        self.lab.run(producer.start())
        self.lab.run_for(ms=SENT_AFTER_MS)
        sent = {(m["topic"], m["queueId"], m["queueOffset"]): m for m in manifest["messages"]}
        self.results = []
        for send in manifest["sends"]:
            recorded = sent[send["topic"], send["queueId"], send["queueOffset"]]
            message = Message(
                recorded["topic"],
                recorded["bodyText"].encode(),
                tags=recorded.get("tags", ""),
                keys=recorded.get("keys", ""),
            )
            message.properties.update(
                {name: value for name, value in recorded["properties"].items() if name not in SYSTEM_PROPERTIES}
            )
            queue = MessageQueue(recorded["topic"], "broker-a", recorded["queueId"])
            self.results.append(self.lab.run(producer.send(message, queue=queue)))
        self.lab.run_until(self._is_complete)
        self.lab.run_for(ms=100)
        for consumer in self.consumers:
            self.lab.run(consumer.shutdown())
        self.lab.run_for(ms=10)

    def _is_complete(self) -> bool:
        store = self.broker.store
        return (
            store.get_max_offset_in_queue("%RETRY%G_RETRY", 0) == RETRIES
            and store.get_max_offset_in_queue("SCHEDULE_TOPIC_XXXX", 0) == SCHEDULED
        )

    # -- the listeners ----------------------------------------------------------------------------------------------

    def _concurrent(self, group: str, topic: str, tags: str, listener: Any, **settings: Any) -> Any:
        consumer = self.lab.consumer(group, node=group, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)
        consumer.subscribe(topic, tags)

        def noting(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
            (message,) = messages
            self.note(group, message)
            return listener(message, context)  # type: ignore[no-any-return]

        consumer.register_message_listener(noting)
        return consumer

    def note(self, group: str, message: Any) -> None:
        """Note a delivery as the message looks at that moment."""
        seen = {
            "topic": message.topic,
            "queueId": message.queue_id,
            "queueOffset": message.queue_offset,
            "reconsumeTimes": message.reconsume_times,
            "body": message.body.decode(),
            "msgId": message.msg_id,
            "properties": dict(message.properties),
        }
        self.consumed.append((group, seen))

    @staticmethod
    def _retry(message: Any, context: Any) -> ConsumeConcurrentlyStatus:
        body = message.body.decode()
        context.delay_level_when_next_consume = 0 if body.startswith("lv0") else 1
        if body.startswith("ok") or (body.startswith("fail2") and message.reconsume_times >= 2):
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    @staticmethod
    def _later(level: int) -> Callable[[Any, Any], ConsumeConcurrentlyStatus]:
        def listener(message: Any, context: Any) -> ConsumeConcurrentlyStatus:
            context.delay_level_when_next_consume = level
            return ConsumeConcurrentlyStatus.RECONSUME_LATER

        return listener

    @staticmethod
    def _content(message: Any, context: Any) -> ConsumeConcurrentlyStatus:
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def _orderly(self, group: str) -> Any:
        consumer = self.lab.consumer(
            group,
            node=group,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            max_reconsume_times=2,
            suspend_current_queue_time_millis=500,
        )
        consumer.subscribe("GoldenOrder", "*")
        again = self

        class Listener(MessageListenerOrderly):
            def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
                (message,) = messages
                again.note(group, message)
                bad = message.body.startswith(b"bad")
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT if bad else ConsumeOrderlyStatus.SUCCESS

        consumer.register_message_listener(Listener())
        return consumer


class Side:
    """One of the two brokers: its queues, with every id told as the number of the send that it belongs to."""

    def __init__(self, store: Any, unique_ids: list[str], offset_ids: list[str]) -> None:
        self._store = store
        self._names = {unique_id: f"unique id of {n}" for n, unique_id in enumerate(unique_ids)}
        self._names |= {offset_id: f"offset id of {n}" for n, offset_id in enumerate(offset_ids)}
        self._born: dict[str, int] = {}

    def properties(self, properties: dict[str, str]) -> dict[str, str]:
        """The properties, in their order, without what depends on time and machine."""
        told = {name: self._names.get(value, value) for name, value in properties.items()}
        return {name: "*" if name in TIMED_PROPERTIES else value for name, value in told.items()}

    def messages(self, topic: str, queue_id: int, most: int) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """What the first `most` entries of a queue hold, and the entries."""
        queue = self._store.find_consume_queue(topic, queue_id)
        for number in range(most):
            unit = queue.get(number)
            message = decode_record(self._store.select_one_message_by_offset(unit.pos))
            unique = message.properties["UNIQ_KEY"]
            born = self._born.setdefault(unique, message.born_timestamp)
            ids = sum(len(message.properties.get(name, "")) for name in ("UNIQ_KEY", "ORIGIN_MESSAGE_ID"))
            scheduled = topic == "SCHEDULE_TOPIC_XXXX"
            yield (
                {
                    "n": n_of(message.body.decode()),
                    "body": message.body,
                    "topic": message.topic,
                    "queue": (message.queue_id, message.queue_offset),
                    "reconsumeTimes": message.reconsume_times,
                    "flags": (message.flag, message.sys_flag, message.prepared_transaction_offset, message.magic),
                    "properties": self.properties(message.properties),
                    "order of properties": list(message.properties),
                    "born with the original": message.born_timestamp == born,
                    "bytes beside the ids": message.store_size - ids,
                    "tags code": unit.tags_code - message.store_timestamp if scheduled else unit.tags_code,
                },
                [unit.pos, unit.size, unit.tags_code],
            )


@pytest.fixture(scope="module")
def recorded(golden: Any) -> Any:
    return golden("retry")


@pytest.fixture(scope="module")
def again(recorded: Any) -> Again:
    return Again(recorded.manifest)


@pytest.fixture(scope="module")
def real(recorded: Any) -> Side:
    sends = recorded.manifest["sends"]
    side = Side(recorded.open(), [send["msgId"] for send in sends], [send["offsetMsgId"] for send in sends])
    return prepared(side, recorded)


@pytest.fixture(scope="module")
def ours(again: Again, recorded: Any) -> Side:
    results = again.results
    side = Side(again.broker.store, [r.msg_id for r in results], [r.offset_msg_id for r in results])
    return prepared(side, recorded)


def prepared(side: Side, recorded: Any) -> Side:
    """Look at the originals first, so that copies are compared with them."""
    for topic in ("GoldenRetry", "GoldenOrder"):
        for queue_id in (0, 1):
            list(side.messages(topic, queue_id, recorded.manifest["queueOffsets"][topic][str(queue_id)]["max"]))
    return side


QUEUES = [
    ("GoldenRetry", 0),
    ("GoldenRetry", 1),
    ("GoldenOrder", 0),
    ("GoldenOrder", 1),
    ("GoldenSql", 0),
    ("GoldenSql", 1),
    ("GoldenBc", 0),
    ("GoldenBc", 1),
    ("%RETRY%G_RETRY", 0),
    ("%RETRY%G_DLQ", 0),
    ("%DLQ%G_DLQ", 0),
    ("%DLQ%G_DLQNOW", 0),
    ("%DLQ%G_ORDER", 0),
    ("SCHEDULE_TOPIC_XXXX", 0),
    ("SCHEDULE_TOPIC_XXXX", 2),
    ("SCHEDULE_TOPIC_XXXX", 3),
]


def in_rounds(messages: list[dict[str, Any]]) -> list[tuple[Any, list[dict[str, Any]]]]:
    """The messages of each later topic, each round of tries as one lot: threads raced for the places inside."""

    def later_topic(message: dict[str, Any]) -> str:
        return str(message["properties"].get("REAL_TOPIC", ""))

    def round_of(message: dict[str, Any]) -> tuple[Any, ...]:
        return later_topic(message), message["reconsumeTimes"], message["properties"].get("DELAY")

    ordered = sorted(messages, key=later_topic)
    found = []
    for which, lot in groupby(ordered, key=round_of):
        members = sorted(lot, key=lambda message: int(message["n"]))
        found.append((which, [{k: v for k, v in message.items() if k != "queue"} for message in members]))
    return found


def test_the_recording_has_these_queues(recorded: Any) -> None:
    assert sorted(recorded.manifest["consumeQueueEntries"]) == sorted(f"{topic}@{queue}" for topic, queue in QUEUES)


@pytest.mark.parametrize(("topic", "queue_id"), QUEUES)
def test_a_queue_holds_the_same_messages(
    recorded: Any, real: Side, ours: Side, again: Again, topic: str, queue_id: int
) -> None:
    """Bodies, properties and their order, reconsume times, flags, sizes and tags codes, in the same order."""
    entries = recorded.manifest["consumeQueueEntries"][f"{topic}@{queue_id}"]
    assert again.broker.store.get_max_offset_in_queue(topic, queue_id) == len(entries)
    theirs = list(real.messages(topic, queue_id, len(entries)))
    mine = list(ours.messages(topic, queue_id, len(entries)))
    assert [entry for _, entry in theirs] == entries
    assert [message["queue"] for message, _ in mine] == [message["queue"] for message, _ in theirs]
    assert in_rounds([message for message, _ in mine]) == in_rounds([message for message, _ in theirs])


@pytest.mark.parametrize("topic", ["GoldenRetry", "GoldenOrder", "GoldenSql", "GoldenBc", "%DLQ%G_DLQNOW"])
def test_where_nobody_raced_the_order_is_the_same_message_by_message(
    recorded: Any, real: Side, ours: Side, topic: str
) -> None:
    for queue_id, span in recorded.manifest["queueOffsets"][topic].items():
        theirs = [message["n"] for message, _ in real.messages(topic, int(queue_id), span["max"])]
        assert [message["n"] for message, _ in ours.messages(topic, int(queue_id), span["max"])] == theirs


def test_a_parked_message_is_due_its_level_after_it_was_stored(ours: Side) -> None:
    """The tags code of an entry of the schedule topic is the time of delivery: 1 s, 10 s and 30 s later."""
    for queue_id, most, level_ms in ((0, SCHEDULED, 1_000), (2, 1, 10_000), (3, 1, 30_000)):
        for message, _ in ours.messages("SCHEDULE_TOPIC_XXXX", queue_id, most):
            assert message["tags code"] == level_ms


@pytest.mark.parametrize("group", ["G_RETRY", "G_DLQ", "G_DLQNOW", "G_ORDER", "G_BC"])
def test_the_listeners_saw_the_same(recorded: Any, real: Side, ours: Side, again: Again, group: str) -> None:
    """Topic, queue, reconsume times and properties of each delivery; the order is that of the tries of each message."""

    def told(side: Side, consumed: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        rows = []
        for seen in consumed:
            properties = side.properties(seen["properties"])
            first_try = seen["reconsumeTimes"] == 0 or group == "G_ORDER"
            rows.append(
                (
                    n_of(seen["body"]),
                    seen["reconsumeTimes"],
                    seen["topic"],
                    seen["queueId"],
                    seen["queueOffset"] if first_try else "-",
                    sorted(properties.items()),
                )
            )
        return sorted(rows)

    theirs = [seen for seen in recorded.manifest["consumed"] if seen["group"] == group]
    mine = [seen for name, seen in again.consumed if name == group]
    assert told(ours, mine) == told(real, theirs)


def test_an_orderly_queue_is_consumed_in_the_same_order(recorded: Any, again: Again) -> None:
    for queue_id in (0, 1):
        theirs = [
            (seen["body"], seen["reconsumeTimes"])
            for seen in recorded.manifest["consumed"]
            if seen["group"] == "G_ORDER" and seen["queueId"] == queue_id
        ]
        mine = [
            (seen["body"], seen["reconsumeTimes"])
            for group, seen in again.consumed
            if group == "G_ORDER" and seen["queueId"] == queue_id
        ]
        assert mine == theirs


def test_the_topics_of_retries_and_dead_letters_are_made_alike(recorded: Any, again: Again) -> None:
    made = again.broker.running().topic_config_manager
    for name, config in recorded.manifest["topicConfigs"].items():
        if name.startswith(("%", "Golden")) and "G_SQL" not in name:
            mine = made.select_topic_config(name)
            assert mine is not None, name
            assert (mine.read_queue_nums, mine.write_queue_nums, mine.perm, mine.topic_sys_flag, mine.order) == (
                config["readQueueNums"],
                config["writeQueueNums"],
                config["perm"],
                config["topicSysFlag"],
                config["order"],
            ), name


def test_the_offsets_are_committed_alike(recorded: Any, again: Again) -> None:
    """Of the broadcasting group the broker keeps the least offset of its members, under a name of its own."""
    text = (recorded.directory / "config" / "consumerOffset.json").read_text(encoding="utf-8")
    for group in ("G_RETRY", "G_DLQ", "G_DLQNOW", "G_ORDER", "G_BC", "G_BC@broadcast"):
        for topic in ("GoldenRetry", "GoldenOrder", "GoldenBc", f"%RETRY%{group}"):
            key = f'"{topic}@{group}":{{'
            real_offsets = {}
            if key in text:
                inside = text.split(key)[1].split("}")[0]
                real_offsets = {int(queue): int(offset) for queue, offset in (p.split(":") for p in inside.split(","))}
            mine = again.broker.running().consumer_offset_manager.query_offsets(group, topic)
            assert mine == real_offsets, key


def test_the_broadcasting_consumer_keeps_its_offsets_itself(again: Again) -> None:
    """The same file, line for line; the order of its two entries hangs on hash codes of Java."""
    consumer = again.consumers[-1]
    path = f".rocketmq_offsets/{consumer.impl.instance.client_id}/G_BC/offsets.json"
    mine = consumer.node.disk.read_bytes(path)
    real = (GOLDEN / "retry-broadcast-offsets.txt").read_bytes()
    assert OffsetSerializeWrapper.decode(mine).offset_table == OffsetSerializeWrapper.decode(real).offset_table
    assert sorted(mine.splitlines()) == sorted(real.splitlines())
    assert "GoldenBc" not in again.broker.running().consumer_offset_manager.which_topic_by_consumer("G_BC")
