"""Groups that read old messages from the disk are held back (coldDataFlowControlEnable)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker.coldctr.cold_ctr_strategy import PIDAdaptiveColdCtrStrategy
from mqlab.broker.coldctr.cold_data_cg_ctr_service import ADAPTIVE, ColdDataCgCtrService
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.heartbeat import ConsumeType
from tests.broker.conftest import messages_of

BODY = b"x" * 1_000
ON = {"cold_data_flow_control_enable": True, "access_message_in_memory_hot_ratio": 0}
"""Nothing counts as lying in memory but the very last message."""
READS_COLD_DATA = "This consumer group is reading cold data. It has been flow control"


def cold(make_cluster: Callable[..., Any], consume_type: ConsumeType, store: Any = ON, **settings: Any) -> Any:
    """A cluster with 40 old messages of about 1.1 kB, and a client in group G."""
    cluster = make_cluster(store, **{"cg_cold_read_threshold": 10_000, **settings})
    cluster.topic("T")
    client = cluster.client()
    for _ in range(40):
        client.send("T", BODY)
    cluster.run(100)
    client.heartbeat(consume_type=consume_type)
    return cluster, client


def info(client: Any) -> dict[str, Any]:
    answer = client.call(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)
    assert answer.code == ResponseCode.SUCCESS
    table: dict[str, Any] = json.loads(answer.body)
    return table


def test_a_push_consumer_that_has_read_too_much_is_refused_until_the_next_5_s(make_cluster: Any) -> None:
    cluster, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    assert len(messages_of(client.pull("T", 0))) == 32
    answer = client.pull("T", 32)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_BUSY, READS_COLD_DATA)
    cluster.run(5_000)
    assert len(messages_of(client.pull("T", 32))) == 8


def test_what_is_counted_is_what_lies_on_the_disk(make_cluster: Any) -> None:
    _, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY, ON, cg_cold_read_threshold=10_000_000)
    size = sum(message.store_size for message in messages_of(client.pull("T", 0)))
    table = info(client)
    assert table["runtimeTable"]["G"]["coldAcc"] == table["globalAcc"] == size
    assert (table["cgColdReadThreshold"], table["globalColdReadThreshold"]) == (10_000_000, 104_857_600)
    assert list(table) == ["runtimeTable", "configTable", "cgColdReadThreshold", "globalColdReadThreshold", "globalAcc"]


def test_messages_that_lie_in_memory_are_counted_for_nobody(make_cluster: Any) -> None:
    _, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY, {"cold_data_flow_control_enable": True})
    client.pull("T", 0)
    assert info(client)["globalAcc"] == 0
    assert client.pull("T", 32).code == ResponseCode.SUCCESS


def test_what_a_filter_throws_away_has_been_read_too(make_cluster: Any) -> None:
    store = {**ON, "cold_data_flow_control_enable": True}
    _cluster, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY, store, enable_property_filter=True)
    client.heartbeat()
    answer = client.pull("T", 0, subscription="TAGS = 'other'", expression_type="SQL92")
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert info(client)["globalAcc"] > 32 * len(BODY)


def to_a_second_after_a_look(cluster: Any) -> None:
    """Both threads look every 5 s since the broker's start."""
    cluster.run(6_000 - (cluster.now_ms - cluster.broker.start_us / 1_000) % 5_000)


def test_a_pull_consumer_waits_for_3_to_8_s(make_cluster: Any) -> None:
    cluster, client = cold(make_cluster, ConsumeType.CONSUME_ACTIVELY)
    to_a_second_after_a_look(cluster)
    client.pull("T", 0)
    first = client.begin_pull("T", 32)
    cluster.run(2_000)
    late = client.begin_pull("T", 32)
    cluster.run(1_990)
    assert [row["queue_offset"] for row in cluster.seen("ColdDataPullHeld")] == [32, 32]
    assert not first.done
    cluster.run(20)
    assert len(messages_of(first.result())) == 8, "the same look lets all groups begin anew"
    assert not late.done, "it has waited for less than 3 s"
    cluster.run(5_000)
    assert late.done


def test_one_that_finds_its_group_reading_again_gets_one_message_and_waits_no_second_time(make_cluster: Any) -> None:
    cluster, client = cold(make_cluster, ConsumeType.CONSUME_ACTIVELY)
    to_a_second_after_a_look(cluster)
    client.pull("T", 0)
    answer = client.begin_pull("T", 32)
    cluster.run(3_990)
    pool = cluster.broker.executors.pull
    while pool.busy < pool.threads:
        pool.submit(lambda: None, service_us=500_000)
    cluster.run(20)
    client.call(RequestCode.LITE_PULL_MESSAGE, client.pull_header("T", 0))
    assert not answer.done
    cluster.run(600)
    assert len(messages_of(answer.result())) == 1


def test_groups_of_rocketmqs_own_are_held_back_by_nothing(make_cluster: Any) -> None:
    _cluster, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    for group in ("CID_RMQ_SYS_X", "TOOLS_CONSUMER"):
        assert client.pull("T", 0, consumer_group=group).code == ResponseCode.SUCCESS
        assert client.pull("T", 0, consumer_group=group).code == ResponseCode.SUCCESS
    assert info(client)["runtimeTable"] == {}


