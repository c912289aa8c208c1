"""A broker's directory goes from mqlab to a real broker and back, killed each time: each goes on with what is there."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.headers import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    QueryMessageRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from mqlab.protocol.record import decode_record
from tests.real.rocketmq import RealRocketMQ
from tests.serving.conftest import Program, Server

FILE_BYTES = 1 << 20
QUEUES = 3
"""One more is for what is delayed."""

LIFE_MESSAGES = 1_200
"""So many make more than a file in each life."""

LATER = "DELAY\x012\x02"
"""A message's properties: the second level, five seconds."""


@contextmanager
def mqlab_broker(home: Path, ends: signal.Signals) -> Iterator[Program]:
    size = f"mappedFileSizeCommitLog={FILE_BYTES}"
    server = Server("--proxies", "0", "--broker-port", "0", "--store", str(home), "--sync-flush", "--set", size)
    program = Program(server.told["processes"]["broker-a"])
    try:
        yield program
    finally:
        program.close()
        server.end(ends)


@contextmanager
def real_broker(home: Path, ends: signal.Signals) -> Iterator[Program]:
    with RealRocketMQ(home.parent) as real:
        broker = real.broker(home.name, flushDiskType="SYNC_FLUSH", mappedFileSizeCommitLog=FILE_BYTES)
        program = Program(broker.address)
        try:
            yield program
        finally:
            program.close()
            broker.kill() if ends == signal.SIGKILL else broker.stop()


def records(program: Program, queue_id: int) -> list[bytes]:
    """The whole of a queue, as it lies in the log."""
    found: list[bytes] = []
    while True:
        answer = program.pull(len(found), queue_id=queue_id)
        if answer.code != ResponseCode.SUCCESS:
            return found
        data = answer.body or b""
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(data[:size])
            data = data[size:]


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGTERM])
def test_a_directory_goes_from_one_to_the_other_and_back(ends: signal.Signals, tmp_path: Path) -> None:
    """Who is killed forgets offsets that were not on disk, consumers' and of what was delayed, so the latter may come
    twice.
    """
    known: list[list[bytes]] = [[] for _ in range(QUEUES + 1)]
    for life, opened in enumerate([mqlab_broker, real_broker, mqlab_broker, real_broker]):
        with opened(tmp_path / "broker-a", ends) as program:
            if life:
                began_s = time.monotonic()
                while len(records(program, QUEUES)) == len(known[QUEUES]):
                    assert time.monotonic() - began_s < 30, "what was delayed before did not come"
                found = program.ask(
                    RequestCode.QUERY_MESSAGE, QueryMessageRequestHeader("T", f"key-{life - 1}", 9, 0, 1 << 62)
                )
                assert decode_record(found.body or b"").body == b"%d: 7" % (life - 1)
                header = QueryConsumerOffsetRequestHeader("C", "T", 1)
                answer = program.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
                if ends == signal.SIGTERM:
                    assert answer.header_as(QueryConsumerOffsetResponseHeader).offset == life
            now = [records(program, queue_id) for queue_id in range(QUEUES + 1)]
            assert [queue[: len(old)] for queue, old in zip(now, known, strict=True)] == known
            assert now[:QUEUES] == known[:QUEUES]
            for number in range(LIFE_MESSAGES):
                properties = f"KEYS\x01key-{life}\x02" if number == 7 else ""
                body = b"%d: %d" % (life, number) + b"." * (0 if number == 7 else 900)
                assert program.send(body, queue_id=number % QUEUES, properties=properties).code == ResponseCode.SUCCESS
            assert program.send(b"later", queue_id=QUEUES, properties=LATER).code == ResponseCode.SUCCESS
            known = [records(program, queue_id) for queue_id in range(QUEUES + 1)]
            assert [len(queue) for queue in known[:QUEUES]] == [LIFE_MESSAGES // QUEUES * (life + 1)] * QUEUES
            program.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("C", "T", 1, life + 1))
