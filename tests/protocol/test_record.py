"""Stored messages: their bytes as a real broker writes them, and what happens when these are damaged."""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError, ProtocolError
from mqlab.protocol import (
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    MessageSysFlag,
    decode_properties,
    decode_record,
    encode_blank,
    encode_record,
    record_size,
    scan_records,
)
from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import (
    BODY_CRC_OFFSET,
    CRC_TAIL_BYTES,
    PHYSICAL_OFFSET_OFFSET,
    QUEUE_OFFSET_OFFSET,
    RECORD_MIN_BYTES,
    STORE_TIMESTAMP_OFFSET,
    SYS_FLAG_OFFSET,
    crc_tail,
)

HOSTS = ("10.0.0.1:54321", "10.0.0.2:10911")


def make(topic="T", body=b"hello", properties="TAGS\x01TagA\x02", hosts=HOSTS, **more):
    return encode_record(topic, body, properties, 3, 5, 1024, 1700000000456, 1700000000123, *hosts, **more)


def again(message, properties):
    return encode_record(
        message.topic, message.body, properties, message.queue_id, message.queue_offset, message.commit_log_offset,
        message.store_timestamp, message.born_timestamp, message.born_host, message.store_host, message.flag,
        message.sys_flag, message.reconsume_times, message.prepared_transaction_offset,
    )  # fmt: skip


def test_every_vector_decodes_to_what_java_decoded(vectors):
    for row in vectors("message-encode"):
        if "encodedHex" not in row or row["decoded"] == "null":
            continue
        record, expected = bytes.fromhex(row["encodedHex"]), row["decoded"]
        # Rows with a packed body carry the CRC of the unpacked one: these records were never in a store.
        message = decode_record(record, check_crc=not row["needCompress"])
        assert (message.topic, message.offset_msg_id) == (expected["topic"], expected["msgId"]), row
        assert (message.sys_flag, message.store_size) == (expected["sysFlag"], expected["storeSize"]), row
        assert len(message.body) == max(expected["bodyLength"], 0), row
        assert message.body.decode() == row["body"], row
        assert message.born_host.rpartition(":")[0] == expected["bornHostString"], row
        assert message.properties == expected["properties"], row
        for name, key in (("flag", "flag"), ("reconsume_times", "reconsumeTimes"), ("queue_id", "queueId"),
                          ("queue_offset", "queueOffset"), ("commit_log_offset", "commitLogOffset"),
                          ("born_timestamp", "bornTimestamp"), ("store_timestamp", "storeTimestamp"),
                          ("prepared_transaction_offset", "preparedTransactionOffset"),
                          ("body_crc", "bodyCrcInput")):  # fmt: skip
            assert getattr(message, name) == row[key], (name, row)


def test_every_vector_encodes_to_the_same_bytes(vectors):
    for row in vectors("message-encode"):
        if "encodedHex" in row and not row["needCompress"]:
            record = bytes.fromhex(row["encodedHex"])
            stored = decode_record(record, check_crc=False, decompress=False)
            made = again(stored, row["properties"])
            assert made[:BODY_CRC_OFFSET] + made[12:] == record[:BODY_CRC_OFFSET] + record[12:], row
            assert int.from_bytes(made[8:12], "big") == crc32(row["body"].encode()) & 0x7FFFFFFF, row


def test_a_record_that_java_cannot_decode_is_an_error(vectors):
    rows = [row for row in vectors("message-encode") if row.get("decoded") == "null"]
    assert rows
    for row in rows:
        with pytest.raises(RecordError, match="cannot unpack a ZLIB body"):
            decode_record(bytes.fromhex(row["encodedHex"]))


def test_stored_packed_bodies_unpack_to_what_was_sent(vectors):
    for row in vectors("compressed-records"):
        record = bytes.fromhex(row["recordHex"])
        message = decode_record(record)
        assert len(message.body) == row["bodyLength"], row["sysFlag"]
        assert hashlib.sha256(message.body).hexdigest() == row["bodySha256"], row["sysFlag"]
        assert message.sys_flag == row["sysFlag"] & ~MessageSysFlag.COMPRESSED
        stored = decode_record(record, decompress=False)
        assert (stored.sys_flag, len(stored.body)) == (row["sysFlag"], stored.stored_body_length)


