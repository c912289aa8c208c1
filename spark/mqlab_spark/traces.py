"""Recorded traces as DataFrames, each row with the name of its world, which leads back to that world."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets.named_worlds import NAME, TRACE_HASH
from mqlab.errors import LearnerError
from mqlab.trace.recorded import check_whole, read_header
from mqlab_spark import contract
from mqlab_spark.schema import WORLD, WORLD_NAME, trace_schema, world_id
from mqlab_spark.storage import File, Folder, files_at

PATH = "_path"

READERS = 16
"""So many headers are read at a time: it is waiting for disks and servers, most of all."""

WITHOUT = "^(?:file:/*(?=/)|hdfs://[^/]*|s3a://)"
"""What an address of Spark's begins with before the path that a file has in its store."""

_hashes: dict[str, set[str]] = {}
"""The worlds of files that were opened in this process, by their names, with the trace hashes that the files say."""


class TraceFile(NamedTuple):
    """A trace: its path in its store, its path below the folder that all have in common, its world, its header."""

    path: str
    file: str
    world: str
    header: Mapping[str, Any]

    @property
    def trace_hash(self) -> str | None:
        """The hash of its events, as its header says; None where it does not."""
        told = self.header["metadata"].get(TRACE_HASH)
        return None if told is None else str(told)


def read_trace(spark: SparkSession, path: str | Path, *, whole: bool = True) -> DataFrame:
    """A recorded trace, or all traces of a directory or a pattern, as one DataFrame: `world`, then `trace_schema()`.

    They may lie wherever `mqlab_spark.storage` reaches. Files that end in .jsonl are JSON lines, all others Parquet.
    One file is one world. ProtocolError if a file is of another schema version, or is not whole because its recording
    was interrupted (`whole=False` reads what is there). LearnerError without a file.
    """
    there, found = listed(path)
    if not found:
        raise LearnerError(f"there is no trace at {path}", "write one: mqlab trace SCENARIO --out trace.parquet")
    json_lines = {file.endswith(".jsonl") for file in found}
    if len(json_lines) > 1:
        raise LearnerError(f"{path} holds both JSON lines and Parquet", "name one of them, like 'traces/*.parquet'")
    with ThreadPoolExecutor(READERS) as pool:
        headers = pool.map(partial(_header_at, there, whole=whole), found)
        files = trace_files(there, dict(zip(found, headers, strict=True)))
    reader = spark.read.schema(trace_schema())
    addresses = [there.spark(file) for file in found]
    # Header and end mark of JSON lines have none of the columns; a line cut short must not pass for another one.
    mode = "FAILFAST" if whole else "DROPMALFORMED"
    frame = (
        reader.json(addresses, mode=mode).where("kind IS NOT NULL") if json_lines == {True}
        else reader.parquet(*addresses)
    )  # fmt: skip
    return with_worlds(spark, there, frame, files).select(WORLD, *trace_schema().names)


def _header_at(there: Folder, file: str, *, whole: bool) -> dict[str, Any]:
    if there.is_local:
        return (check_whole if whole else read_header)(there.at(file))
    return contract.check_whole(there, file) if whole else contract.read_header(there, file, whole=False)


def listed(traces: str | Path) -> tuple[Folder, dict[str, File]]:
    """Where the traces lie that are meant, and each of these files by its path below that."""
    there, files = files_at(traces, ".parquet", ".jsonl")
    return there, {file.path: file for file in files if not _is_hidden(file.path)}


def _is_hidden(path: str) -> bool:
    """Spark passes over such files, too: what is being written."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def trace_files(there: Folder, headers: Mapping[str, Mapping[str, Any]]) -> list[TraceFile]:
    """Traces below a folder, of which the headers are known, with the names of their worlds.

    A world is called as the header of its trace says; several traces of one world are told apart by a comment behind
    the name, `held-pulls --seed 7 # night/b.parquet`. A trace that does not say what it is of is called as its file.
    """
    common = os.path.commonpath([os.path.dirname(file) for file in headers]) if headers else ""
    names = [str(header["metadata"].get(NAME, "")) for header in headers.values()]
    times = Counter(names)
    found = []
    for path, header, name in zip(headers, headers.values(), names, strict=True):
        file = os.path.relpath(path, common or ".")
        world = file if not name else name if times[name] == 1 else f"{name} # {file}"
        found.append(TraceFile(there.at(path), file, world, header))
    _remember(found)
    return found


def row_of(file: str, name: str, header: Mapping[str, Any]) -> dict[str, str | int | None]:
    """The row of a trace in the table of traces: what its header says of its world, which has that name."""
    told = header["metadata"]
    return {
        WORLD: world_id(name),
        WORLD_NAME: name,
        "file": file,
        "scenario": told.get("scenario"),
        "seed": str(told["seed"]) if "seed" in told else None,
        "parameters": json.dumps(told["parameters"], sort_keys=True) if "parameters" in told else None,
        TRACE_HASH: told.get(TRACE_HASH),
        "mqlab": header.get("mqlab"),
    }


def _remember(files: Iterable[TraceFile]) -> None:
    for each in files:
        known = _hashes.setdefault(each.world, set())
        if each.trace_hash is not None:
            known.add(each.trace_hash)


def hashes_read(world: str) -> set[str]:
    """The trace hashes that files which were opened in this process say of a world."""
    return set(_hashes.get(world, ()))


def name_read(number: int) -> str | None:
    """The name of the world with this number, if it is of a file that was opened in this process."""
    return next((name for name in _hashes if world_id(name) == number), None)


def with_worlds(spark: SparkSession, there: Folder, frame: DataFrame, files: Sequence[TraceFile]) -> DataFrame:
    """Rows that were read from these files of a folder, with the column `world`."""
    if len(files) == 1:
        return frame.withColumn(WORLD, F.lit(files[0].world))
    # A table of Arrow is read by Spark itself; a list of rows would start Python workers.
    names = spark.createDataFrame(
        pa.table({PATH: [each.path for each in files], WORLD: [each.world for each in files]})
    )
    return frame.withColumn(PATH, _path_read()).join(F.broadcast(names), PATH).drop(PATH)


def _path_read() -> Column:
    """The path in its store of the file that a row is read from."""
    # Spark's address of a file is encoded as a URL, but a plus sign in it is a plus sign.
    address = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(address, WITHOUT, "")
