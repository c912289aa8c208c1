"""Subscriptions by SQL92: what a broker gives, holds back, wakes for, refuses, and keeps on its disk."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker.broker_config import BrokerConfig
from mqlab.broker.filter.consumer_filter_data import ConsumerFilterData
from mqlab.broker.filter.consumer_filter_manager import ConsumerFilterManager
from mqlab.errors import LearnerError
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.group_bodies import CheckClientRequestBody
from mqlab.protocol.heartbeat import SubscriptionData, build_subscription_data
from mqlab.protocol.properties import encode_properties
from mqlab.sim import World
from tests.broker.conftest import messages_of

GOLDEN = Path(__file__).parents[1] / "golden"
FILTER_FILE = "store/config/consumerFilter.json"
DAY_MS = 24 * 3_600 * 1_000
MISTAKES = [
    row
    for row in json.loads((GOLDEN / "vectors" / "sql92.json").read_text(encoding="utf-8"))["rows"]["expressions"]
    if "compileError" in row and row["expression"].strip()
]
"""What RocketMQ's parser refuses; a subscription without any text is one to all messages."""


@pytest.fixture
def cluster(make_cluster: Callable[..., Any]) -> Any:
    cluster = make_cluster(enable_property_filter=True)
    cluster.topic("T")
    return cluster


def send(cluster: Any, client: Any, *properties: dict[str, str], topic: str = "T") -> None:
    for each in properties:
        client.send(topic, json.dumps(each).encode(), properties=each)
    cluster.run(5)


def bodies(response: Any) -> list[dict[str, str]]:
    return [json.loads(message.body) for message in messages_of(response)]


def sql(expression: str, version: int = 1, topic: str = "T") -> SubscriptionData:
    return build_subscription_data(topic, expression, "SQL92", version)


def pull_by_heartbeat(client: Any, version: int = 1, **more: Any) -> Any:
    return client.pull("T", subscription=None, sub_version=version, expression_type="SQL92", **more)


def refusal(response: Any) -> tuple[int, str]:
    return response.code, response.remark


# -- pulling --------------------------------------------------------------------------------------------------------


def test_a_pull_brings_what_fulfils_the_condition_and_goes_on_behind_the_rest(cluster: Any, client: Any) -> None:
    send(cluster, client, {"a": "1"}, {"a": "6"}, {"b": "7"}, {"a": "x"}, {"a": "9"}, {"a": "2"})
    response = client.pull("T", subscription="a > 5", expression_type="SQL92")
    assert bodies(response) == [{"a": "6"}, {"a": "9"}]
    assert response.header_as(h.PullMessageResponseHeader).next_begin_offset == 6
    (told,) = cluster.seen("MessagesFilteredByBroker")
    assert (told["messages"], told["by_bit_map"], told["by_expression"], told["not_judged"]) == (2, 0, 4, 1)
    assert (told["group"], told["expression"], told["queue_offset"], told["next_offset"]) == ("G", "a > 5", 0, 6)


