"""Messages, queues and the two kinds of message id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError
from mqlab.protocol import (
    Message,
    MessageExt,
    MessageId,
    MessageQueue,
    UniqueKeyGenerator,
    create_message_id,
    decode_message_id,
    decode_unique_key,
)
from mqlab.protocol.errors import MessageIdError
from mqlab.protocol.hosts import decode_host, encode_host, ip_bytes, ip_text, is_ipv6
from mqlab.protocol.message_id import month_bounds_ms


def test_a_message_keeps_tag_and_keys_as_properties():
    message = Message("T", "你好", tags="TagA", keys=["k1", "k2"], properties={"price": "3"}, delay_level=2)
    assert message.body == "你好".encode()
    assert (message.tags, message.keys, message.delay_time_level) == ("TagA", "k1 k2", 2)
    assert message.properties == {"TAGS": "TagA", "KEYS": "k1 k2", "WAIT": "true", "DELAY": "2", "price": "3"}


def test_the_friendly_names_set_the_properties():
    message = Message("T", b"x", wait_store_msg_ok=False)
    assert not message.wait_store_msg_ok
    message.tags, message.keys, message.delay_time_level, message.wait_store_msg_ok = "t", ["a", "b"], 3, True
    assert message.properties == {"WAIT": "true", "TAGS": "t", "KEYS": "a b", "DELAY": "3"}
    message.put_property("UNIQ_KEY", "7F")
    assert message.get_property("UNIQ_KEY") == "7F"
    message.clear_property("UNIQ_KEY")
    assert message.get_property("UNIQ_KEY") is None


def test_a_message_waits_for_the_store_unless_it_says_otherwise():
    message = Message("T", b"x")
    message.clear_property("WAIT")
    assert message.wait_store_msg_ok


def test_a_user_may_not_set_a_property_of_rocketmq():
    message = Message("T", b"x")
    with pytest.raises(LearnerError, match="The Property<UNIQ_KEY> is used by system, input another please"):
        message.put_user_property("UNIQ_KEY", "1")
    with pytest.raises(LearnerError, match="can not be null or blank string"):
        message.put_user_property("a", " ")
    message.put_user_property("a", "1")
    assert message.get_user_property("a") == "1"


def test_a_wrong_body_or_property_says_what_to_do():
    with pytest.raises(LearnerError, match="bytes, not dict"):
        Message("T", {"a": 1})
    with pytest.raises(LearnerError, match="names and values of properties are str"):
        Message("T", b"x", properties={"price": 3})
    with pytest.raises(LearnerError, match="names and values of properties are str"):
        Message("T", b"x").put_property("price", 3)
    assert Message("T", bytearray(b"x")).body == b"x"


def test_a_message_shows_itself():
    shown = "Message(topic='T', body=b'hi', properties={'TAGS': 'A', 'WAIT': 'true'})"
    assert repr(Message("T", b"hi", tags="A")) == shown
    assert "4096 bytes" in repr(Message("T", bytes(4096)))


def test_queues_sort_as_rocketmq_sorts_them_and_show_themselves_as_there():
    parts = [("B", "a", 0), ("A", "b", 1), ("A", "b", 0), ("A", "a", 9)]
    queues = [MessageQueue(*part) for part in parts]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]
    assert str(queues[0]) == repr(queues[0]) == "MessageQueue [topic=B, brokerName=a, queueId=0]"


def test_a_received_message_has_the_id_of_its_producer_or_else_that_of_its_broker():
    message = MessageExt("T", b"x", store_host="127.0.0.1:10911", commit_log_offset=0)
    assert message.msg_id == message.offset_msg_id == "7F00000100002A9F0000000000000000"
    message.put_property("UNIQ_KEY", "7F000001000A4AA94B0B2F4C5D6E0001")
    assert message.msg_id == "7F000001000A4AA94B0B2F4C5D6E0001"
    message.broker_name = "broker-a"
    assert message.message_queue == MessageQueue("T", "broker-a", 0)
    assert "queue_offset=0" in repr(message)


def test_every_offset_message_id_vector(vectors):
    for row in vectors("offset-msg-id"):
        if "ip" in row:
            assert create_message_id(f"{row['ip']}:{row['port']}", row["offset"]) == row["msgId"], row
        if "decoded" in row:
            assert decode_message_id(row["msgId"])._asdict() == row["decoded"], row
        else:
            with pytest.raises(MessageIdError):
                decode_message_id(row["msgId"])


def test_an_id_that_is_none_says_why():
    with pytest.raises(MessageIdError, match="it has 31 characters, not 32"):
        decode_message_id("0" * 31)
    with pytest.raises(MessageIdError, match="not hexadecimal"):
        decode_message_id("zz" * 16)
    with pytest.raises(MessageIdError, match="not hexadecimal"):
        decode_unique_key(" 0" * 16, 0)
    with pytest.raises(MessageIdError, match="it has 2 characters"):
        decode_unique_key("7F", 0)


def test_the_time_of_a_unique_key_from_the_end_of_a_month_lies_in_the_month_before():
    _, after = month_bounds_ms(1700000000000)
    key = UniqueKeyGenerator("10.0.0.1", 1, 1).next(after - 5)
    assert decode_unique_key(key, after + 5).time_ms == after - 5


def test_every_unique_key_vector(vectors):
    *rows, note = vectors("uniq-key")
    for row in rows:
        key = decode_unique_key(row["uniqKey"], note["now"])
        assert ip_bytes(key.ip).hex() == row["ipHex"], row
        assert (key.pid, key.time_ms) == (row["pid"], row["nearlyTimeMillis"]), row


def test_a_generator_gives_the_keys_that_java_gave(vectors):
    rows = [row for row in vectors("uniq-key") if row.get("pid") == 9620]
    keys = UniqueKeyGenerator("fd00::2", 9620, 0x30946E09, counter=0)
    assert decode_unique_key(rows[0]["uniqKey"], rows[0]["nearlyTimeMillis"] + 1).class_loader_hash == 0x30946E09
    assert [keys.next(row["nearlyTimeMillis"]) for row in rows] == [row["uniqKey"] for row in rows]


def test_the_counter_of_unique_keys_wraps():
    keys = UniqueKeyGenerator("10.0.0.1", 70000, -1, counter=0xFFFF)
    first, second = keys.next(1700000000000), keys.next(1700000000000)
    assert (first[-4:], second[-4:]) == ("FFFF", "0000")
    assert first[:20] == "0A000001" + "1170" + "FFFFFFFF"


def test_the_time_in_a_unique_key_starts_again_with_every_month():
    keys = UniqueKeyGenerator("10.0.0.1", 1, 1)
    start, after = month_bounds_ms(1700000000000)
    assert keys.next(after - 1)[20:28] == f"{after - 1 - start:08X}"
    assert keys.next(after)[20:28] == "00000000"
    assert keys.next(after - 1000)[20:28] == "00000000", "a clock set back a little counts as no time"
    assert keys.next(after - 2_000_000)[20:28] == f"{-2_000_000 & 0xFFFFFFFF:08X}"


@pytest.mark.parametrize("wrong", ["10.0.0.1", "10.0.0.1:x", "10.0.0:1", "host:1", "::g:1"])
def test_an_address_that_is_none_says_how_to_write_one(wrong):
    with pytest.raises(LearnerError, match="write it as"):
        encode_host(wrong)


def test_an_ipv6_address_is_spelled_as_java_spells_it():
    assert decode_host(encode_host("[2001:db8::ff00:42:8329]:8080")) == "2001:db8:0:0:0:ff00:42:8329:8080"
    assert is_ipv6("::1:10911")
    assert not is_ipv6("10.0.0.1:10911")


@given(st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)), st.integers(0, 65535),
       st.integers(-(1 << 63), (1 << 63) - 1))  # fmt: skip
def test_any_message_id_comes_back_the_same(ip, port, offset):
    address = f"{ip_text(ip)}:{port}"
    assert decode_message_id(create_message_id(address, offset)) == MessageId(address, offset)
