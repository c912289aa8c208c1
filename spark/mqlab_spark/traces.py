"""Recorded traces as DataFrames, each row with the name of its world, which leads back to that world."""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets.named_worlds import NAME, TRACE_HASH
from mqlab.errors import LearnerError
from mqlab.trace.recorded import check_whole, read_header
from mqlab_spark.schema import WORLD, trace_schema
from mqlab_spark.storage import File, Folder, files_at

PATH = "_path"

_hashes: dict[str, set[str]] = {}


class TraceFile(NamedTuple):
    """A trace on this machine: where it lies, its path below the directory that all have, its world, its header."""

    path: Path
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

    Files that end in .jsonl are JSON lines, all others Parquet. One file is one world. ProtocolError if a file on this
    machine is of another schema version, or is not whole because its recording was interrupted (`whole=False` reads
    what is there); files elsewhere, as in hdfs://, are not opened before the job runs, so each is called as its
    address. LearnerError without a file.
    """
    elsewhere = "://" in str(path) and not str(path).startswith("file://")
    paths = [str(path)] if elsewhere else _local_files(str(path).removeprefix("file://"))
    header_of = check_whole if whole else read_header
    files = [] if elsewhere else trace_files({Path(each): header_of(each) for each in paths})
    json_lines = paths[0].endswith(".jsonl")
    reader = spark.read.schema(trace_schema())
    # Header and end mark of JSON lines have none of the columns; a line cut short must not pass for another one.
    mode = "FAILFAST" if whole else "DROPMALFORMED"
    frame = reader.json(paths, mode=mode).where("kind IS NOT NULL") if json_lines else reader.parquet(*paths)
    named = frame.withColumn(WORLD, F.col("_metadata.file_path")) if elsewhere else with_worlds(spark, frame, files)
    return named.select(WORLD, *trace_schema().names)


def _local_files(path: str) -> list[str]:
    """The files that a path on this machine means, all of one kind. LearnerError if there is none."""
    place = Path(path)
    if place.is_dir():
        found = [str(file) for ending in ("parquet", "jsonl") for file in sorted(place.rglob(f"*.{ending}"))]
    else:
        found = sorted(glob.glob(str(place)))
    if not found:
        raise LearnerError(f"there is no trace at {path}", "write one: mqlab trace SCENARIO --out trace.parquet")
    if len({Path(file).suffix == ".jsonl" for file in found}) > 1:
        raise LearnerError(f"{path} holds both JSON lines and Parquet", "name one of them, like 'traces/*.parquet'")
    return found


def listed(traces: str | Path) -> tuple[Folder, dict[str, File]]:
    """Where the traces lie that are meant, and each of these files by its path below that."""
    there, files = files_at(traces, ".parquet", ".jsonl")
    return there, {file.path: file for file in files if not _is_hidden(file.path)}


def _is_hidden(path: str) -> bool:
    """Spark passes over such files, too: what is being written."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def trace_files(headers: Mapping[Path, Mapping[str, Any]]) -> list[TraceFile]:
    """Traces, of which the headers are known, with the names of their worlds.

    A world is called as the header of its trace says; several traces of one world are told apart by a comment behind
    the name, `held-pulls --seed 7 # night/b.parquet`. A trace that does not say what it is of is called as its file.
    """
    whole = [Path(os.path.abspath(path)) for path in headers]
    common = os.path.commonpath([path.parent for path in whole]) if whole else ""
    names = [str(header["metadata"].get(NAME, "")) for header in headers.values()]
    times = Counter(names)
    found = []
    for path, header, name in zip(whole, headers.values(), names, strict=True):
        file = path.relative_to(common).as_posix()
        world = file if not name else name if times[name] == 1 else f"{name} # {file}"
        found.append(TraceFile(path, file, world, header))
    _remember(found)
    return found


def row_of(file: str, world: str, header: Mapping[str, Any]) -> dict[str, str | None]:
    """The row of a trace in the table of traces: what its header says of its world."""
    told = header["metadata"]
    return {
        WORLD: world,
        "file": file,
        "scenario": told.get("scenario"),
        "seed": str(told["seed"]) if "seed" in told else None,
        "parameters": json.dumps(told["parameters"], sort_keys=True) if "parameters" in told else None,
        TRACE_HASH: told.get(TRACE_HASH),
        "mqlab": header.get("mqlab"),
    }


def _remember(files: Iterable[TraceFile]) -> None:
    for each in files:
        if each.trace_hash is not None:
            _hashes.setdefault(each.world, set()).add(each.trace_hash)


def hashes_read(world: str) -> set[str]:
    """The trace hashes that files which were opened in this process say of a world."""
    return set(_hashes.get(world, ()))


def with_worlds(spark: SparkSession, frame: DataFrame, files: Sequence[TraceFile]) -> DataFrame:
    """Rows that were read from these files, with the column `world`."""
    if len(files) == 1:
        return frame.withColumn(WORLD, F.lit(files[0].world))
    # A table of Arrow is read by Spark itself; a list of rows would start Python workers.
    names = spark.createDataFrame(
        pa.table({PATH: [str(each.path) for each in files], WORLD: [each.world for each in files]})
    )
    return frame.withColumn(PATH, local_path()).join(F.broadcast(names), PATH).drop(PATH)


def local_path() -> Column:
    """The path on this machine of the file that a row is read from."""
    # Spark's address of a file is encoded as a URL, but a plus sign in it is a plus sign.
    address = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(address, "^file:/+", "/")