@pytest.mark.parametrize("expression", ["a > 5", "a >"])
def test_an_entry_of_zeros_as_a_loss_of_power_leaves_it_fulfils_no_condition(
    cluster: Any, client: Any, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    send(cluster, client, {"a": "7"}, {"a": "6"})
    log = cluster.broker.message_store.commit_log
    read, lost = log.get_message, cluster.broker.message_store.find_consume_queue("T", 0).get(0).pos
    monkeypatch.setattr(log, "get_message", lambda pos, size: b"" if pos == lost else read(pos, size))
    response = client.pull("T", subscription=expression, expression_type="SQL92")
    assert bodies(response) == [{"a": "6"}]
    assert response.header_as(h.PullMessageResponseHeader).next_begin_offset == 2


def test_a_pull_for_which_nothing_is_left_shall_be_repeated_at_once(cluster: Any, client: Any) -> None:
    send(cluster, client, {"a": "1"}, {"a": "2"})
    response = client.pull("T", subscription="a > 5", expression_type="SQL92")
    assert refusal(response) == (20, "NO_MATCHED_MESSAGE")
    assert response.header_as(h.PullMessageResponseHeader).next_begin_offset == 2


def test_an_expression_in_a_pull_that_cannot_be_read_holds_nothing_back(cluster: Any, client: Any) -> None:
    """As was recorded of a real broker: `client-json.jsonl`, "pull with a broken SQL expression"."""
    send(cluster, client, {"a": "1"}, {"a": "2"})
    assert len(messages_of(client.pull("T", subscription="a >", expression_type="SQL92"))) == 2
    assert len(messages_of(client.pull("T", subscription="a > 5", expression_type="XPATH"))) == 2


def test_the_condition_of_a_heartbeat_counts(cluster: Any, client: Any) -> None:
    send(cluster, client, {"a": "1"}, {"a": "6"})
    client.heartbeat(sql("a > 5", 7))
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    client.heartbeat(sql("a < 5", 8))
    assert bodies(pull_by_heartbeat(client, 8)) == [{"a": "1"}]


def test_a_filter_that_is_not_there_or_too_old(cluster: Any, client: Any) -> None:
    client.heartbeat(sql("a >", 7))
    missing = 27, "The broker's consumer filter data is not exist!Your expression may be wrong!"
    assert refusal(pull_by_heartbeat(client, 7)) == missing
    client.heartbeat(sql("a > 1", 8))
    assert refusal(pull_by_heartbeat(client, 9)) == (25, "the consumer's subscription not latest")
    cluster.broker.consumer_filters.manager.get("T", "G").client_version = 7
    assert refusal(pull_by_heartbeat(client, 8)) == (28, "the consumer's consumer filter data not latest")
    client.heartbeat(sql("a > ", 10))
    assert refusal(pull_by_heartbeat(client, 10)) == missing


def test_what_is_switched_off_is_refused_for_a_heartbeats_condition_too(cluster: Any, client: Any) -> None:
    client.heartbeat(sql("a > 5", 7))
    cluster.broker.broker_config.enable_property_filter = False
    off = 1, "The broker does not support consumer to filter message by SQL92"
    assert refusal(pull_by_heartbeat(client, 7)) == off
    assert refusal(client.pull("T", subscription="a > 5", expression_type="SQL92")) == off


def test_the_recorded_consumer_gets_the_same_messages(cluster: Any, client: Any) -> None:
    recorded = json.loads((GOLDEN / "store" / "retry.json").read_text(encoding="utf-8"))
    messages = [m for m in recorded["messages"] if m["topic"] == "GoldenSql"]
    consumed = {(m["queueId"], m["queueOffset"]) for m in recorded["consumed"] if m["group"] == "G_SQL"}
    golden = json.loads((GOLDEN / "vectors" / "config" / "consumerFilter.json").read_text(encoding="utf-8"))
    condition = golden["filterDataByTopic"]["GoldenSql"]["groupFilterData"]["G_SQL"]["expression"]
    cluster.topic("GoldenSql", 2)
    for message in sorted(messages, key=lambda m: m["queueOffset"]):
        client.send("GoldenSql", b"x", queue_id=message["queueId"], properties=message["properties"])
    cluster.run(5)
    found = set()
    for queue_id in range(2):
        response = client.pull("GoldenSql", queue_id=queue_id, subscription=condition, expression_type="SQL92")
        found |= {(message.queue_id, message.queue_offset) for message in messages_of(response)}
    assert found == consumed
    assert len(messages) == 12


# -- long polling ---------------------------------------------------------------------------------------------------


def test_a_held_pull_sleeps_through_what_it_does_not_want(cluster: Any, client: Any) -> None:
    answer = client.begin_pull("T", suspend=True, subscription="a > 5", expression_type="SQL92")
    cluster.run(100)
    send(cluster, client, {"a": "1"}, {"b": "9"})
    assert not answer.done
    send(cluster, client, {"a": "6"})
    assert bodies(cluster.world.wait_for(answer)) == [{"a": "6"}]
    assert [event["reason"] for event in cluster.seen("PullWoken")] == ["arrived"]


# -- whether a client's subscription would do -----------------------------------------------------------------------


def check(client: Any, subscription: SubscriptionData) -> tuple[int, str]:
    body = CheckClientRequestBody("client", "G", subscription).encode()
    return refusal(client.call(RequestCode.CHECK_CLIENT_CONFIG, body=body))


def test_a_client_may_ask_whether_its_expression_can_be_read(cluster: Any, client: Any) -> None:
    assert check(client, sql("a > 5"))[0] == 0
    code, remark = check(client, sql("a >"))
    assert code == 23
    assert remark.startswith(
        'org.apache.rocketmq.filter.parser.ParseException: Encountered "<EOF>" at line 1, column 3.\n'
        'Was expecting one of:\n    "NOT" ...\n'
    )
    assert check(client, SubscriptionData("T", "x", expression_type="XPATH"))[0] == 23
    cluster.broker.broker_config.enable_property_filter = False
    assert check(client, sql("a > 5"))[0] == 1


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row["expression"])
def test_each_recorded_mistake_is_told_to_who_asks_and_its_heartbeat_makes_no_filter(
    cluster: Any, client: Any, row: dict[str, Any]
) -> None:
    """A pull by that heartbeat hears that its expression may be wrong; one that brings it is held back by nothing."""
    send(cluster, client, {"a": "1"})
    mistake = sql(row["expression"], 7)
    code, remark = check(client, mistake)
    assert (code, f"MQFilterException: {remark.splitlines()[0]}") == (23, row["compileError"])
    assert client.heartbeat(mistake).code == 0
    missing = 27, "The broker's consumer filter data is not exist!Your expression may be wrong!"
    assert refusal(pull_by_heartbeat(client, 7)) == missing
    assert len(messages_of(client.pull("T", subscription=row["expression"], expression_type="SQL92"))) == 1


