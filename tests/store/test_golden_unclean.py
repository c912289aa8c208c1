"""Recovery of a killed broker's directory, and of edited copies, ends where the real broker's recovery ended."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import decode_record
from mqlab.sim.disk import MemoryDisk
from mqlab.store import GetMessageStatus, StoreError
from mqlab.store.store_directory import queue_offset_fields
from tests.golden.recorded import manifest

VARIANTS = {variant["variant"]: variant for variant in manifest("unclean")["variants"]}
STARTED = [name for name, variant in VARIANTS.items() if variant["realBroker"].get("started", True)]


def _edited(recorded: Any, variant: dict[str, Any]) -> MemoryDisk:
    disk = recorded.disk()
    for path in variant["delete"]:
        disk.rmtree(path) if disk.is_dir(path) else disk.remove(path)
    for edit in variant["edits"]:
        file = disk.open(edit["file"])
        if "zeros" in edit:
            file.write(edit["offset"], bytes(edit["zeros"]))
        elif "xor" in edit:
            file.write(edit["offset"], bytes([file.read(edit["offset"], 1)[0] ^ edit["xor"]]))
        else:
            file.truncate(edit["truncate"])
    return disk


@pytest.mark.parametrize("name", STARTED)
def test_queue_offsets_and_log_end_where_the_real_broker_ended(golden: Any, name: str) -> None:
    recorded, real = golden("unclean"), VARIANTS[name]["realBroker"]
    store = recorded.open(_edited(recorded, VARIANTS[name]))
    assert store.max_phy_offset == int(real["commitLogMaxOffset"])
    assert store.min_phy_offset == int(real["commitLogMinOffset"])
    assert queue_offset_fields(store) == real["queueOffsets"]


@pytest.mark.parametrize("name", STARTED)
def test_queue_entries_are_those_of_the_real_broker(golden: Any, name: str) -> None:
    recorded, real = golden("unclean"), VARIANTS[name]["realBroker"]
    store = recorded.open(_edited(recorded, VARIANTS[name]))
    for key, wanted in real["consumeQueueEntries"].items():
        topic, _, queue_id = key.rpartition("@")
        units = store.find_consume_queue(topic, int(queue_id)).units()
        assert [[unit.pos, unit.size, unit.tags_code] for unit in units] == wanted


@pytest.mark.parametrize("name", STARTED)
def test_a_key_that_the_real_broker_found_is_found(golden: Any, name: str) -> None:
    """A miss of the real broker says little (a first query on a cold broker may time out), a hit is a fact."""
    recorded, real = golden("unclean"), VARIANTS[name]["realBroker"]
    store = recorded.open(_edited(recorded, VARIANTS[name]))
    for asked in real["queryByKey"]:
        result = store.query_message(asked["topic"], asked["key"], 32, 0, (1 << 63) - 1)
        found = [decode_record(record) for record in result.messages]
        hits = [m.commit_log_offset for m in found if asked["key"] in (m.keys or "").split(" ")]
        if "commitLogOffsets" in asked:
            assert sorted(hits) == asked["commitLogOffsets"]


@pytest.mark.parametrize("name", STARTED)
def test_pulling_everything_reads_as_many_messages_as_from_the_real_broker(golden: Any, name: str) -> None:
    recorded, real = golden("unclean"), VARIANTS[name]["realBroker"]
    store = recorded.open(_edited(recorded, VARIANTS[name]))
    readable, anomalies = 0, []
    for topic, queue_ids in store.consume_queue_store.topics().items():
        for queue_id in queue_ids:
            offset = store.get_min_offset_in_queue(topic, queue_id)
            while offset < store.get_max_offset_in_queue(topic, queue_id):
                result = store.get_message("group", topic, queue_id, offset, 32)
                if result.status is not GetMessageStatus.FOUND:
                    anomalies.append((topic, queue_id, offset, result.status, result.next_begin_offset))
                readable += sum(_is_whole(record) for record in result.messages)
                offset = result.next_begin_offset
    assert readable == real["readableMessages"]
    wanted = [(a["topic"], a["queueId"], a["queueOffset"], a["next"]) for a in real["pullAnomalies"]]
    assert [(topic, queue_id, offset, after) for topic, queue_id, offset, _, after in anomalies] == wanted
    assert all(status is GetMessageStatus.MESSAGE_WAS_REMOVING for *_, status, _ in anomalies)


def _is_whole(record: bytes) -> bool:
    try:
        decode_record(record)
    except RecordError:
        return False
    return True


def test_a_commit_log_file_of_another_size_is_refused_as_the_real_broker_does(golden: Any) -> None:
    recorded, variant = golden("unclean"), VARIANTS["wrong-size"]
    assert variant["realBroker"]["started"] is False
    with pytest.raises(StoreError, match="60000 bytes") as caught:
        recorded.open(_edited(recorded, variant))
    assert caught.value.path == "commitlog/00000000000000065536"
    assert "What to do" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "what", "reason"),
    [
        ("body-corrupt", "commit log", "the CRC of the body"),
        ("mid-corrupt", "commit log", "the CRC of the body"),
        ("zero-second-last", "commit log", "its total size is 0"),
        ("mid-corrupt", "consume queue", "the commit log ends at 100504"),
    ],
)
def test_what_was_cut_is_reported_with_its_reason(golden: Any, name: str, what: str, reason: str) -> None:
    recorded = golden("unclean")
    store = recorded.open(_edited(recorded, VARIANTS[name]))
    assert any(cut["what"] == what and reason in cut["reason"] for cut in store.recovery.cuts)


def test_as_it_was_left_nothing_is_cut(golden: Any) -> None:
    assert golden("unclean").open().recovery.cuts == []


def test_all_messages_of_the_killed_broker_are_there(golden: Any) -> None:
    recorded = golden("unclean")
    store = recorded.open()
    offsets = [message["commitLogOffset"] for message in recorded.manifest["messages"]]
    assert all(store.look_message_by_offset(offset).commit_log_offset == offset for offset in offsets)
    acknowledged = {send["msgId"] for send in recorded.manifest["sends"] if send.get("sendStatus") == "SEND_OK"}
    assert acknowledged <= {message["msgId"] for message in recorded.manifest["messages"]}
