"""A recorded store with a timer's files: read, mended, written again byte for byte, and gone on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.broker.timer_messages import transform_timer_message
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, decode_properties, encode_properties
from mqlab.sim import World
from mqlab.sim.disk import MemoryDisk
from mqlab.store import MessageExtBrokerInner
from mqlab.store.errors import StoreError
from mqlab.store.timer import TimerMessageStore
from mqlab.store.timer.timer_checkpoint import TimerCheckpoint
from mqlab.store.timer.timer_message import convert
from mqlab.store.timer.timer_wheel import NO_SLOT, TimerWheel
from tests.golden.recorded import record_sha256

TIMER = "rmq_sys_wheel_timer"
FIRST_MS = 1795205312000
"""The first slot of the recording."""
STOPPED_MS = 1795205369519
"""When the recording broker was stopped."""
REOPENED_MS = 1795205378000
FILES = ("timerwheel", "timerlog/00000000000000000000", "config/timercheck", "config/timermetrics")


class Reopened:
    """A broker on a recorded directory; the world's clock begins at `at_ms`."""

    def __init__(self, golden: Any, at_ms: int, disk: MemoryDisk | None = None, name: str = "delay") -> None:
        self.world = World(1, epoch_ms=at_ms)
        self.events: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.events.append)
        self.node = self.world.node("broker-a")
        self.node.disk = disk or golden(name).disk()
        config = golden(name).config()
        self.broker = BrokerController(self.node, BrokerConfig(recall_message_enable=True), config)
        self.broker.start()

    @property
    def timer(self) -> TimerMessageStore:
        assert self.broker.timer is not None
        return self.broker.timer

    def seen(self, kind: str) -> list[tuple[Any, ...]]:
        return [row[8:] for row in self.events if row[7] == kind]


# -- the files ------------------------------------------------------------------------------------------------------


