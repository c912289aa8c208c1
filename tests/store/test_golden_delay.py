"""Recorded stores with delayed messages: rebuilt records are equal byte for byte, and the parked ones are delivered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.broker.parked_message import message_time_up, park
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, decode_properties, encode_properties
from mqlab.sim import World
from tests.golden.recorded import record_sha256

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
STOPPED_MS = 1795205372100
"""Just after the recording broker wrote delayOffset.json for the last time."""


def parked_and_delivered(manifest: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The two rows of each delayed message that the real broker had delivered."""

    def identity(row: dict[str, Any]) -> tuple[str, int, str]:
        return row["msgId"], row["reconsumeTimes"], row["properties"]["REAL_TOPIC"]

    messages = manifest["messages"]
    parked = {identity(row): row for row in messages if row["topic"] == SCHEDULE}
    return [
        (parked[identity(row)], row)
        for row in messages
        if row["topic"] != SCHEDULE and int(row["properties"].get("DELAY", "0")) > 0
    ]


@pytest.mark.parametrize(("name", "at_least"), [("delay", 5), ("retry", 15)])
def test_what_is_stored_when_a_message_is_due_has_the_bytes_that_a_real_broker_wrote(
    golden: Callable[[str], Any], name: str, at_least: int
) -> None:
    store = golden(name).open()
    pairs = parked_and_delivered(golden(name).manifest)
    for parked, delivered in pairs:
        message = message_time_up(store.look_message_by_offset(parked["commitLogOffset"], decompress=False))
        assert record_sha256(message, message.stored_properties(), delivered) == delivered["recordSha256"]
        assert "DELAY" not in message.properties
    assert len(pairs) >= at_least


def test_a_parked_message_has_the_bytes_that_a_real_broker_wrote(golden: Callable[[str], Any]) -> None:
    """Taken out of the schedule topic and parked again: the place of REAL_TOPIC and REAL_QID, and the highest level."""
    manifest = golden("delay").manifest
    store = golden("delay").open()
    levels = []
    for row in manifest["messages"]:
        if row["topic"] != SCHEDULE:
            continue
        parked = store.look_message_by_offset(row["commitLogOffset"], decompress=False)
        message = message_time_up(parked)
        sent = {name: value for name, value in parked.properties.items() if not name.startswith("REAL_")}
        message.properties = decode_properties(encode_properties(sent, DECODED_MAP_CAPACITY))
        if row.get("tags") in ("lv19", "lv20"):
            message.properties["DELAY"] = row["tags"][2:]
        levels.append(park(message, 18))
        assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]
    assert sorted(set(levels)) == list(range(1, 19))
    assert len(levels) == 21


def test_a_broker_on_the_recorded_directory_delivers_what_is_left_in_its_time(golden: Callable[[str], Any]) -> None:
    world = World(1, epoch_ms=STOPPED_MS - 1_000)
    events: list[tuple[Any, ...]] = []
    world.hooks.attach(events.append)
    node = world.node("broker-a")
    node.disk = golden("delay").disk()
    before = node.disk.read_bytes("config/delayOffset.json")
    broker = BrokerController(node, BrokerConfig(), golden("delay").config())
    broker.start()
    service = broker.schedule_message_service
    assert {level: loop.offset for level, loop in service.loops.items()} == {
        level: {1: 1, 2: 2, 3: 1, 4: 1}.get(level, 0) for level in range(1, 19)
    }
    service.persist()
    assert node.disk.read_bytes("config/delayOffset.json") == before
    world.run_for(7_300_000_000)
    delivered = [row[8:] for row in events if row[7] == "ParkedMessageDelivered"]
    due = {}
    for row in golden("delay").manifest["messages"]:
        if row["topic"] == SCHEDULE:
            (entry,) = [
                entry
                for entry in golden("delay").manifest["consumeQueueEntries"][f"{SCHEDULE}@{row['queueId']}"]
                if entry[0] == row["commitLogOffset"]
            ]
            due[row["msgId"]] = entry[2]
    assert [fields[4] for fields in delivered] == [*range(5, 19), 18, 18]
    times = [row[2] // 1_000 + world.epoch_ms for row in events if row[7] == "ParkedMessageDelivered"]
    for fields, at_ms in zip(delivered, times, strict=True):
        assert due[fields[3]] <= at_ms <= max(due[fields[3]] + 100, STOPPED_MS)
        assert fields[0] == "GoldenDelay"
    # The real broker, opened again, gave the first of them the same place.
    assert (delivered[0][1], delivered[0][2]) == (1, 2)
    assert golden("delay").manifest["reopened"]["queueOffsets"]["GoldenDelay"]["1"]["max"] == 3
