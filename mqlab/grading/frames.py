"""DataFrames of Spark between the two sides: Parquet in a directory that both can read. Each has a Spark of its own.

The side that has the solution does what its plan says when it hands a DataFrame over: the other one gets rows.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from mqlab.grading.values import WireError

SETTINGS = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.enabled")
"""What a judge may have set, so that the plan of a solution is cut into the same tasks there as here."""

MOST_BYTES, MOST_ROWS = 64 * 2**20, 1_000_000
FRAMES = "frames"
"""The directory of those of a solution, in the only one in which it may write."""
MEMORY = "512m"
"""Of either side's Spark."""


def is_frame(value: Any) -> bool:
    """Whether it is a DataFrame of Spark, whichever kind of session it belongs to."""
    names = (f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__)
    return "pyspark.sql.dataframe.DataFrame" in names


class Frames:
    """What this side writes and the other one reads, and the other way round."""

    def __init__(self, ours: Path, theirs: Path, *, as_told: bool = False) -> None:
        """`as_told`: with a DataFrame the other side's settings are taken over."""
        self._ours = ours
        self._as_told = as_told
        self._theirs = theirs
        self._written = 0
        self._taken = 0

    def put(self, frame: Any) -> list[Any]:
        """Write a DataFrame; what Spark refuses it refuses now.

        What stands for it: its number, settings of the session that it is of, and how many rows each task had.
        """
        from mqlab.labs.tasks import rows_of_tasks

        self._written += 1
        place = str(self._ours / str(self._written))
        conf = frame.sparkSession.conf
        settings = {name: conf.get(name) for name in SETTINGS}
        return [self._written, settings, rows_of_tasks(frame, lambda each: each.write.parquet(place))]

    def take(self, told: Any) -> Any:
        """The DataFrame that `put` on the other side has written.

        WireError for what is no DataFrame, and for one that is too large.
        """
        from mqlab.labs.tasks import remember_tasks
        from mqlab_spark import session

        try:
            number, settings, tasks = told
        except ValueError:
            raise WireError("there is no such DataFrame") from None
        place = self._theirs / str(number)
        if type(number) is not int or place.is_symlink() or not place.is_dir():
            raise WireError("there is no such DataFrame")
        if not isinstance(tasks, list) or not all(type(rows) is int for rows in tasks):
            raise WireError("a task has a number of rows")
        copy = self._own_copy(place)
        spark = session(driver_memory=MEMORY)
        for name, value in settings.items() if self._as_told else ():
            spark.conf.set(name, value)
        frame = spark.read.parquet(str(copy))
        remember_tasks(frame, tasks)
        return frame

    def _own_copy(self, place: Path) -> Path:
        """A copy of those files that the other side can't change any more, counted before Spark reads it."""
        self._taken += 1
        copy = self._ours / f"taken-{self._taken}"
        copy.mkdir(parents=True)
        left = MOST_BYTES
        rows = 0
        for name in sorted(os.listdir(place)):
            if not name.endswith(".parquet"):
                continue
            content = _read(place / name, left)
            left -= len(content)
            rows += _rows(content)
            if rows > MOST_ROWS:
                raise WireError(f"a DataFrame has more than {MOST_ROWS:,} rows")
            (copy / name).write_bytes(content)
        return copy


def _read(path: Path, most: int) -> bytes:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise WireError("a DataFrame is made of files, and nothing else") from None
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise WireError("a DataFrame is made of files, and nothing else")
        content = file.read(most + 1)
    if len(content) > most:
        raise WireError(f"a DataFrame has more than {MOST_BYTES // 2**20} MiB")
    return content


def _rows(content: bytes) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(pa.BufferReader(content)).num_rows)
    except (pa.ArrowInvalid, OSError):
        raise WireError("a file of a DataFrame is no Parquet") from None
