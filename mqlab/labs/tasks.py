"""How many rows each task of an answer got, also where the answer was worked out in another process.

A DataFrame that comes from there has none of its plan any more, so its rows are told with it. Whoever has a solution
in another process has to believe it that; the rows themselves are compared with the truth in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_told: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()


def rows_of_tasks(frame: DataFrame, action: Callable[[DataFrame], object]) -> list[int]:
    """Do something with a DataFrame; how many rows each task fetched that got them from an earlier stage."""
    from mqlab_spark.stages import stages_of

    stages = stages_of(frame.sparkSession, lambda: action(frame))
    told = _told.get(frame)
    return told if told is not None else [rows for stage in stages if stage.rows_fetched for rows in stage.of_tasks]


def remember_tasks(frame: DataFrame, rows: Sequence[int]) -> None:
    """Of this DataFrame somebody else has counted the rows of each task."""
    _told[frame] = list(rows)
