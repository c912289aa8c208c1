"""Java's hashes and orders, flag words, and the texts of properties."""

from __future__ import annotations

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from mqlab.protocol import (
    MessageSysFlag,
    PermName,
    PullSysFlag,
    TopicSysFlag,
    decode_properties,
    encode_properties,
    index_key_hash,
    java_map_order,
    java_string_hash,
    tags_code,
)
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, NEW_MAP_CAPACITY


def test_every_hash_vector(vectors):
    for row in vectors("hashes"):
        if "string" in row:
            text = row["string"]
            assert java_string_hash(text) == row["hashCode"], row
            assert index_key_hash(text) == row["indexKeyHash"], row
            assert tags_code(text) == row["tagsCode"], row
            assert crc32(text.encode()) & 0x7FFFFFFF == row["crc32OfUtf8"], row
        elif "bytes" in row:
            length = int(row["bytes"].rsplit("..", 1)[1])
            assert crc32(bytes(i & 255 for i in range(length))) & 0x7FFFFFFF == row["crc32"], row
        else:
            assert tags_code(None) == row["tagsCode"]


def test_two_tags_can_have_one_hash():
    assert tags_code("Aa") == tags_code("BB") == 2112


def test_a_lone_surrogate_has_a_hash_too():
    assert java_string_hash("\ud83d") == 0xD83D


def test_every_flag_vector(vectors):
    for row in vectors("flags"):
        if row["kind"] == "PullSysFlag":
            bits = (row["commitOffset"], row["suspend"], row["subscription"], row["classFilter"])
            flag = PullSysFlag.build(*bits)
            assert (flag, PullSysFlag.build(*bits, lite_pull=True)) == (row["flag"], row["flagLite"]), row
            assert bits == (
                PullSysFlag.has_commit_offset(flag), PullSysFlag.has_suspend(flag),
                PullSysFlag.has_subscription(flag), PullSysFlag.has_class_filter(flag),
            ), row  # fmt: skip
        elif row["kind"] == "TopicSysFlag":
            assert TopicSysFlag.build(row["unit"], row["hasUnitSub"]) == row["flag"], row
            assert TopicSysFlag.has_unit(row["flag"]) == row["unit"], row
            assert TopicSysFlag.has_unit_sub(row["flag"]) == row["hasUnitSub"], row
        elif row["kind"] == "MessageSysFlag":
            flag = row["flag"]
            assert MessageSysFlag.transaction_value(flag) == row["transactionValue"], row
            assert MessageSysFlag.reset_transaction_value(flag, 8) == row["reset8"], row
            assert MessageSysFlag.clear_compressed(flag) == row["clearCompressed"], row
            assert MessageSysFlag.compression_name(flag) == row["compressionType"], row
        else:
            perm = row["perm"]
            assert PermName.text(perm) == row["string"], row
            assert PermName.is_readable(perm) == row["readable"], row
            assert PermName.is_writeable(perm) == row["writeable"], row
            assert PermName.is_inherited(perm) == row["inherited"], row


def test_a_flag_loses_single_bits():
    flag = PullSysFlag.build(True, True, True)
    assert PullSysFlag.clear_commit_offset(flag) == PullSysFlag.build(False, True, True)
    assert PullSysFlag.clear_suspend(flag) == PullSysFlag.build(True, False, True)
    assert not PullSysFlag.has_lite_pull(flag)
    assert MessageSysFlag.check(0xC0, MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP)
    assert MessageSysFlag.is_compressed(0x301)
    assert not PermName.is_accessible(PermName.INHERIT)
    assert PermName.is_accessible(PermName.READ)
    assert not MessageSysFlag.check(0x80, MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP)


def test_every_properties_vector(vectors):
    for row in vectors("properties-string"):
        if "map" in row:
            assert encode_properties(row["map"]) == row["string"], row
            assert encode_properties(row["map"]).encode().hex() == row["stringHex"], row
        else:
            assert decode_properties(row["parseInput"]) == row["parsed"], row


def test_a_property_that_is_none_is_left_out():
    assert encode_properties({"a": None, "b": "1"}) == "b\x011\x02"


def test_properties_can_stand_in_the_order_in_which_a_real_broker_stores_them():
    sent = dict.fromkeys(["TAGS", "KEYS", "WAIT", "a", "UNIQ_KEY"], "x")
    on_the_wire = decode_properties(encode_properties(sent, NEW_MAP_CAPACITY))
    assert list(on_the_wire) == ["a", "KEYS", "UNIQ_KEY", "WAIT", "TAGS"]
    at_the_broker = {**on_the_wire, "MSG_REGION": "x", "TRACE_ON": "x", "CLUSTER": "x"}
    stored = decode_properties(encode_properties(at_the_broker, DECODED_MAP_CAPACITY))
    assert list(stored) == ["MSG_REGION", "UNIQ_KEY", "CLUSTER", "TAGS", "KEYS", "WAIT", "a", "TRACE_ON"]


def test_the_order_of_a_java_map_follows_its_buckets():
    assert java_map_order(["b", "a", "c"]) == ["a", "b", "c"]
    assert java_map_order(["q", "a"]) == ["q", "a"], "both fall into bucket 1 and keep the order they came in"
    assert java_map_order([str(i) for i in range(10, 30)]) == java_map_order([str(i) for i in range(10, 30)], 32)


names = st.text(st.characters(blacklist_characters="\x01\x02", blacklist_categories=["Cs"]), min_size=1, max_size=10)


@given(st.dictionaries(names, names, max_size=8), st.sampled_from([None, 16, 128]))
def test_any_properties_come_back_the_same(properties, capacity):
    assert decode_properties(encode_properties(properties, capacity)) == properties
