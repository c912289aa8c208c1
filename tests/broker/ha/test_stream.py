"""What a real master and a real slave sent each other is read and written byte for byte."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.broker.ha.stream import ReportReader, TransferFrame, TransferReader, encode_frame, encode_report
from tests.broker.ha.conftest import FILE_BYTES, members, stream

NAMES = sorted(name.removeprefix("stream-").removesuffix(".jsonl") for name in members("streams"))


def _connections(name: str, direction: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in stream(name):
        if row.get("dir") == direction and "data" in row:
            found.setdefault(row["conn"], []).append(row)
    return found


def _frames(reads: list[bytes]) -> list[TransferFrame]:
    reader, found = TransferReader(), []
    for data in reads:
        reader.feed(data)
        while (frame := reader.next_frame()) is not None:
            found.append(frame)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_reports_of_a_real_slave(name: str) -> None:
    for rows in _connections(name, "slave->master").values():
        reader = ReportReader()
        for row in rows:
            reports = reader.feed(row["data"])
            assert reports == row["acks"]
            assert b"".join(map(encode_report, reports)) == row["data"]


@pytest.mark.parametrize("name", NAMES)
def test_frames_of_a_real_master_follow_each_other_within_files(name: str) -> None:
    for rows in _connections(name, "master->slave").values():
        reads = [row["data"] for row in rows]
        frames = _frames(reads)
        assert [(frame.physic_offset, len(frame.body)) for frame in frames] == [
            (noted["offset"], noted["size"]) for row in rows for noted in row["frames"]
        ]
        assert b"".join(encode_frame(*frame) for frame in frames) == b"".join(reads)
        for frame, after in pairwise(frames):
            assert after.physic_offset == frame.physic_offset + len(frame.body)
        for frame in frames:
            assert len(frame.body) <= 32 * 1024
            assert frame.physic_offset % FILE_BYTES + len(frame.body) <= FILE_BYTES


def test_a_stream_may_be_cut_anywhere() -> None:
    (rows,) = _connections("slave-empty-master-3-files", "master->slave").values()
    whole = b"".join(row["data"] for row in rows)
    assert _frames([whole[at : at + 7] for at in range(0, len(whole), 7)]) == _frames([whole])
    reports = ReportReader()
    assert [report for byte in encode_report(5) + encode_report(9) for report in reports.feed(bytes([byte]))] == [5, 9]
