"""The JSON dialect of fastjson, read and written."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.protocol import fastjson
from mqlab.protocol.bodies import TopicStatsTable
from mqlab.protocol.errors import BodyError
from mqlab.protocol.fastjson import ObjectKey
from mqlab.protocol.json_text import json_string
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from mqlab.protocol.topic_config import (
    ConsumerOffsetSerializeWrapper,
    DataVersion,
    DelayOffsetSerializeWrapper,
    RegisterBrokerBody,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
)


def test_every_configuration_file_is_written_back_byte_for_byte(config_files):
    assert len(config_files) == 8
    for name, content in config_files.items():
        value = fastjson.loads(content.decode(), keep_arrays=True)
        pretty = b"\n" in content
        assert fastjson.dumps(value, pretty=pretty).encode() == content, name


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("topics.json", TopicConfigSerializeWrapper),
        ("subscriptionGroup.json", SubscriptionGroupWrapper),
        ("consumerOffset.json", ConsumerOffsetSerializeWrapper),
        ("delayOffset.json", DelayOffsetSerializeWrapper),
    ],
)
def test_a_configuration_file_becomes_its_class_and_back(name, cls, config_files):
    assert cls.decode(config_files[name]).encode_pretty() == config_files[name]


def test_the_values_of_a_configuration_file(config_files):
    topics = TopicConfigSerializeWrapper.decode(config_files["topics.json"]).topic_config_table
    assert topics["GoldenBatchCQ"] == TopicConfig("GoldenBatchCQ", 2, 2, attributes={"queue.type": "BatchCQ"})
    offsets = ConsumerOffsetSerializeWrapper.decode(config_files["consumerOffset.json"]).offset_table
    assert offsets["GoldenOrder@G_ORDER"] == {0: 4, 1: 4}


def test_number_keys_and_object_keys_are_read():
    assert fastjson.loads('{0:"a",-1:"b"}') == {0: "a", -1: "b"}
    value = fastjson.loads('{{"topic":"T","queueId":0}:3}')
    assert value == {ObjectKey([("topic", "T"), ("queueId", 0)]): 3}
    assert fastjson.dumps(value) == '{{"topic":"T","queueId":0}:3}'
    (key,) = value
    assert (key.as_dict(), repr(key)) == ({"topic": "T", "queueId": 0}, "ObjectKey({'topic': 'T', 'queueId': 0})")


def test_a_comma_too_many_is_taken():
    assert fastjson.loads('{0:[1,2,],"a":{},}') == {0: [1, 2], "a": {}}


def test_a_list_on_one_line_stays_on_one_line_when_asked_for():
    assert fastjson.loads('{"a":[1,2]}', keep_arrays=True) == {"a": (1, 2)}
    assert fastjson.dumps({"a": (1, 2), "b": [3]}, pretty=True) == '{\n\t"a":[1,2],\n\t"b":[\n\t\t3\n\t]\n}'


def test_what_is_no_json_cannot_be_written():
    with pytest.raises(TypeError, match="set has no form in JSON"):
        fastjson.dumps({"a": {1}})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", '{"a"', "{a:1}", '{"a":}', "nul", "{1:2", "{[1]:2}", '"abc', '{"a":1 "b":2}', "1 2", "[" * 100000,
     '{{"a":{}}:1}', "{1" * 300, "9" * 5000, "{1.5:1}", "{true:1}", "[1 2]", '{"a":"\\x"}'],
)  # fmt: skip
def test_what_is_neither_json_nor_the_dialect_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"char|deeply"):
        fastjson.loads(text)
    with pytest.raises(ValueError, match=r"char|deeply"):
        fastjson.loads(text, keep_arrays=True)


def test_texts_are_escaped_as_fastjson_escapes_them():
    assert json_string('a"\\\b\t\n\f\r') == '"a\\"\\\\\\b\\t\\n\\f\\r"'
    assert json_string("\x01\x1f\x7f\x9f\u2028中") == '"\\u0001\\u001F\\u007F\\u009F\\u2028中"'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(st.characters(blacklist_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5) | st.integers(0, 99), inner, max_size=3),
    max_leaves=10,
)


@given(json_values, st.booleans())
def test_any_value_comes_back_the_same(value, pretty):
    assert fastjson.loads(fastjson.dumps(value, pretty=pretty)) == value


@given(st.text(st.sampled_from('{}[]:,"0a\\ n\n-.e'), max_size=30))
def test_any_text_is_a_value_or_a_value_error(text):
    with suppress(ValueError):
        fastjson.loads(text)


def test_a_route_in_standard_json_has_quoted_sorted_keys_and_ascii_only():
    route = TopicRouteData(
        [QueueData("broker-中", 4, 4, 6)], [BrokerData("C", "broker-中", {1: "10.0.0.3:10911", 0: "10.0.0.2:10911"})]
    )
    text = route.encode_standard().decode()
    assert text == (
        '{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.2:10911","1":"10.0.0.3:10911"},"brokerName":"broker-\\u4e2d",'
        '"cluster":"C","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-\\u4e2d",'
        '"perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )
    assert json.loads(text)["brokerDatas"][0]["brokerAddrs"] == {"0": "10.0.0.2:10911", "1": "10.0.0.3:10911"}
    assert TopicRouteData.decode(text.encode()) == route == TopicRouteData.decode(route.encode())
    assert route.select_broker_data("broker-中").master_addr == "10.0.0.2:10911"
    assert route.select_broker_data("broker-b") is None


def test_queues_as_keys_come_back_as_queues():
    table = TopicStatsTable.decode(
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"minOffset":1,"maxOffset":2}}}'
    )
    assert list(table.offset_table) == [MessageQueue("T", "b", 1)]
    assert table.offset_table[MessageQueue("T", "b", 1)].max_offset == 2


@pytest.mark.parametrize(
    ("cls", "body", "reason"),
    [
        (ClusterInfo, None, "bad ClusterInfo body: it is empty"),
        (ClusterInfo, b"[]", "it is a list, not an object"),
        (ClusterInfo, b"{", "bad ClusterInfo body"),
        (ClusterInfo, b"\xff", "bad ClusterInfo body"),
        (ClusterInfo, b'{"brokerAddrTable":[]}', "brokerAddrTable: .* is not an object"),
        (BrokerData, b'{"cluster":"C"}', "brokerName is missing"),
        (BrokerData, b'{"cluster":"C","brokerName":"b","brokerAddrs":{"x":"a"}}', "the key 'x' is not a number"),
        (QueueData, b'{"brokerName":"b","readQueueNums":"4","writeQueueNums":4,"perm":6}', "readQueueNums: '4' is not"),
        (TopicRouteData, b'{"queueDatas":{}}', "queueDatas: .* is not a list"),
        (TopicRouteData, b'{"queueDatas":[1]}', "queueDatas: 1 is not an object"),
        (TopicStatsTable, b'{"offsetTable":{"a":{}}}', "offsetTable: 'a' is not a message queue"),
        (TopicStatsTable, b'{"offsetTable":{{"topic":"T"}:{}}}', "is not a message queue"),
        (RegisterBrokerBody, b"{}", "topicConfigSerializeWrapper is missing"),
    ],
)
def test_a_body_that_is_not_what_it_should_be_names_the_member(cls, body, reason):
    with pytest.raises(BodyError, match=reason):
        cls.decode(body)


def test_a_data_version_counts_the_changes():
    version = DataVersion()
    version.next_version(1700000000000)
    other = version.copy()
    version.next_version(1700000000001, state_version=2)
    assert (version.counter, version.timestamp, version.state_version) == (2, 1700000000001, 2)
    assert other != version
    other.assign(version)
    assert other == version