def test_all_groups_together_may_read_so_much_and_no_more(make_cluster: Any) -> None:
    _cluster, client = cold(
        make_cluster, ConsumeType.CONSUME_PASSIVELY, cg_cold_read_threshold=60_000, global_cold_read_threshold=50_000
    )
    client.heartbeat(group="H", client_id="other")
    client.pull("T", 0)
    assert client.pull("T", 32, consumer_group="H").code == ResponseCode.SUCCESS, "it was not known yet"
    client.pull("T", 0)
    assert client.pull("T", 32, consumer_group="H").remark == READS_COLD_DATA


def test_a_group_without_members_ends_as_rocketmqs_own_error(make_cluster: Any) -> None:
    _, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    client.pull("T", 0, consumer_group="nobody")
    answer = client.pull("T", 0, consumer_group="nobody")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark.startswith("java.lang.NullPointerException")


def test_an_administrator_gives_a_group_a_limit_of_its_own_and_takes_it_back(make_cluster: Any) -> None:
    _, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    body = b"G=1000000\nH=no number\n# comment\n"
    assert client.call(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, body).code == ResponseCode.SUCCESS
    assert info(client)["configTable"] == {"G": 1_000_000}
    client.pull("T", 0)
    assert client.pull("T", 32).code == ResponseCode.SUCCESS
    assert client.call(RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, None, b"G").code == ResponseCode.SUCCESS
    assert info(client)["configTable"] == {}
    assert client.pull("T", 32).remark == READS_COLD_DATA


def test_who_has_read_nothing_old_for_a_minute_is_forgotten(make_cluster: Any) -> None:
    cluster, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    client.pull("T", 0)
    cluster.run(59_000)
    assert list(info(client)["runtimeTable"]) == ["G"]
    cluster.run(6_000)
    assert info(client)["runtimeTable"] == {}


def test_it_is_off_unless_the_broker_was_started_with_it(make_cluster: Any) -> None:
    """RocketMQ asks for the size of a page at its start alone; without it all messages count as lying in memory."""
    _, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY, {"access_message_in_memory_hot_ratio": 0})
    for value in (b"false", b"true"):
        client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"coldDataFlowControlEnable=" + value)
        client.pull("T", 0)
        assert client.pull("T", 32).code == ResponseCode.SUCCESS
    _cluster, client = cold(make_cluster, ConsumeType.CONSUME_PASSIVELY)
    client.pull("T", 0)
    client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"coldDataFlowControlEnable=false")
    assert client.pull("T", 32).code == ResponseCode.SUCCESS
    client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"coldDataFlowControlEnable=true")
    assert client.pull("T", 32).remark == READS_COLD_DATA


@pytest.mark.parametrize("pid", [False, True])
def test_a_limit_that_is_reached_may_grow_by_half_and_shrinks_by_a_fifth(make_cluster: Any, pid: bool) -> None:
    cluster, _ = cold(
        make_cluster, ConsumeType.CONSUME_PASSIVELY, cold_ctr_strategy_enable=True, use_pid_cold_ctr_strategy=pid,
        cg_cold_read_threshold=1_000, global_cold_read_threshold=10_000,
    )  # fmt: skip
    service: ColdDataCgCtrService = cluster.broker.cold_data_control.cg_ctr_service
    limits = service.cg_cold_threshold_map_config

    def read(*amounts: int) -> None:
        for amount in amounts:
            service.cold_acc("G", amount)
            cluster.run(5_000)

    read(1_000)
    assert limits == ({} if pid else {"G" + ADAPTIVE: 1_500})
    read(*[1_500] * 10)
    assert limits["G" + ADAPTIVE] > 1_500
    before = limits["G" + ADAPTIVE]
    read(*[20_000] * (30 if pid else 1))
    after = limits["G" + ADAPTIVE]
    assert (after < before, after >= 1_000) == (True, True)
    cluster.run(70_000)
    assert limits == {}


def test_the_error_its_sum_and_its_change_decide() -> None:
    strategy = PIDAdaptiveColdCtrStrategy(None, 100)  # type: ignore[arg-type]
    for read in (0, 0, 0, 0, 0, 0, 0, 0, 150):
        strategy.collect(read)
        assert strategy.decision_factor() == 0
    strategy.collect(190)
    errors = [100] * 8 + [-50, -90]
    assert strategy.decision_factor() == pytest.approx(0.5 * -90 + 0.3 * sum(errors) + 0.2 * -40)


def test_a_one_letter_group_with_a_limit_keeps_those_of_groups_with_that_letter_where_they_are(
    make_cluster: Any,
) -> None:
    cluster, client = cold(
        make_cluster, ConsumeType.CONSUME_PASSIVELY, cold_ctr_strategy_enable=True, use_pid_cold_ctr_strategy=False,
        cg_cold_read_threshold=1_000, global_cold_read_threshold=10_000,
    )  # fmt: skip
    service: ColdDataCgCtrService = cluster.broker.cold_data_control.cg_ctr_service
    for group in ("readers", "others"):
        service.add_or_update_group_config(group + ADAPTIVE, 9_000)
    client.call(RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, b"r=5")
    service.cold_acc("G", 20_000)
    cluster.run(5_000)
    assert info(client)["configTable"] == {"readers" + ADAPTIVE: 9_000, "others" + ADAPTIVE: 7_200, "r": 5}
