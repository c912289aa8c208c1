"""Batches, and packing of bodies."""

from __future__ import annotations

import base64
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError, MissingExtraError, MQClientException, ProtocolError
from mqlab.protocol import (
    Message,
    MessageBatch,
    MessageExt,
    MessageSysFlag,
    compress,
    compression_flag,
    decode_batch,
    decode_properties,
    decode_record,
    decompress,
    encode_batch,
    encode_batch_entry,
    retry_topic,
    unwrap_inner_batch,
)
from mqlab.protocol.compression import LZ4, ZLIB, ZSTD
from mqlab.protocol.errors import CompressionError, RecordError


def test_every_batch_vector(vectors):
    rows = vectors("batch-entry")
    for row in rows:
        message = MessageExt(row["topic"], base64.b64decode(row["bodyBase64"]), flag=row["flag"])
        message.properties = decode_properties(row["properties"])
        entry = bytes.fromhex(row["encodedHex"])
        assert encode_batch_entry(message) == entry, row
        assert decode_batch(entry) == [(row["flag"], message.body, row["properties"])], row
    body = b"".join(bytes.fromhex(row["encodedHex"]) for row in rows)
    assert [entry.flag for entry in decode_batch(body)] == [row["flag"] for row in rows]


def test_a_batch_has_one_topic_and_one_way_to_wait():
    messages = [Message("T", b"one", tags="a"), Message("T", b"two")]
    batch = MessageBatch.generate_from_list(messages)
    assert (batch.topic, batch.wait_store_msg_ok, batch.messages) == ("T", True, messages)
    assert batch.body == encode_batch(messages)
    messages[0].put_property("UNIQ_KEY", "7F00")
    assert batch.encode() == batch.body == encode_batch(messages)
    assert [entry.body for entry in decode_batch(batch.body)] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "can not be null or empty"),
        ([Message("T", b"x"), Message("U", b"x")], "should be the same"),
        ([Message("T", b"x"), Message("T", b"x", wait_store_msg_ok=False)], "waitStoreMsgOK"),
        ([Message("T", b"x", delay_level=1)], "TimeDelayLevel is not supported"),
        ([Message(retry_topic("G"), b"x")], "Retry Group is not supported"),
    ],
)
def test_messages_that_do_not_go_together_are_refused(messages, reason):
    with pytest.raises(MQClientException, match=reason):
        MessageBatch.generate_from_list(messages)


def test_an_entry_with_too_long_properties_is_refused():
    with pytest.raises(LearnerError, match="32767 bytes are the most"):
        encode_batch_entry(Message("T", b"x", keys="k" * 40000))


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\x00", lambda b: b"\x7f" + b[1:],
                                    lambda b: b[:16] + b"\xff" * 4 + b[20:]])  # fmt: skip
def test_a_broken_batch_is_an_error(damage):
    body = encode_batch([Message("T", b"one"), Message("T", b"two")])
    with pytest.raises(RecordError, match="batch entry"):
        decode_batch(damage(body))


def test_an_inner_batch_comes_apart_into_single_messages(vectors):
    for row in vectors("inner-batch"):
        stored = decode_record(bytes.fromhex(row["recordHex"]))
        single = unwrap_inner_batch(stored)
        assert len(single) == int(row["properties"]["INNER_NUM"])
        base = int(row["properties"]["INNER_BASE"])
        assert [message.queue_offset for message in single] == list(range(base, base + len(single)))
        for message in single:
            assert message.sys_flag & (MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP) == 0
            assert (message.store_host, message.topic) == (stored.store_host, "GoldenBatchCQ")
            assert message.properties["WAIT"] == "true"
            assert message.msg_id != stored.msg_id


def test_a_single_message_stays_as_it_is():
    message = MessageExt("T", b"x")
    assert unwrap_inner_batch(message) == [message]


@given(st.data())
def test_a_damaged_batch_decodes_or_is_a_protocol_error_and_nothing_else(data):
    body = bytearray(encode_batch([Message("T", b"one", tags="a"), Message("T", b"two")]))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        decode_batch(bytes(body))


@pytest.mark.parametrize("kind", [ZLIB, LZ4, ZSTD])
@pytest.mark.parametrize("level", [1, 5, 9])
def test_a_packed_body_unpacks_to_itself(kind, level):
    body = b"The quick brown fox. " * 300
    packed = compress(kind, body, level)
    assert len(packed) < len(body)
    assert decompress(compression_flag(kind) | MessageSysFlag.COMPRESSED, packed) == body


def test_packed_bodies_begin_as_java_lets_them_begin():
    body = b"The quick brown fox. " * 300
    assert compress(ZLIB, body)[0] == 0x78
    assert compress(LZ4, body)[:6].hex() == "04224d186070", "independent blocks of 4 MB, no size, no check sum"
    assert compress(ZSTD, body)[:6].hex() == "28b52ffd0058", "no size, the window of level 5"
    assert decompress(0, compress(ZLIB, body)) == body, "no bits mean ZLIB"


@pytest.mark.parametrize("kind", [ZLIB, LZ4, ZSTD])
@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b"", lambda b: b"no" + b])
def test_a_body_that_cannot_be_unpacked_names_the_kind(kind, damage):
    packed = compress(kind, bytes(range(256)) * 20)
    with pytest.raises(CompressionError, match=f"cannot unpack a {kind} body"):
        decompress(compression_flag(kind), damage(packed))


def test_an_unknown_kind_is_refused():
    with pytest.raises(CompressionError, match="the kinds are ZLIB, LZ4 and ZSTD"):
        compress("SNAPPY", b"x")


@pytest.mark.parametrize(("kind", "module", "package"), [(LZ4, "lz4.frame", "lz4"), (ZSTD, "zstandard", "zstandard")])
def test_a_missing_package_is_named_with_its_extra(kind, module, package, monkeypatch):
    packed = compress(kind, b"x")
    monkeypatch.setitem(sys.modules, module, None)
    for attempt in (lambda: compress(kind, b"x"), lambda: decompress(compression_flag(kind), packed)):
        with pytest.raises(MissingExtraError) as problem:
            attempt()
        assert (problem.value.package, problem.value.extra) == (package, "codecs")
        assert "pip install 'mqlab[codecs]'" in str(problem.value)
