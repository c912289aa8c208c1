"""DataFrames of Spark between the two sides: Parquet in a directory that both can read. Each has a Spark of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlab.grading.values import WireError


def is_frame(value: Any) -> bool:
    """Whether it is a DataFrame of Spark, whichever kind of session it belongs to."""
    names = (f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__)
    return "pyspark.sql.dataframe.DataFrame" in names


class Frames:
    """What this side writes and the other one reads, and the other way round."""

    def __init__(self, ours: Path, theirs: Path) -> None:
        self._ours = ours
        self._theirs = theirs
        self._written = 0

    def put(self, frame: Any) -> int:
        """Write a DataFrame; what Spark refuses it refuses now."""
        self._written += 1
        frame.write.parquet(str(self._ours / str(self._written)))
        return self._written

    def take(self, number: Any) -> Any:
        """The DataFrame of that number. WireError where there is none, or where files are links."""
        from mqlab_spark import session

        place = self._theirs / str(number)
        if type(number) is not int or place.is_symlink() or not place.is_dir():
            raise WireError("there is no such DataFrame")
        if any(file.is_symlink() or not file.is_file() for file in place.iterdir()):
            raise WireError("a DataFrame is made of files, and nothing else")
        return session().read.parquet(str(place))