def recorded(name: str, seq: int) -> RemotingCommand:
    for line in (GOLDEN / "frames" / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["seq"] == seq:
            return RemotingCommand.decode(base64.b64decode(row["frame"]))
    raise LookupError(seq)


@pytest.mark.parametrize(
    ("name", "asked", "answered", "enabled"),
    [
        ("client-json.jsonl", 534, 542, True),
        ("client-json.jsonl", 567, 568, True),
        ("client-json-extra.jsonl", 1476, 1478, False),
    ],
)
def test_a_recorded_question_gets_the_recorded_answer(
    cluster: Any, client: Any, name: str, asked: int, answered: int, enabled: bool
) -> None:
    cluster.broker.broker_config.enable_property_filter = enabled
    request, expected = recorded(name, asked), recorded(name, answered)
    assert request.code == RequestCode.CHECK_CLIENT_CONFIG
    answer = client.call(request.code, body=request.body)
    assert refusal(answer) == (expected.code, expected.remark)
    assert answer.body == expected.body


# -- the table of filters -------------------------------------------------------------------------------------------


def changes(cluster: Any) -> list[str]:
    return [event["change"] for event in cluster.seen("ConsumerFilterChanged")]


def test_filters_live_and_die_with_their_groups(cluster: Any, client: Any) -> None:
    def data() -> Any:
        return cluster.broker.consumer_filters.manager.get("T", "G")

    client.heartbeat(sql("a > 5", 7))
    client.heartbeat(sql("a > 5", 7))
    assert changes(cluster) == ["registered"]
    assert not data().is_dead
    client.call(RequestCode.UNREGISTER_CLIENT, h.UnregisterClientRequestHeader("client-1", None, "G"))
    assert data().is_dead
    client.heartbeat(sql("a > 5", 8))
    assert data().client_version == 8
    client.heartbeat(sql("a > 6", 9))
    client.heartbeat(sql("b > 6", 9, "Other"))
    assert data().is_dead
    client.heartbeat(sql("a > 6", 9))
    assert changes(cluster) == [
        "registered", "dead", "alive again", "replaced", "registered", "dead", "alive again", "dead",
    ]  # fmt: skip


def test_a_filter_that_was_dead_for_a_day_is_dropped(cluster: Any, client: Any) -> None:
    client.heartbeat(sql("a > 5", 7))
    client.call(RequestCode.UNREGISTER_CLIENT, h.UnregisterClientRequestHeader("client-1", None, "G"))
    cluster.run(DAY_MS - 20_000)
    assert cluster.broker.consumer_filters.manager.get("T", "G") is not None
    cluster.run(30_001)
    assert cluster.broker.consumer_filters.manager.get("T", "G") is None
    assert changes(cluster)[-1] == "dropped"


def test_the_table_outlives_the_broker_and_all_of_it_is_dead_then(cluster: Any, client: Any) -> None:
    client.heartbeat(sql("a > 5", 7))
    born = cluster.broker.consumer_filters.manager.get("T", "G").born_time
    cluster.run(10_000)
    assert cluster.broker_node.disk.exists(FILTER_FILE)
    cluster.do("power_off", node="broker-a")
    cluster.restart(100)
    data = cluster.broker.consumer_filters.manager.get("T", "G")
    assert (data.expression, data.born_time, data.client_version, data.is_dead) == ("a > 5", born, 7, True)
    assert data.dead_time == max(born, cluster.broker_node.now_ms() - 30_000 - 100)
    client.heartbeat(sql("a > 5", 7))
    assert not data.is_dead


def test_a_broker_without_such_filters_writes_no_file_and_has_no_manager(cluster: Any, client: Any) -> None:
    client.heartbeat()
    cluster.run(30_000)
    assert cluster.broker.consumer_filters.made is None
    assert not cluster.broker_node.disk.exists(FILTER_FILE)


def manager(**settings: Any) -> ConsumerFilterManager:
    return ConsumerFilterManager(World(1).node("broker-a"), "consumerFilter.json", BrokerConfig(**settings))


def test_the_recorded_file_is_written_again_byte_for_byte() -> None:
    data = (GOLDEN / "vectors" / "config" / "consumerFilter.json").read_bytes()
    table = manager(filter_data_clean_time_span=1 << 60)
    table._node.disk.write_bytes(table.path, data)
    assert table.load()
    table.persist()
    assert table._node.disk.read_bytes(table.path) == data


@pytest.mark.parametrize(("born", "dead", "is_dead"), [(5, 0, False), (5, 4, False), (5, 5, True), (5, 6, True)])
def test_a_filter_is_dead_if_it_did_not_die_before_it_was_born(born: int, dead: int, is_dead: bool) -> None:
    assert ConsumerFilterData("G", "T", "a > 5", "SQL92", None, born, 1, dead).is_dead == is_dead


def test_filters_that_were_made_for_another_bloom_filter_are_forgotten() -> None:
    data = (GOLDEN / "vectors" / "config" / "consumerFilter.json").read_bytes()
    table = manager(expect_consumer_num_use_filter=64)
    table._node.disk.write_bytes(table.path, data)
    assert table.load()
    assert table.filter_data_by_topic == {}


@pytest.mark.parametrize("table_text", ["[]", '{"T":{"groupFilterData":{"G":{}}}}'])
def test_a_damaged_file_is_refused(table_text: str) -> None:
    table = manager()
    table._node.disk.write_bytes(table.path, f'{{"filterDataByTopic":{table_text}}}'.encode())
    with pytest.raises(LearnerError, match=r"cannot read consumerFilter\.json"):
        table.load_or_fail()


def test_rates_of_errors_that_can_not_be_are_refused() -> None:
    for rate in (0, 100):
        with pytest.raises(LearnerError, match="max_error_rate_of_bloom_filter"):
            BrokerConfig(max_error_rate_of_bloom_filter=rate)


# -- bit maps -------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_bits(make_cluster: Callable[..., Any]) -> Any:
    cluster = make_cluster(
        {"enable_consume_queue_ext": True}, enable_property_filter=True, enable_calc_filter_bit_map=True
    )
    cluster.topic("T")
    return cluster


def test_what_no_bit_is_set_for_is_passed_over_without_being_read(with_bits: Any) -> None:
    cluster, client = with_bits, with_bits.client()
    client.heartbeat(sql("a > 5", 7))
    client.heartbeat(sql("a < 5", 7), group="Other", client_id="other")
    cluster.run(10)
    send(cluster, client, {"a": "1"}, {"a": "6"}, {"a": "5"}, {"a": "x"}, {"b": "1"})
    calculated = [event["groups"] for event in cluster.seen("FilterBitMapCalculated")]
    assert calculated == ["Other", "G", "", "", ""]
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    (told,) = cluster.seen("MessagesFilteredByBroker")
    assert (told["by_bit_map"], told["by_expression"]) == (4, 0)


def test_messages_that_are_older_than_a_filter_are_read(with_bits: Any) -> None:
    cluster, client = with_bits, with_bits.client()
    client.heartbeat(sql("b > 5", 7), group="Other", client_id="other")
    send(cluster, client, {"a": "6"}, {"a": "1"})
    client.heartbeat(sql("a > 5", 7))
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    (told,) = cluster.seen("MessagesFilteredByBroker")
    assert (told["by_bit_map"], told["by_expression"]) == (0, 1)


def test_a_bit_map_may_wrongly_say_yes_and_then_the_expression_decides(with_bits: Any) -> None:
    cluster, client = with_bits, with_bits.client()
    client.heartbeat(sql("a > 5", 7))
    cluster.run(10)
    filters = cluster.broker.consumer_filters.manager
    # The bits of another group that are those of this one.
    client.heartbeat(sql("a < 5", 7), group="Other", client_id="other")
    filters.get("T", "Other").bloom_filter_data = filters.get("T", "G").bloom_filter_data
    send(cluster, client, {"a": "1"}, {"a": "6"})
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    (told,) = cluster.seen("MessagesFilteredByBroker")
    assert (told["by_bit_map"], told["by_expression"]) == (0, 1)


def test_a_held_pull_is_not_woken_for_what_its_bits_say_no_to(with_bits: Any) -> None:
    cluster, client = with_bits, with_bits.client()
    client.heartbeat(sql("a > 5", 7))
    cluster.run(10)
    answer = client.begin_pull("T", suspend=True, subscription=None, sub_version=7)
    cluster.run(100)
    send(cluster, client, {"a": "1"})
    assert not answer.done
    send(cluster, client, {"a": "6"})
    assert bodies(cluster.world.wait_for(answer)) == [{"a": "6"}]


def test_bits_outlive_the_broker(with_bits: Any) -> None:
    cluster, client = with_bits, with_bits.client()
    client.heartbeat(sql("a > 5", 7))
    cluster.run(10)
    send(cluster, client, {"a": "1"}, {"a": "6"}, {"a": "2"})
    cluster.run(12_000)
    cluster.do("crash", node="broker-a")
    cluster.restart(200)
    client.heartbeat(sql("a > 5", 7))
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    assert cluster.seen("MessagesFilteredByBroker")[-1]["by_bit_map"] == 2


def test_without_extended_queues_bits_serve_those_who_wait_only(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(enable_property_filter=True, enable_calc_filter_bit_map=True)
    cluster.topic("T")
    client = cluster.client()
    client.heartbeat(sql("a > 5", 7))
    cluster.run(10)
    send(cluster, client, {"a": "1"}, {"a": "6"})
    assert bodies(pull_by_heartbeat(client, 7)) == [{"a": "6"}]
    assert cluster.seen("MessagesFilteredByBroker")[-1]["by_bit_map"] == 0


# -- retry topics ---------------------------------------------------------------------------------------------------


def test_messages_of_a_retry_topic_are_judged_by_the_condition_for_their_origin(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(enable_property_filter=True, filter_support_retry=True)
    cluster.topic("T")
    cluster.topic("%RETRY%G")
    client = cluster.client()
    client.heartbeat(sql("a > 5", 7))
    retried = [{"a": "1", "RETRY_TOPIC": "T"}, {"a": "6", "RETRY_TOPIC": "T"}, {"a": "1", "RETRY_TOPIC": "Other"}]
    send(cluster, client, *retried, topic="%RETRY%G")
    response = client.pull("%RETRY%G", subscription="a IS NOT NULL", expression_type="SQL92")
    assert bodies(response) == retried[1:]
    cluster.broker.broker_config.filter_support_retry = False
    response = client.pull("%RETRY%G", subscription="a IS NOT NULL", expression_type="SQL92")
    assert bodies(response) == retried
    assert encode_properties(retried[0]) == "a\x011\x02RETRY_TOPIC\x01T\x02"
