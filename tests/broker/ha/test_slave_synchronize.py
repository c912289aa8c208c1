"""A slave has its master's topics, groups, offsets and delays a minute after its start, and then again each minute."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import LearnerError
from tests.broker.ha.conftest import Pair
from tests.worlds import noting, started_consumer

TABLES = [
    "GET_ALL_TOPIC_CONFIG",
    "GET_ALL_CONSUMER_OFFSET",
    "GET_ALL_DELAY_OFFSET",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
    "GET_ALL_MESSAGE_REQUEST_MODE",
]


def _tables(pair: Pair) -> list[tuple[str, float]]:
    return [(r.table, r.ts_us / 1_000) for r in pair.lab.history.find("SlaveSynchronized")]


def test_everything_is_fetched_after_61_s_and_then_each_63_s(pair: type[Pair]) -> None:
    p = pair()
    p.lab.run_for(ms=130_000)
    tables = _tables(p)
    assert [name for name, _ in tables] == TABLES * 2
    first, second = tables[0][1], tables[5][1]
    assert 61_000 <= first <= 61_100
    assert 62_900 <= second - first <= 63_100


def test_a_slave_has_its_masters_tables_and_a_version_beyond_its_masters(pair: type[Pair]) -> None:
    p = pair()
    p.lab.create_group("G", retry_max_times=3)
    p.lab.set_message_request_mode("T", "G", "POP")
    started_consumer(p.lab, group="readers")
    p.send(5)
    p.producer.send(Message("T", b"later", delay_level=1)).play()
    p.lab.run_for(ms=50_000)
    master, slave = p.master.running(), p.slave.running()
    own = len(slave.topic_config_manager.topic_config_table)
    p.lab.run_for(ms=15_000)
    topics = master.topic_config_manager.topic_config_table
    assert slave.topic_config_manager.topic_config_table == topics
    version, masters = slave.topic_config_manager.data_version, master.topic_config_manager.data_version
    assert version.counter == masters.counter + own + len(topics)
    assert slave.subscription_group_manager.subscription_group_table["G"].retry_max_times == 3
    offsets = slave.consumer_offset_manager.offset_table
    assert offsets == master.consumer_offset_manager.offset_table
    assert offsets["T@readers"][0] == 6
    assert slave.schedule_message_service.offset_table == {1: 1}
    modes = slave.query_assignment_processor().message_request_mode_manager
    assert modes.get_message_request_mode("T", "G").mode == "POP"


def test_what_a_slave_fetched_is_on_its_disk(pair: type[Pair]) -> None:
    p = pair()
    p.lab.create_group("G")
    p.lab.run_for(ms=65_000)
    p.slave.power_off()
    p.slave.restart()
    p.lab.run_for(ms=1_000)
    slave = p.slave.running()
    assert "T" in slave.topic_config_manager.topic_config_table
    assert slave.subscription_group_manager.contains_subscription_group("G")


def test_without_a_master_nothing_is_fetched_and_nothing_lost(pair: type[Pair]) -> None:
    p = pair()
    p.lab.run_for(ms=65_000)
    p.master.crash()
    p.lab.run_for(ms=70_000)
    assert len(_tables(p)) == len(TABLES)
    assert "T" in p.slave.running().topic_config_manager.topic_config_table


def test_a_master_that_does_not_answer_is_told_of(pair: type[Pair]) -> None:
    p = pair()
    p.lab.run_for(ms=60_000)
    p.master.freeze()
    p.lab.run_for(ms=20_000)
    assert [r.table for r in p.events("SlaveSynchronizeFailed")] == TABLES


def test_a_timer_message_is_on_the_slaves_wheel_and_delivered_by_the_master_alone(pair: type[Pair]) -> None:
    p = pair().replicated()
    seen: list[Any] = []
    started_consumer(p.lab, noting(seen), group="readers")
    p.producer.send(Message("T", b"at its time", properties={"TIMER_DELAY_SEC": "20"})).play()
    p.lab.run_for(ms=10_000)
    assert {r.node for r in p.events("TimerMessageEnqueued")} == {"broker-a", "slave-a"}
    p.lab.run_for(ms=15_000)
    assert [r.node for r in p.events("TimerMessageDelivered")] == ["broker-a"]
    before = p.lab.world.slice_no
    p.lab.run_for(ms=60_000)
    assert p.lab.world.slice_no - before < 1_200, "two clients, a pair and their timers"


def test_a_delayed_message_is_delivered_by_the_master_alone(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.producer.send(Message("T", b"later", delay_level=1)).play()
    p.lab.run_for(ms=5_000)
    assert p.slave.store.get_max_offset_in_queue("T", 0) == 1
    assert {r.node for r in p.events("MessageStored")} == {"broker-a"}


def test_an_idle_pair_costs_little(pair: type[Pair]) -> None:
    p = pair()
    p.lab.run_for(ms=70_000)
    before = p.lab.world.slice_no
    p.lab.run_for(ms=60_000)
    assert p.lab.world.slice_no - before < 800


def test_a_slave_needs_a_master_and_an_id(pair: type[Pair]) -> None:
    lab = Lab()
    lab.name_server()
    with pytest.raises(LearnerError, match="there is no master 'broker-a'"):
        lab.broker(slave_of="broker-a")
    lab.broker()
    with pytest.raises(LearnerError, match="id must be above 0"):
        lab.broker(broker_role="SLAVE")
    slave = lab.broker(slave_of="broker-a", slave_read_enable=True)
    assert (slave.name, slave.running().broker_config.broker_id) == ("slave-a", 1)
    assert lab.broker().name == "broker-b"
    with pytest.raises(LearnerError, match="there is no master 'slave-a'"):
        lab.broker(slave_of="slave-a")
    assert [broker.name for broker in lab.masters] == ["broker-a", "broker-b"]
    lab.create_topic("T")
    assert "T" not in slave.running().topic_config_manager.topic_config_table