def test_recorded_records_encode_to_the_same_bytes(vectors):
    for row in vectors("compressed-records"):
        record = bytes.fromhex(row["recordHex"])
        stored = decode_record(record, decompress=False)
        length = sum(len(name) + len(value) + 2 for name, value in stored.properties.items())
        # The properties are the last thing in a record.
        assert again(stored, record[-length:].decode()) == record


def test_the_smallest_record_has_91_bytes():
    assert len(make(topic="", body=b"", properties="")) == RECORD_MIN_BYTES == 91


def test_the_places_of_the_fields():
    record = make()
    assert struct.unpack_from(">q", record, QUEUE_OFFSET_OFFSET) == (5,)
    assert struct.unpack_from(">q", record, PHYSICAL_OFFSET_OFFSET) == (1024,)
    assert struct.unpack_from(">i", record, SYS_FLAG_OFFSET) == (0,)
    assert struct.unpack_from(">q", record, STORE_TIMESTAMP_OFFSET) == (1700000000456,)


@pytest.mark.parametrize(
    ("hosts", "bits", "more"),
    [
        (HOSTS, 0, 0),
        (("::1:1", HOSTS[1]), 0x10, 12),
        ((HOSTS[0], "2001:db8::2:10911"), 0x20, 12),
        (("::1:1", "fe80::1:2"), 0x30, 24),
    ],
)
def test_an_ipv6_host_takes_12_bytes_more_and_sets_its_bit(hosts, bits, more):
    record = make(hosts=hosts)
    message = decode_record(record)
    assert len(record) == len(make()) + more == record_size("T", 5, 10, bits)
    assert message.sys_flag == bits
    assert (message.queue_id, message.properties) == (3, {"TAGS": "TagA"})


def test_a_topic_over_127_characters_takes_the_second_magic_code():
    assert decode_record(make(topic="t" * 127)).magic == MESSAGE_MAGIC_CODE
    long = decode_record(make(topic="%RETRY%" + "g" * 200))
    assert (long.magic, long.topic) == (MESSAGE_MAGIC_CODE_V2, "%RETRY%" + "g" * 200)
    assert len(make(topic="t" * 128)) == len(make(topic="t" * 127)) + 2


def test_a_topic_that_needs_more_bytes_than_characters_still_fits():
    assert decode_record(make(topic="主" * 100)).topic == "主" * 100


def test_a_topic_that_no_length_field_can_hold_is_refused():
    with pytest.raises(LearnerError, match="the topic has 40000 bytes"):
        make(topic="t" * 40000)


def test_properties_that_are_too_long_are_refused():
    with pytest.raises(LearnerError, match="32768 bytes"):
        make(properties="x" * 32768)
    assert decode_record(make(properties="a\x01" + "x" * 32764 + "\x02")).properties["a"] == "x" * 32764


def test_the_optional_crc_tail_holds_its_digits_backwards():
    record = make(append_crc=True)
    assert len(record) == len(make()) + CRC_TAIL_BYTES == record_size("T", 5, 10, append_crc=True)
    assert record[-CRC_TAIL_BYTES:].startswith(b"__CRC32#\x01")
    digits = record[-11:-1].decode()
    assert int(digits[::-1]) == crc32(record[:-CRC_TAIL_BYTES]) & 0x7FFFFFFF
    assert record[-CRC_TAIL_BYTES:] == crc_tail(record[:-CRC_TAIL_BYTES])
    assert decode_record(record, check_properties_crc=True).properties == {"TAGS": "TagA", "__CRC32#": digits}


def test_properties_before_the_crc_tail_get_their_last_separator():
    record = make(properties="a\x011", append_crc=True)
    assert decode_record(record).properties["a"] == "1"
    bare = decode_record(make(properties="", append_crc=True), check_properties_crc=True)
    assert bare.properties.keys() == {"__CRC32#"}


def test_a_change_anywhere_is_seen_by_the_crc_tail():
    record = bytearray(make(append_crc=True))
    record[QUEUE_OFFSET_OFFSET + 7] ^= 1
    assert decode_record(bytes(record)).queue_offset == 4
    with pytest.raises(RecordError, match="the CRC at its end"):
        decode_record(bytes(record), check_properties_crc=True)
    assert decode_record(make(), check_properties_crc=True).body == b"hello", "no tail, no such CRC"


