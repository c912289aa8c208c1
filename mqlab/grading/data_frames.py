"""DataFrames of Spark between the two sides: Parquet over the pipe. Each side has a Spark of its own.

The side that has the solution does what its plan says when it hands a DataFrame over: the other one gets rows.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from mqlab.grading.values import WireError

SETTINGS = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.enabled")
"""What a judge may have set, so that the plan of a solution is cut into the same tasks there as here."""

MOST_BYTES, MOST_ROWS = 16 * 2**20, 1_000_000
"""Of the answer of a solution."""
FRAMES = "frames"
"""The directory of those of a solution, in the only one in which it may write."""
MEMORY = "512m"
"""Of either side's Spark."""


def is_frame(value: Any) -> bool:
    """Whether it is a DataFrame of Spark, whichever kind of session it belongs to."""
    names = (f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__)
    return "pyspark.sql.dataframe.DataFrame" in names


class Frames:
    """What this side sends to the other one, and what it gets from there."""

    def __init__(self, ours: Path, *, as_told: bool = False) -> None:
        """`ours`: where its files may lie. `as_told`: the other side is the judge's, whose settings are taken over."""
        self._ours = ours
        self._as_told = as_told
        self._written = 0
        self._taken = 0

    def put(self, frame: Any) -> list[Any]:
        """Write a DataFrame; what Spark refuses it refuses now.

        What stands for it: settings of the session that it is of, how many rows each task had, and its files.
        """
        from mqlab.labs.tasks import rows_of_tasks

        self._written += 1
        place = self._ours / str(self._written)
        conf = frame.sparkSession.conf
        settings = {name: conf.get(name) for name in SETTINGS}
        tasks = rows_of_tasks(frame, lambda each: each.write.parquet(str(place)))
        files = [b64encode(path.read_bytes()).decode("ascii") for path in sorted(place.glob("*.parquet"))]
        return [settings, tasks, files]

    def take(self, told: Any) -> Any:
        """The DataFrame that `put` on the other side has written.

        WireError for what is no DataFrame, and for one that is too large.
        """
        from mqlab.labs.tasks import remember_tasks
        from mqlab_spark import session

        try:
            settings, tasks, files = told
            contents = [b64decode(file, validate=True) for file in files]
        except (ValueError, TypeError):
            raise WireError("that is no DataFrame") from None
        if not isinstance(tasks, list) or not all(type(rows) is int for rows in tasks):
            raise WireError("a task has a number of rows")
        if not self._as_told:
            _count(contents)
        self._taken += 1
        copy = self._ours / f"taken-{self._taken}"
        copy.mkdir(parents=True)
        for number, content in enumerate(contents):
            (copy / f"part-{number:05}.parquet").write_bytes(content)
        spark = session(driver_memory=MEMORY)
        for name, value in settings.items() if self._as_told else ():
            spark.conf.set(name, value)
        frame = spark.read.parquet(str(copy))
        remember_tasks(frame, tasks)
        return frame


def _count(contents: list[bytes]) -> None:
    """What a solution sends is counted before Spark reads it."""
    if sum(map(len, contents)) > MOST_BYTES:
        raise WireError(f"a DataFrame has more than {MOST_BYTES // 2**20} MiB")
    if sum(map(_rows, contents)) > MOST_ROWS:
        raise WireError(f"a DataFrame has more than {MOST_ROWS:,} rows")


def _rows(content: bytes) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(pa.BufferReader(content)).num_rows)
    except (pa.ArrowInvalid, OSError):
        raise WireError("a file of a DataFrame is no Parquet") from None