def test_the_bytes_of_a_wheel_are_those_of_java(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "golden" / "vectors" / "timer-wheel.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    disk = MemoryDisk("d", lambda: 0)
    wheel = TimerWheel(disk, "timerwheel", 12, 1_000)
    for row in rows[:-1]:
        wheel.put_slot(row["timeMs"], row["firstPos"], row["lastPos"], row["num"], row["magic"])
        assert wheel.index_of(row["timeMs"]) == row["slotIndex"]
        assert wheel.get_slot(row["timeMs"]).num == row["getSlotNum"]
        assert wheel.get_slot(row["timeMs"] + 24_000).num == row["getSlotOfOneWheelLaterNum"]
    wheel.flush()
    assert disk.read_bytes("timerwheel").hex() == rows[-1]["fileHex"]
    again = TimerWheel(disk, "timerwheel", 12, 1_000)
    for row in rows[1:-1]:
        slot = again.get_slot(row["timeMs"])
        assert slot == (row["timeMs"], row["firstPos"], row["lastPos"], row["num"], row["magic"])
    assert again.get_slot(rows[0]["timeMs"]) == NO_SLOT


def test_the_recorded_files_are_read_as_they_were_meant(golden: Callable[[str], Any]) -> None:
    reopened = Reopened(golden, STOPPED_MS + 100)
    timer = reopened.timer
    wheel = timer.timer_wheel
    assert (timer.curr_read_time_ms, timer.curr_queue_offset) == (1795205369000, 20)
    assert [(slot.time_ms // 1_000, slot.num) for slot in wheel.waiting_slots(FIRST_MS)] == [
        (1795205312, 1), (1795205313, 3), (1795205314, 1), (1795205315, 1), (1795205316, 1), (1795205317, 1),
        (1795205320, 1), (1795205324, 0), (1795205332, 1), (1795205372, 1), (1795205432, 1), (1795208912, 1),
        (1795212512, 1), (1795291712, 3), (1795378112, 1),
    ]  # fmt: skip
    third = timer.chain(wheel.get_slot(1795205313000))
    assert [(record.position, record.previous, record.magic) for record in third] == [
        (624, 572, 1),
        (572, 0, 1),
        (0, -1, 1),
    ]
    (recalling, recalled) = timer.chain(wheel.get_slot(1795205324000))
    assert (recalling.recalls, recalled.recalls) == (True, False)
    assert timer.all_congest_num == int(golden("delay").manifest["runtimeInfo"]["timerCongestNum"])
    assert timer.timer_metrics.timing_count == {"GoldenTimer": (8, 1795205333042)}


def test_reading_the_recorded_files_changes_none_of_them(golden: Callable[[str], Any]) -> None:
    reopened = Reopened(golden, STOPPED_MS)
    reopened.timer.flush()
    hashes = golden("delay").manifest["files"]
    for name in FILES:
        if name != "config/timercheck":
            data = reopened.node.disk.read_bytes(name)
            assert hashlib.sha256(data).hexdigest() == hashes[f"store/{name}"]["sha256"], name


def test_a_check_file_is_written_as_it_was_read(golden: Callable[[str], Any]) -> None:
    disk = golden("delay").disk()
    data = disk.read_bytes("config/timercheck")
    checkpoint = TimerCheckpoint(disk, "config/timercheck")
    assert checkpoint.encode() == data[:56]
    disk.remove("config/timercheck")
    checkpoint.flush()
    assert disk.read_bytes("config/timercheck") == data


def test_a_wheel_without_its_file_is_made_again_from_the_log(golden: Callable[[str], Any]) -> None:
    """All that a slot says but the number of its messages, which as in RocketMQ no record has."""
    disk = golden("delay").disk()
    before = Reopened(golden, STOPPED_MS).timer.timer_wheel.waiting_slots(FIRST_MS)
    disk.remove("timerwheel")
    after = Reopened(golden, STOPPED_MS, disk).timer.timer_wheel.waiting_slots(FIRST_MS)
    # The first record of a slot says that none was before it, so the first position is right as well.
    assert [slot[:3] for slot in after] == [slot[:3] for slot in before]


def test_a_wheel_of_another_size_is_refused_in_words(golden: Callable[[str], Any]) -> None:
    disk = golden("delay").disk()
    disk.open("timerwheel").truncate(4096)
    with pytest.raises(StoreError, match="the timer wheel has 4096 bytes, it must have 38707200"):
        Reopened(golden, STOPPED_MS, disk)


# -- the records ----------------------------------------------------------------------------------------------------


def test_what_goes_onto_the_wheel_has_the_bytes_that_a_real_broker_wrote(golden: Callable[[str], Any]) -> None:
    """Taken out of the timer's topic and accepted again at the moment of the recording, a recall included."""
    rows = [row for row in golden("delay").manifest["messages"] if row["topic"] == TIMER]
    for row in rows:
        reopened = Reopened(golden, row["storeTimestamp"])
        waiting = reopened.broker.message_store.look_message_by_offset(row["commitLogOffset"], decompress=False)
        assert waiting is not None
        recalls = "TIMER_DEL_UNIQKEY" in waiting.properties
        sent = {n: v for n, v in waiting.properties.items() if n not in ("TIMER_OUT_MS", "REAL_TOPIC", "REAL_QID")}
        if recalls:
            sent["TRACE_CONTEXT"] = ""
        else:
            sent = decode_properties(encode_properties(sent, DECODED_MAP_CAPACITY))
        message = MessageExtBrokerInner(
            waiting.properties["REAL_TOPIC"],
            waiting.body,
            queue_id=int(waiting.properties["REAL_QID"]),
            flag=waiting.flag,
            sys_flag=waiting.sys_flag,
            properties=sent,
            born_timestamp=waiting.born_timestamp,
            born_host=waiting.born_host,
            store_host=waiting.store_host,
        )
        assert transform_timer_message(reopened.broker, message) is None
        assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"], row["bodyText"]
    assert len(rows) == 20


def _name(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["properties"]["UNIQ_KEY"], row["bodyCRC"], row["bornTimestamp"]


@pytest.mark.parametrize(("name", "at_least"), [("delay", 10), ("pop-store", 30)])
def test_what_comes_off_the_wheel_has_the_bytes_that_a_real_broker_wrote(
    golden: Callable[[str], Any], name: str, at_least: int
) -> None:
    """Messages of producers, and the check points and acknowledgements of Pop."""
    store = golden(name).open()
    rows = golden(name).manifest["messages"]
    waiting = {_name(row): row for row in rows if row["topic"] == TIMER}
    compared = 0
    for row in rows:
        properties = row["properties"]
        if row["topic"] == TIMER or "TIMER_DEQUEUE_MS" not in properties:
            continue
        source = waiting[_name(row)]
        held = store.look_message_by_offset(source["commitLogOffset"], decompress=False)
        assert held is not None
        message = convert(held, int(properties["TIMER_ENQUEUE_MS"]), False, int(properties["TIMER_DEQUEUE_MS"]))
        assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]
        assert (message.topic, message.queue_id) == (row["topic"], row["queueId"])
        assert not message.wait_store_msg_ok
        compared += 1
    assert compared >= at_least


def test_the_log_of_the_recorded_messages_is_written_byte_for_byte(golden: Callable[[str], Any]) -> None:
    """The timer's topic alone, put on a new wheel at the second of the recording: the same records and slots."""
    disk = golden("delay").disk()
    data = disk.read_bytes("timerlog/00000000000000000000")
    slots = Reopened(golden, STOPPED_MS).timer.timer_wheel.waiting_slots(FIRST_MS)
    for name in FILES:
        disk.remove(name)
    # All but the last were put on the wheel within one second; that came a second later, to recall another.
    reopened = Reopened(golden, FIRST_MS, disk)
    timer = reopened.timer
    timer.config.timer_stop_enqueue = timer.config.timer_stop_dequeue = True
    queue = reopened.broker.message_store.find_consume_queue(TIMER, 0)
    for offset in range(20):
        if offset == 19:
            reopened.world.run_for(1_100_000)
        unit = queue.get(offset)
        message = timer.message_at(unit.pos, unit.size)
        assert message is not None
        assert timer.do_enqueue(unit, int(message.properties["TIMER_OUT_MS"]), message)
    written = disk.read_bytes("timerlog/00000000000000000000")
    assert written[: 20 * 52] == data[: 20 * 52]
    assert timer.timer_wheel.waiting_slots(FIRST_MS) == slots


# -- going on -------------------------------------------------------------------------------------------------------


def test_the_reopened_broker_delivers_what_the_real_one_did_and_then_the_rest(golden: Callable[[str], Any]) -> None:
    manifest = golden("delay").manifest
    reopened = Reopened(golden, REOPENED_MS)
    store = reopened.broker.message_store
    reopened.world.run_for(2_500_000)
    for queue_id, offsets in manifest["reopened"]["queueOffsets"]["GoldenTimer"].items():
        assert store.get_max_offset_in_queue("GoldenTimer", int(queue_id)) == offsets["max"]
    congested = int(manifest["reopened"]["runtimeInfo"]["timerCongestNum"])
    assert reopened.timer.all_congest_num == congested
    reopened.world.run_for(3 * 86_400 * 1_000_000)
    delivered = [event[3] for event in reopened.seen("TimerMessageDelivered")]
    assert len(delivered) == len(set(delivered)) == congested + 1
    rows = manifest["messages"]
    before = {row["msgId"] for row in rows if row["topic"] == "GoldenTimer"}
    recalled = {row["msgId"] for row in rows if row["properties"].get("TAGS") == "_RECALL_TAG_"}
    sent = {row["msgId"] for row in rows if row["topic"] in ("GoldenTimer", TIMER)}
    assert before | recalled | set(delivered) == sent
    assert not set(delivered) & (before | recalled)
    assert len(reopened.seen("TimerMessageRolled")) == 3