def test_a_changed_body_is_seen_by_its_crc():
    record = make().replace(b"hello", b"hellO")
    with pytest.raises(RecordError, match="the CRC of the body is") as problem:
        decode_record(bytes(7) + record, 7, check_crc=True)
    assert problem.value.offset == 7
    assert decode_record(record).body == b"hellO", "as who pulls it gets it"
    assert decode_record(record, read_body=False).body == b""
    assert decode_record(record, read_body=False).stored_body_length == 5


def test_what_is_not_utf_8_is_replaced_as_java_does():
    record = make(properties="a\x01b\x02").replace(b"a\x01b\x02", b"\xff\x01b\x02")
    assert decode_record(record).properties == {"\ufffd": "b"}


def changed(offset: int, value: int) -> bytes:
    record = bytearray(make())
    struct.pack_into(">i", record, offset, value)
    return bytes(record)


BROKEN = {
    "only 7 bytes are left": make()[:7],
    "its total size is 107, 106 bytes are left": make()[:-1],
    "unknown magic code 0x00000001": changed(4, 1),
    "its total size is 90": changed(0, 90),
    "its total size is -1": changed(0, -1),
    "its parts take 107 bytes, its total size is 106": changed(0, 106),
    "a length inside it points behind the end": changed(84, 1 << 30),
    "it is the blank at the end of a file": encode_blank(100),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_record_says_what_is_wrong_with_it(reason):
    record = BROKEN[reason]
    with pytest.raises(RecordError, match=reason):
        decode_record(record)


def test_records_lie_one_behind_the_other():
    body = make(body=b"one") + make(body=b"two") + make(body=b"three")
    assert [message.body for message in scan_records(body)] == [b"one", b"two", b"three"]
    records = scan_records(body + b"rest")
    assert [next(records).body for _ in range(3)] == [b"one", b"two", b"three"]
    with pytest.raises(RecordError, match=f"byte {len(body)}: only 4 bytes"):
        next(records)


texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)
hosts = st.sampled_from(["10.0.0.1:1", "255.255.255.255:65535", "2001:db8:0:0:0:0:0:1:80", "0:0:0:0:0:0:0:1:10911"])
longs = st.integers(-(1 << 63), (1 << 63) - 1)
ints = st.integers(-(1 << 31), (1 << 31) - 1)


@given(texts, st.binary(max_size=300), texts, ints, longs, longs, longs, longs, hosts, hosts, ints,
       st.sampled_from([0, 4, 8, 12, 0xC0]), ints, longs, st.booleans())  # fmt: skip
def test_any_record_comes_back_the_same(
    topic, body, properties, queue_id, queue_offset, physical, stored, born, born_host, store_host, flag, sys_flag,
    reconsumed, prepared, tail,
):  # fmt: skip
    record = encode_record(topic, body, properties, queue_id, queue_offset, physical, stored, born, born_host,
                           store_host, flag, sys_flag, reconsumed, prepared, tail)  # fmt: skip
    message = decode_record(b"xy" + record, 2, check_properties_crc=True)
    assert message.sys_flag == sys_flag | (born_host.count(":") > 1) << 4 | (store_host.count(":") > 1) << 5
    assert (message.topic, message.body, message.flag) == (topic, body, flag)
    assert {k: v for k, v in message.properties.items() if k != "__CRC32#"} == {
        k: v for k, v in decode_properties(properties).items() if k != "__CRC32#"
    }
    assert (message.queue_id, message.queue_offset, message.commit_log_offset) == (queue_id, queue_offset, physical)
    assert (message.born_timestamp, message.store_timestamp, message.store_size) == (born, stored, len(record))
    assert (message.born_host, message.store_host) == (born_host, store_host)
    assert (message.reconsume_times, message.prepared_transaction_offset) == (reconsumed, prepared)


@given(st.data())
def test_a_damaged_record_decodes_or_is_a_protocol_error_and_nothing_else(data):
    record = bytearray(make(append_crc=data.draw(st.booleans()), sys_flag=data.draw(st.sampled_from([0, 1, 0x301]))))
    for _ in range(data.draw(st.integers(1, 4))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    record = record[: data.draw(st.integers(0, len(record)))] if data.draw(st.booleans()) else record
    with suppress(ProtocolError):
        decode_record(bytes(record), check_crc=data.draw(st.booleans()), check_properties_crc=True)


@given(st.binary(max_size=200))
def test_random_bytes_behind_a_magic_code_are_a_protocol_error_or_a_record(rest):
    with suppress(ProtocolError):
        decode_record(struct.pack(">ii", len(rest) + 8, MESSAGE_MAGIC_CODE) + rest)
