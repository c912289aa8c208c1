"""Every recorded store opens here and holds what the real broker said it holds, field by field."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from mqlab.protocol.hashing import tags_code
from mqlab.protocol.record import decode_record
from mqlab.store import BatchConsumeQueue, BoundaryType, GetMessageStatus
from mqlab.store.store_directory import Damage, list_records, open_store, queue_offset_fields, record_fields

NAMES = ["plain", "compressed", "delay", "txn", "retry", "names", "ipv6", "pop-store", "pop-merge", "pop-kv"]

GROWN = {"txn", "retry"}
"""Their manifests were read while checks and retries went on, so that the archives hold a little more."""


def _rows(store: Any, key: str) -> list[list[int]]:
    """A queue's entries as the broker's QUERY_CONSUME_QUEUE shows them."""
    topic, _, queue_id = key.rpartition("@")
    queue = store.find_consume_queue(topic, int(queue_id))
    return [[unit.pos, unit.size, unit.tags_code] for unit in queue.units()]


@pytest.mark.parametrize("name", NAMES)
def test_every_message_is_listed_with_every_field(golden: Any, name: str) -> None:
    store = golden(name)
    listed = {}
    for found in list_records(store.directory):
        assert not isinstance(found, Damage)
        listed[found[0].commit_log_offset] = record_fields(*found)
    assert list(listed) == sorted(listed)
    for wanted in store.manifest["messages"]:
        got = listed[wanted["commitLogOffset"]]
        for field in got:
            if field == "bodySha256" and field not in wanted:
                wanted[field] = hashlib.sha256(_body(wanted)).hexdigest()
            assert got[field] == wanted.get(field), field
    if name not in GROWN:
        assert len(listed) == len(store.manifest["messages"])


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_bytes_are_those_of_the_manifest(golden: Any, name: str) -> None:
    recorded = golden(name)
    store = recorded.open()
    for wanted in recorded.manifest["messages"]:
        record = store.select_one_message_by_offset(wanted["commitLogOffset"])
        assert hashlib.sha256(record).hexdigest() == wanted["recordSha256"]
        message = decode_record(record)
        assert (message.magic, message.stored_body_length) == (wanted["magic"], wanted["storedBodyLength"])
        if "bodySha256" in wanted:
            assert hashlib.sha256(message.body).hexdigest() == wanted["bodySha256"]
        else:
            assert message.body == _body(wanted)


def _body(wanted: dict[str, Any]) -> bytes:
    return wanted["bodyText"].encode() if "bodyText" in wanted else base64.b64decode(wanted["bodyBase64"])


@pytest.mark.parametrize("name", NAMES)
def test_every_queue_has_the_recorded_entries(golden: Any, name: str) -> None:
    recorded = golden(name)
    store = recorded.open()
    for key, wanted in recorded.manifest["consumeQueueEntries"].items():
        topic, _, queue_id = key.rpartition("@")
        rows = _rows(store, key)
        if isinstance(store.find_consume_queue(topic, int(queue_id)), BatchConsumeQueue):
            # The broker repeats the covering row for each message of a batch, in an order of its own.
            assert sorted(rows) == sorted({tuple(row): row for row in wanted}.values())
        elif name in GROWN:
            assert rows[: len(wanted)] == wanted
        else:
            assert rows == wanted


@pytest.mark.parametrize("name", NAMES)
def test_queue_offsets_and_the_range_of_the_log_are_the_recorded_ones(golden: Any, name: str) -> None:
    recorded = golden(name)
    store = open_store(recorded.directory)
    got = queue_offset_fields(store)
    reopened = recorded.manifest["reopened"]["queueOffsets"]
    for topic, queues in recorded.manifest["queueOffsets"].items():
        for queue_id, wanted in queues.items():
            mine = got[topic][queue_id]
            assert mine["min"] == wanted["min"]
            assert wanted["max"] <= mine["max"] <= reopened[topic][queue_id]["max"]
            if name not in GROWN:
                assert mine == wanted
    end = int(recorded.manifest["runtimeInfo"]["commitLogMaxOffset"])
    reopened_end = int(recorded.manifest["reopened"]["runtimeInfo"]["commitLogMaxOffset"])
    assert store.max_phy_offset == end or (name in GROWN and end < store.max_phy_offset <= reopened_end)
    assert store.min_phy_offset == int(recorded.manifest["runtimeInfo"]["commitLogMinOffset"])
    assert store.get_earliest_message_time() == int(recorded.manifest["runtimeInfo"]["earliestMessageTimeStamp"])
    assert store.recovery is not None
    assert store.recovery.clean
    assert store.recovery.cuts == []


@pytest.mark.parametrize("name", ["plain", "compressed", "names", "ipv6"])
def test_a_store_at_rest_reopens_as_a_real_broker_reopened_it(golden: Any, name: str) -> None:
    recorded = golden(name)
    store = recorded.open()
    assert queue_offset_fields(store) == recorded.manifest["reopened"]["queueOffsets"]
    assert store.max_phy_offset == int(recorded.manifest["reopened"]["runtimeInfo"]["commitLogMaxOffset"])


def test_delayed_messages_have_their_time_of_delivery_in_the_queue(golden: Any) -> None:
    """Reading the log again gives the same entries as the broker wrote, also in the schedule topic."""
    recorded = golden("delay")
    disk = recorded.disk()
    disk.rmtree("consumequeue")
    store = recorded.open(disk)
    for key, wanted in recorded.manifest["consumeQueueEntries"].items():
        assert _rows(store, key) == wanted
    assert any(key.startswith("SCHEDULE_TOPIC_XXXX") for key in recorded.manifest["consumeQueueEntries"])


@pytest.mark.parametrize("name", NAMES)
def test_queues_rebuilt_from_the_log_are_the_same_bytes(golden: Any, name: str) -> None:
    recorded = golden(name)
    disk = recorded.disk()
    before = {path: disk.read_bytes(path) for path in disk.files() if "consumequeue/" in path}
    disk.rmtree("consumequeue")
    disk.rmtree("batchconsumequeue")
    store = recorded.open(disk)
    store.consume_queue_store.flush(0)
    after = {path: disk.read_bytes(path) for path in disk.files() if "consumequeue/" in path}
    assert {path: after.get(path) for path, data in before.items() if any(data)} == {
        path: data for path, data in before.items() if any(data)
    }


# -- what was asked of the plain store ------------------------------------------------------------------------------


def test_queries_by_key_find_what_the_broker_found(golden: Any) -> None:
    recorded = golden("plain")
    store = recorded.open()
    for asked in recorded.manifest["queryByKey"]:
        result = store.query_message(asked["topic"], asked["key"], asked["maxNum"], 0, (1 << 63) - 1)
        found = [decode_record(record) for record in result.messages]
        hits = sorted(
            [message.commit_log_offset, message.queue_id, message.queue_offset]
            for message in found
            if message.topic == asked["topic"] and asked["key"] in (message.keys or "").split(" ")
        )
        assert hits == asked.get("hits_commitLogOffset_queueId_queueOffset", [])
        if "indexLastUpdateTimestamp" in asked:
            assert result.index_last_update_timestamp == asked["indexLastUpdateTimestamp"]


def test_queries_by_unique_key_find_what_the_broker_found(golden: Any) -> None:
    recorded = golden("plain")
    store = recorded.open()
    for asked in recorded.manifest["queryByUniqKey"]:
        result = store.query_message(asked["topic"], asked["uniqKey"], 32, 0, (1 << 63) - 1)
        found = [decode_record(record) for record in result.messages]
        hits = [m.commit_log_offset for m in found if m.properties.get("UNIQ_KEY") == asked["uniqKey"]]
        assert hits == asked.get("commitLogOffsets", [])


def test_offsets_by_time_are_the_broker_s(golden: Any) -> None:
    recorded = golden("plain")
    store = recorded.open()
    for asked in recorded.manifest["searchOffsetByTimestamp"]:
        where = asked["topic"], asked["queueId"], asked["timestamp"]
        assert store.get_offset_in_queue_by_time(*where, BoundaryType.LOWER) == asked["lower"], asked
        assert store.get_offset_in_queue_by_time(*where, BoundaryType.UPPER) == asked["upper"], asked


class _TagFilter:
    """The broker's part of a subscription to one tag: it knows hashes only."""

    def __init__(self, subscription: str) -> None:
        self.codes = {tags_code(tag.strip()) for tag in subscription.split("||")}
        self.everything = subscription == "*"

    def is_matched_by_consume_queue(self, code: int) -> bool:
        return self.everything or code in self.codes

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        return True


