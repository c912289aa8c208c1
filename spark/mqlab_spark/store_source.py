"""The data source "rocketmq-store": the messages in the commit log of a RocketMQ store directory, read in parallel.

    spark.read.format("rocketmq-store").load("/var/rocketmq/store").groupBy("topic").count().show()

One row is one message, as it lies in the log, system topics included; the messages of an inner batch are rows of their
own. Bytes that are no record are a row with `damage`, the reason, and nothing else but their place. The directory, of
mqlab or of a real broker, must lie where every worker sees it; it is never written to, and must stay as it is
meanwhile. Options: `path` (what `load` is told), `bytesPerTask` (default 32 MiB), `commitLogFileSize` (default: the
size that most files have).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, MapType, StringType, StructField, StructType

from mqlab.errors import LearnerError
from mqlab.protocol.batch import unwrap_inner_batch
from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageExt
from mqlab.store import Damage, Stretch, find_store, log_stretches, stretch_records
from mqlab_spark.played import spare_the_collector

BYTES_PER_TASK = 32 * 1024 * 1024
BATCH_ROWS = 500
OPTIONS = ("path", "bytesPerTask", "commitLogFileSize")


@cache
def store_schema() -> StructType:
    """The columns of a message, named as in RocketMQ, in Python's case; times are ms since 1970.

    `commit_log_offset` is the place of the record, `body` the unpacked one. All are null in a row with `damage` but the
    place of the damage, which is -1 when it is a whole file.
    """
    texts = ("topic", "msg_id", "offset_msg_id", "tags", "keys", "born_host", "store_host", "damage")
    numbers = (
        "queue_id", "queue_offset", "commit_log_offset", "store_size", "body_crc", "flag", "sys_flag",
        "born_timestamp", "store_timestamp", "reconsume_times", "prepared_transaction_offset",
    )  # fmt: skip
    fields = [StructField(name, LongType()) for name in numbers] + [StructField(name, StringType()) for name in texts]
    return StructType([
        *fields, StructField("properties", MapType(StringType(), StringType())), StructField("body", BinaryType()),
    ])  # fmt: skip


class CommitLogPart(InputPartition):
    """What one task reads: a stretch of the commit log, or the damage of a whole file."""

    def __init__(self, part: Stretch | tuple[int, str]) -> None:
        super().__init__(None)
        self.part = part


class StoreSource(DataSource):
    """The format "rocketmq-store" (see the module)."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` is told."""
        return "rocketmq-store"

    def schema(self) -> StructType:
        """The columns of a message."""
        return store_schema()

    def reader(self, schema: StructType) -> StoreReader:
        """Who finds the stretches and reads them; LearnerError for a directory that is no store, or an odd option."""
        known = {option.lower() for option in OPTIONS}
        unknown = {key for key in self.options if key.lower() not in known}
        if unknown:
            raise LearnerError(
                f"the format rocketmq-store has no option {min(unknown)!r}", f"it has: {', '.join(OPTIONS)}"
            )
        path = self.options.get("path")
        if not path:
            raise LearnerError("which directory?", 'name it: .load("/var/rocketmq/store")')
        return StoreReader(find_store(path), self._bytes("bytesPerTask", BYTES_PER_TASK), self._bytes(OPTIONS[2], 0))

    def _bytes(self, name: str, default: int) -> int:
        text = self.options.get(name, str(default))
        if not text.isdecimal():
            raise LearnerError(f"{name}={text!r} is no number of bytes", "give a whole number, like 1048576")
        return int(text)


class StoreReader(DataSourceReader):
    """Reads a store directory."""

    def __init__(self, directory: str, bytes_per_task: int, commit_log_file_size: int) -> None:
        self._directory = directory
        self._bytes_per_task = bytes_per_task
        self._commit_log_file_size = commit_log_file_size

    def partitions(self) -> Sequence[InputPartition]:
        """The stretches of the commit log."""
        spare_the_collector()
        parts = log_stretches(self._directory, self._commit_log_file_size, self._bytes_per_task or None)
        return [
            CommitLogPart((part.offset, part.reason) if isinstance(part, Damage) else part) for part in parts
        ] or [CommitLogPart(Stretch("", 0, 0, 0, 0))]  # fmt: skip

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a stretch, as Arrow batches."""
        import pyarrow as pa

        assert isinstance(partition, CommitLogPart)
        spare_the_collector()
        schema = to_arrow_schema(store_schema())
        rows = self._rows(partition.part)
        while batch := list(islice(rows, BATCH_ROWS)):
            columns = zip(*batch, strict=True)
            arrays = [
                _maps(column, field.type) if pa.types.is_map(field.type) else pa.array(column, field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self, part: Stretch | tuple[int, str]) -> Iterator[tuple[Any, ...]]:
        if not isinstance(part, Stretch):
            yield _damaged(*part)
        elif part.name:
            for each in stretch_records(self._directory, part):
                if isinstance(each, Damage):
                    yield _damaged(each.offset, each.reason)
                else:
                    yield from _messages(*each)


def _maps(rows: Sequence[dict[str, str] | None], kind: Any) -> Any:
    """Arrow's array of maps, whose keys and values lie behind each other: from a list of pairs for each row, as Arrow
    takes them otherwise, it would cost several times as much.
    """
    import pyarrow as pa

    begins: list[int | None] = []
    keys: list[str] = []
    values: list[str] = []
    for row in rows:
        begins.append(None if row is None else len(keys))
        if row:
            keys += row.keys()
            values += row.values()
    begins.append(len(keys))
    return pa.MapArray.from_arrays(pa.array(begins, pa.int32()), keys, values, kind)


def _messages(record: MessageExt, body: bytes) -> Iterable[tuple[Any, ...]]:
    """The rows of one record: one, or those of an inner batch, or of one whose batch cannot be taken apart."""
    record.body = body
    try:
        return [_row(message) for message in unwrap_inner_batch(record)]
    except RecordError as problem:
        return [_damaged(record.commit_log_offset, f"an inner batch: {problem.reason}")]


def _row(message: MessageExt) -> tuple[Any, ...]:
    return (
        message.queue_id, message.queue_offset, message.commit_log_offset, message.store_size, message.body_crc,
        message.flag, message.sys_flag, message.born_timestamp, message.store_timestamp, message.reconsume_times,
        message.prepared_transaction_offset, message.topic, message.msg_id, message.offset_msg_id, message.tags,
        message.keys, message.born_host, message.store_host, None, message.properties, message.body,
    )  # fmt: skip


def _damaged(offset: int, reason: str) -> tuple[Any, ...]:
    nothing = dict.fromkeys(store_schema().names)
    return tuple({**nothing, "commit_log_offset": offset, "damage": reason}.values())


def read_store(spark: SparkSession, directory: str, *, bytes_per_task: int = BYTES_PER_TASK) -> DataFrame:
    """The messages in the commit log of a store directory; StoreError at once when it is none."""
    return spark.read.format(StoreSource.name()).option("bytesPerTask", bytes_per_task).load(find_store(directory))
