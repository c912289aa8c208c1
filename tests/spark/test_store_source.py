"""Real store directories as tables: what a real broker wrote, split between tasks, torn, compressed and batched."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab.protocol.record import encode_record
from mqlab.store import Damage, StoreError, Stretch, list_records, log_stretches
from mqlab_spark import read_store
from mqlab_spark.store_source import StoreReader, StoreSource
from tests.golden import recorded
from tests.store.conftest import unpack


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Where a recorded store lies, unpacked once."""
    known: dict[str, str] = {}

    def store_of(name: str) -> str:
        if name not in known:
            target = tmp_path_factory.mktemp(name)
            unpack(name, target)
            known[name] = str(target)
        return known[name]

    return store_of


def read(directory: str, bytes_per_task: int = 0) -> list[dict[str, Any]]:
    """All rows, without Spark: task by task."""
    reader = StoreSource({"path": directory, "bytesPerTask": str(bytes_per_task)}).reader(None)  # type: ignore[arg-type]
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def manifest(name: str) -> list[dict[str, Any]]:
    return list(recorded.manifest(name)["messages"])


@pytest.mark.parametrize("name", ["plain", "compressed", "ipv6"])
def test_every_message_of_a_real_broker_is_a_row(store_of: Any, name: str) -> None:
    rows = {(row["topic"], row["queue_id"], row["queue_offset"]): row for row in read(store_of(name))}
    single = [told for told in manifest(name) if "INNER_NUM" not in told["properties"]]
    assert len(single) >= 5
    for told in single:
        row = rows[told["topic"], told["queueId"], told["queueOffset"]]
        assert row["commit_log_offset"] == told["commitLogOffset"]
        assert row["msg_id"] == told["msgId"]
        assert row["store_host"] == told["storeHost"]
        assert dict(row["properties"]) == told["properties"]
        assert len(row["body"]) == told["bodyLength"]
        if "bodySha256" in told:
            assert hashlib.sha256(row["body"]).hexdigest() == told["bodySha256"]


def test_messages_of_an_inner_batch_are_rows_of_their_own(store_of: Any) -> None:
    batches = [told for told in manifest("compressed") if "INNER_NUM" in told["properties"]]
    assert len(batches) == 4
    rows = read(store_of("compressed"))
    for batch in batches:
        inner = [row for row in rows if row["commit_log_offset"] == batch["commitLogOffset"]]
        assert len(inner) == int(batch["properties"]["INNER_NUM"])
        assert [row["queue_offset"] for row in inner] == list(
            range(batch["queueOffset"], batch["queueOffset"] + len(inner))
        )


@pytest.mark.parametrize("bytes_per_task", [1, 5_000, 65_536])
def test_split_or_not_it_is_the_same_log(store_of: Any, bytes_per_task: int) -> None:
    assert read(store_of("plain"), bytes_per_task) == read(store_of("plain"))


def test_stretches_end_where_a_record_ends(store_of: Any) -> None:
    parts = [part for part in log_stretches(store_of("plain"), most_bytes=4_096) if isinstance(part, Stretch)]
    assert len(parts) > 50
    for before, behind in pairwise(parts):
        if before.name == behind.name:
            assert before.end == behind.begin
            assert before.end - before.begin >= 4_096


def test_small_and_large_records_are_told_apart_by_their_lengths(tmp_path: Path) -> None:
    """Together they are longer than what is read at a time, and some alone are."""
    hosts, log, begins = ("10.0.0.1:40000", "10.0.0.2:10911"), bytearray(), []
    for number in range(600):
        body = bytes(200_000 if number % 100 == 50 else number)
        begins.append(len(log))
        log += encode_record("T", body, "UNIQ_KEY\x01k\x02", 0, number, len(log), 0, 0, *hosts)
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(log)
    parts = [part for part in log_stretches(tmp_path, most_bytes=1) if isinstance(part, Stretch)]
    assert [part.begin for part in parts] == begins
    assert len(read(str(tmp_path), 50_000)) == len(begins)


def test_what_is_no_record_is_a_row_with_its_reason(store_of: Any, tmp_path: Path) -> None:
    unpack("plain", tmp_path)
    log = sorted((tmp_path / "store" / "commitlog").iterdir())[0]
    data = bytearray(log.read_bytes())
    whole = [each for each in list_records(tmp_path) if not isinstance(each, Damage)]
    third = whole[2][0].commit_log_offset
    data[third + 90] ^= 0xFF
    log.write_bytes(data)
    rows = read(str(tmp_path), 8_192)
    damaged = [row for row in rows if row["damage"]]
    assert [(row["commit_log_offset"], row["topic"], row["properties"]) for row in damaged] == [(third, None, None)]
    assert "CRC" in damaged[0]["damage"]
    assert len(rows) == len(whole)


def test_spark_reads_it(spark: SparkSession, store_of: Any) -> None:
    frame = read_store(spark, store_of("plain"), bytes_per_task=100_000)
    counted = {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counted == Counter(row["topic"] for row in read(store_of("plain")))


def test_what_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a store directory"):
        read_store(spark, str(tmp_path))
    (tmp_path / "commitlog").mkdir()
    for options, words in (
        ({}, "which directory"),
        ({"path": str(tmp_path), "bytesPerTask": "x"}, "no number of bytes"),
        ({"path": str(tmp_path), "size": "1"}, "no option 'size'"),
    ):
        with pytest.raises(LearnerError, match=words):
            StoreSource(options).reader(None)  # type: ignore[arg-type]


def test_an_empty_store_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    reader = StoreReader(str(tmp_path), 0, 0)
    assert [batch for part in reader.partitions() for batch in reader.read(part)] == []