PULL_STATUS = {
    GetMessageStatus.FOUND: "FOUND",
    GetMessageStatus.NO_MATCHED_MESSAGE: "NO_MATCHED_MSG",
    GetMessageStatus.MESSAGE_WAS_REMOVING: "NO_MATCHED_MSG",
    GetMessageStatus.OFFSET_FOUND_NULL: "NO_NEW_MSG",
    GetMessageStatus.OFFSET_OVERFLOW_ONE: "NO_NEW_MSG",
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: "OFFSET_ILLEGAL",
    GetMessageStatus.OFFSET_TOO_SMALL: "OFFSET_ILLEGAL",
}


def _pull_status(result: Any, offset: int) -> str:
    if result.status in (GetMessageStatus.NO_MESSAGE_IN_QUEUE, GetMessageStatus.NO_MATCHED_LOGIC_QUEUE):
        return "OFFSET_ILLEGAL" if offset else "NO_NEW_MSG"
    return PULL_STATUS[result.status]


def test_pulls_by_tag_answer_like_the_broker(golden: Any) -> None:
    recorded = golden("plain")
    store = recorded.open()
    for asked in recorded.manifest["tagPulls"]:
        offset = 0
        returned: list[int] = []
        pulls = []
        for _ in asked["pulls_status_next_min_max"]:
            result = store.get_message(
                "group", asked["topic"], asked["queueId"], offset, asked["maxNums"], _TagFilter(asked["subscription"])
            )
            # Another tag with the same hash is among them ("Aa" and "BB"): only the consumer compares the tags.
            returned += [decode_record(record).queue_offset for record in result.messages]
            pulls.append([_pull_status(result, offset), result.next_begin_offset, result.min_offset, result.max_offset])
            offset = result.next_begin_offset
        assert pulls == asked["pulls_status_next_min_max"], asked
        assert returned == asked["returnedQueueOffsets"], asked


def test_pulls_at_the_edges_answer_like_the_broker(golden: Any) -> None:
    recorded = golden("plain")
    store = recorded.open()
    for asked in recorded.manifest["pullEdges"]:
        if "error" in asked:
            continue  # The broker refuses those before it asks its store.
        result = store.get_message("group", asked["topic"], asked["queueId"], asked["offset"], 32)
        got = _pull_status(result, asked["offset"]), result.next_begin_offset, result.min_offset, result.max_offset
        assert got == (asked["status"], asked["next"], asked["min"], asked["max"]), asked
