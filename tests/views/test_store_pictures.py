"""Pictures of a store say what its files hold: which entry points where, what a power cut took, how a key is found."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from mqlab.errors import LearnerError
from mqlab.protocol.record import decode_record
from mqlab.sim import FAULTS, MemoryDisk, Node, World
from mqlab.store import DefaultMessageStore, MessageExtBrokerInner, MessageStoreConfig
from mqlab.views import StoreMap, TornLog, disk_table, index_steps

LOG = "store/commitlog/00000000000000000000"
SLOTS = 4


def filled_store(seed: int = 7, *, messages: int = 6, size: int = 10) -> tuple[Node, DefaultMessageStore]:
    """A store with messages in two queues, dispatched and not flushed."""
    world = World(seed)
    node = world.node("broker-a")
    config = MessageStoreConfig(
        mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=40, max_hash_slot_num=SLOTS, max_index_num=100
    )
    store = DefaultMessageStore(node, config)
    store.load()
    store.start()
    for number in range(messages):
        properties = {"TAGS": "Aa", "KEYS": f"order-{number}"}
        store.put_message(MessageExtBrokerInner("Orders", b"x" * size, queue_id=number % 2, properties=properties))
    world.run_for(2_000)
    return node, store


def is_drawing(svg: str) -> bool:
    return ET.fromstring(svg).tag.endswith("svg")


def test_the_store_map_leads_from_every_entry_to_a_record_of_its_queue() -> None:
    node, _ = filled_store()
    store_map = StoreMap.of(node.disk)
    starts = {record.offset: record.queue for record in store_map.records}
    assert len(starts) == 6
    assert {name: len(entries) for name, entries in store_map.queues.items()} == {"Orders/0": 3, "Orders/1": 3}
    for name, entries in store_map.queues.items():
        assert [starts[entry.offset] for entry in entries] == [name] * 3
    assert is_drawing(store_map.svg())


def test_the_store_map_shows_the_first_records_only() -> None:
    node, _ = filled_store()
    store_map = StoreMap.of(node.disk, most=3)
    assert len(store_map.records) == 3
    assert sum(len(entries) for entries in store_map.queues.values()) == 3


def test_an_empty_store_has_no_map() -> None:
    with pytest.raises(LearnerError, match="send one"):
        StoreMap.of(MemoryDisk("broker-a", lambda: 0))


@pytest.mark.parametrize("seed", range(8))
def test_the_torn_log_counts_what_a_power_cut_left(seed: int) -> None:
    node, store = filled_store(seed, messages=12, size=1_500)
    before = node.disk.read_bytes(LOG)
    FAULTS["power_off"](node.world, node="broker-a")
    after = node.disk.read_bytes(LOG)
    end = DefaultMessageStore(node, store.config).load().end
    torn = TornLog(before, after, end)
    assert torn.count("kept") + torn.count("torn") + torn.count("dropped") == 12
    assert all(record.offset + record.size <= end for record in torn.records if record.state == "kept")
    assert torn.pages.count(False) == sum(
        before[at : at + 4096] != after[at : at + 4096] for at in range(0, 65536, 4096)
    )
    assert is_drawing(torn.svg())


def test_the_steps_through_the_index_end_at_the_message_with_the_key() -> None:
    node, store = filled_store()
    store.query_message("Orders", "order-3", 32, 0, 1 << 62)
    table = index_steps(node.disk, "Orders", "order-3", slots=SLOTS)
    places = [int(row[3].split()[2].rstrip(",")) for row in table.rows if row[3].startswith("message at")]
    assert len(places) == 1
    found = decode_record(node.disk.read_bytes(LOG), places[0])
    assert found.keys == "order-3"


def test_a_key_that_nobody_has_ends_at_an_empty_chain_or_at_other_keys() -> None:
    node, store = filled_store()
    store.query_message("Orders", "order-3", 32, 0, 1 << 62)
    table = index_steps(node.disk, "Orders", "no such key", slots=SLOTS)
    assert not any(row[3].startswith("message at") for row in table.rows)


def test_without_an_index_file_the_steps_say_what_to_do() -> None:
    node, _ = filled_store()
    with pytest.raises(LearnerError, match="ask the store for a key"):
        index_steps(node.disk, "Orders", "order-3", slots=SLOTS)


def test_the_disk_table_tells_what_is_not_flushed() -> None:
    node, store = filled_store()
    rows = {row[0]: row for row in disk_table(node.disk, "store/commitlog").rows}
    assert list(rows) == sorted(rows)
    assert rows[LOG][1] == 65536
    assert rows[LOG][3] == 1
    store.flush_commit_log(0)
    assert disk_table(node.disk, "store/commitlog").rows[0][3] == 0
