"""The messages of a recorded store, put again at the same times, give the same files byte for byte."""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Any

import pytest

from mqlab.protocol.message import MessageExt
from mqlab.protocol.record import BLANK_MAGIC_CODE, decode_record
from mqlab.sim import World
from mqlab.store import DefaultMessageStore, MessageExtBrokerInner, PutMessageStatus

THOROUGH_FLUSH_US = 12_000_000
_ENTRY = struct.Struct(">iiiii")

NAMES = ["plain", "compressed", "delay", "txn", "retry", "names", "ipv6", "pop-store", "pop-merge", "pop-kv"]


def _messages(recorded: Any) -> list[tuple[MessageExt, str]]:
    """The stored messages in order, each with the text of its properties (names may stand there twice)."""
    disk = recorded.disk()
    found = []
    for name in disk.list("commitlog"):
        data, at = disk.read_bytes(f"commitlog/{name}"), 0
        while at < len(data) and any(data[at : at + 8]):
            if int.from_bytes(data[at + 4 : at + 8], "big", signed=True) == BLANK_MAGIC_CODE:
                break
            message = decode_record(data, at, decompress=False)
            found.append((message, _properties_text(data, at)))
            at += message.store_size
    return found


def _properties_text(data: bytes, at: int) -> str:
    sys_flag = int.from_bytes(data[at + 36 : at + 40], "big")
    body_at = at + 88 + 12 * (sys_flag >> 4 & 1) + 12 * (sys_flag >> 5 & 1)
    topic_at = body_at + int.from_bytes(data[body_at - 4 : body_at], "big")
    width = 2 if data[at + 7] == 0xAB else 1
    properties_at = topic_at + width + int.from_bytes(data[topic_at : topic_at + width], "big") + 2
    return data[properties_at : at + int.from_bytes(data[at : at + 4], "big")].decode()


def _inner(message: MessageExt, properties: str) -> MessageExtBrokerInner:
    return MessageExtBrokerInner(
        message.topic,
        message.body,
        queue_id=message.queue_id,
        flag=message.flag,
        sys_flag=message.sys_flag & ~0x30,
        properties=dict(message.properties),
        properties_string=properties,
        born_timestamp=message.born_timestamp,
        born_host=message.born_host,
        store_host=message.store_host,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
    )


def _batch(messages: list[tuple[MessageExt, str]]) -> MessageExtBrokerInner:
    """The batch that became these messages: each entry has its own properties, the batch those that follow in all."""
    shared = "MSG_REGION" + messages[0][1].partition("MSG_REGION")[2]
    body = b""
    for message, text in messages:
        own = text.removesuffix(shared).encode()
        body += _ENTRY.pack(22 + len(message.body) + len(own), 0, 0, message.flag, len(message.body))
        body += message.body + len(own).to_bytes(2, "big") + own
    batch = _inner(messages[0][0], shared)
    batch.body, batch.flag = body, 0
    return batch


def _sent_with(stored: tuple[MessageExt, str]) -> tuple[str, Any]:
    """What all messages of one send have in common: those of a batch share its unique key, which stands behind their
    own.
    """
    message = stored[0]
    return message.topic, message.msg_id if message.topic == "GoldenBatch" else message.commit_log_offset


def _replay(recorded: Any) -> DefaultMessageStore:
    messages = _messages(recorded)
    world = World(7, epoch_ms=messages[0][0].store_timestamp)
    node = world.node("broker-a")
    store = DefaultMessageStore(node, recorded.config(), is_batch_topic=lambda topic: topic == "GoldenBatchCQ")
    store.load()
    store.start()
    for (topic, _), group in groupby(messages, _sent_with):
        sent = list(group)
        message, properties = sent[0]
        world.run_to((message.store_timestamp - world.epoch_ms) * 1_000)
        if topic == "GoldenBatch":
            result = store.put_messages(_batch(sent))
            assert result.msg_num == len(sent)
        else:
            inner = _inner(message, properties)
            # The broker's store adds INNER_BASE, so it must not be there before.
            if inner.properties.pop("INNER_BASE", None) is not None:
                inner.properties_string = None
            result = store.put_message(inner)
        assert result.status is PutMessageStatus.PUT_OK
    world.run_for(THOROUGH_FLUSH_US)
    store.shutdown()
    return store


def _files(disk: Any, folder: str) -> dict[str, bytes]:
    return {path: disk.read_bytes(path) for path in disk.files() if path.startswith(folder)}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_messages_give_the_same_directory(golden: Any, name: str) -> None:
    recorded = golden(name)
    wanted = recorded.disk()
    got = _replay(recorded).disk
    for folder in ("commitlog", "consumequeue", "batchconsumequeue", "lock", "abort", "compaction"):
        assert _files(got, folder) == _files(wanted, folder), folder
    # Index files are named for the moment of their making, in which the real broker was some ms late.
    assert list(_files(got, "index/").values()) == list(_files(wanted, "index/").values())
    unflushed = 8 if name == "txn" else 0
    """That broker was stopped before a thorough flush moved the first field, physicMsgTimestamp."""
    assert got.read_bytes("checkpoint")[unflushed:] == wanted.read_bytes("checkpoint")[unflushed:]
