"""What a broker counts, and what it tells of the last minute, hour and day."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.broker.broker_stats import StatsItem, StatsSnapshot
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import BrokerStatsData, BrokerStatsItem, ConsumeStats, TopicStatsTable
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.topic_config import KVTable

MINUTE, HOUR, DAY = (10_000, 7), (600_000, 7), (3_600_000, 25)
"""How often RocketMQ notes a count (ms), and how many notes it keeps."""


def as_rocketmq(tick_ms: int, most: int, made_ms: int, changes: list[tuple[int, int]], now_ms: int) -> StatsSnapshot:
    """What its lists tell, made tick by tick, when these changes (ms, by how much) were made since `made_ms`."""
    notes: list[tuple[int, int, int]] = []
    for tick in range(tick_ms * (made_ms // tick_ms + 1), now_ms + 1, tick_ms):
        if not notes:
            notes.append((tick - tick_ms, 0, 0))
        before = [value for at_ms, value in changes if at_ms < tick]
        notes = [*notes, (tick, sum(before), len(before))][-most:]
    if not notes:
        return StatsSnapshot()
    (first_ms, first, first_times), (last_ms, last, last_times) = notes[0], notes[-1]
    total, times = last - first, last_times - first_times
    return StatsSnapshot(total, total * 1_000 / (last_ms - first_ms), total / times if times else 0.0)


@given(
    st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(1, 9)), min_size=1, max_size=40),
    st.integers(0, 3_600_000),
    st.integers(0, 100_000_000),
)
def test_a_count_tells_what_noting_it_at_each_tick_would(
    steps: list[tuple[int, int]], made_ms: int, later_ms: int
) -> None:
    item, now_ms, changes = StatsItem(made_ms), made_ms, []
    for step_ms, value in steps:
        now_ms += step_ms
        item.add(value, 1, now_ms)
        changes.append((now_ms, value))
    for at_ms in (now_ms, now_ms + 9_999, now_ms + later_ms):
        assert item.in_minute(at_ms) == as_rocketmq(*MINUTE, made_ms, changes, at_ms)
        assert item.in_hour(at_ms) == as_rocketmq(*HOUR, made_ms, changes, at_ms)
        assert item.in_day(at_ms) == as_rocketmq(*DAY, made_ms, changes, at_ms)


def view(client: Any, name: str, key: str) -> Any:
    return client.call(RequestCode.VIEW_BROKER_STATS_DATA, h.ViewBrokerStatsDataRequestHeader(name, key))


@pytest.mark.parametrize(
    ("name", "key", "total", "avgpt"),
    [
        ("TOPIC_PUT_NUMS", "T", 6, 1.0),
        ("GROUP_GET_NUMS", "T@C", 6, 6.0),
        ("BROKER_PUT_NUMS", "DefaultCluster", 6, 0.0),
        ("BROKER_GET_NUMS", "DefaultCluster", 6, 0.0),
    ],
)
def test_a_broker_tells_of_the_last_minute(
    cluster: Any, client: Any, name: str, key: str, total: int, avgpt: float
) -> None:
    """The figures of a real 5.3.3 to which the same was sent."""
    for _ in range(6):
        client.send("T")
    cluster.run(5)
    client.pull("T", consumer_group="C")
    cluster.run(20_000)
    told = BrokerStatsData.decode(view(client, name, key).body)
    assert (told.stats_minute.sum, told.stats_minute.avgpt) == (total, avgpt)
    assert told.stats_minute.tps in (total / 20, total / 30)
    assert told.stats_hour == BrokerStatsItem()
    cluster.run(600_000)
    told = BrokerStatsData.decode(view(client, name, key).body)
    assert told.stats_minute == BrokerStatsItem()
    assert (told.stats_hour.sum, told.stats_hour.tps) == (total, total / 600)


def test_sizes_are_those_of_the_records(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(5)
    records = client.pull("T", consumer_group="C").body
    cluster.run(20_000)
    for name, key in (("TOPIC_PUT_SIZE", "T"), ("GROUP_GET_SIZE", "T@C")):
        assert BrokerStatsData.decode(view(client, name, key).body).stats_minute.sum == len(records)


def test_what_was_never_counted_is_refused(client: Any) -> None:
    answer = view(client, "TOPIC_PUT_NUMS", "Nowhere")
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "The stats <TOPIC_PUT_NUMS> <Nowhere> not exist")


def test_topics_and_groups_tell_how_much_a_second(cluster: Any, client: Any) -> None:
    for _ in range(6):
        client.send("T")
    cluster.run(5)
    client.pull("T", consumer_group="C")
    cluster.run(20_000)
    topic = client.call(RequestCode.GET_TOPIC_STATS_INFO, h.GetTopicStatsInfoRequestHeader("T"))
    assert TopicStatsTable.decode(topic.body).topic_put_tps in (6 / 20, 6 / 30)
    group = client.call(RequestCode.GET_CONSUME_STATS, h.GetConsumeStatsRequestHeader("C", "T"))
    assert ConsumeStats.decode(group.body).consume_tps in (6 / 20, 6 / 30)


def test_midnight_and_the_seconds_of_the_store(cluster: Any, client: Any) -> None:
    def told(*names: str) -> list[str]:
        table = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
        return [table[name] for name in names]

    assert told("putTps", "getTransferredTps") == ["  ", "  "]
    day_ms = 24 * 3_600_000
    cluster.run(10_990 - cluster.broker.stats.age_ms)
    assert told("putTps") == ["  "]
    cluster.run(20)
    assert told("putTps") == ["0.0  "]
    cluster.run(70_000 - cluster.broker.stats.age_ms)
    client.send("T")
    client.send("T")
    cluster.run(5_000)
    assert told("putTps") == [f"{2 / 10} {2 / 60} "]
    cluster.run(30_000)
    assert told("putTps") == [f"0.0 {2 / 60} "]
    days = ("msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow")
    assert told(*days) == ["0", "0", "2"]
    cluster.run(day_ms)
    assert told(*days) == ["0", "2", "2"]
    client.send("T")
    cluster.run(day_ms)
    assert told(*days) == ["2", "3", "3"]
    cluster.run(2 * day_ms)
    assert told(*days) == ["3", "3", "3"]


def test_what_is_deleted_is_counted_no_more(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(5)
    client.pull("T", consumer_group="C")
    assert view(client, "GROUP_GET_NUMS", "T@C").code == 0
    header = h.DeleteSubscriptionGroupRequestHeader("C")
    assert client.call(RequestCode.DELETE_SUBSCRIPTIONGROUP, header).code == 0
    assert view(client, "GROUP_GET_NUMS", "T@C").code == ResponseCode.SYSTEM_ERROR
    assert view(client, "TOPIC_PUT_NUMS", "T").code == 0
    assert client.call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("T")).code == 0
    assert view(client, "TOPIC_PUT_NUMS", "T").code == ResponseCode.SYSTEM_ERROR


def test_a_message_given_back_counts_where_it_waits(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(5)
    client.pull("T", consumer_group="C")
    header = h.ConsumerSendMsgBackRequestHeader(0, "C", 0)
    assert client.call(RequestCode.CONSUMER_SEND_MSG_BACK, header).code == 0
    cluster.run(20_000)
    told = {
        (name, key): BrokerStatsData.decode(view(client, name, key).body).stats_minute.sum
        for name, key in (("SNDBCK_PUT_NUMS", "T@C"), ("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"))
    }
    assert list(told.values()) == [1, 1]
