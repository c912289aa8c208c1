"""The data sets that Spark is measured with: `steady` in several sizes, made once and kept.

`python -m benchmarks spark-build --data DIRECTORY` takes DIRECTORY/steady-1M and so on, as `mqlab dataset` names them,
and makes those that are missing (1 M takes about 20 s on a core, 100 M half an hour). Tables are built beside them.
With `--linked` what is missing is the worlds of the size before it, ten times over, each time under other names: that
takes seconds, and a build cannot tell, since no table looks across worlds but the percentiles of latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mqlab import data_sets

RECIPE = Path("datasets/steady.toml")
SIZES = ("1M", "10M", "100M")
TIMES = 10
"""How many times the size before each is."""


class Wanted(NamedTuple):
    """What is measured: which sizes (in events), and the directory of data sets and tables."""

    sizes: Sequence[str] = SIZES
    directory: Path = Path("out/datasets")
    linked: bool = False

    def traces(self, size: str) -> Path:
        """Where the data set of a size is; it is made there when it is not whole."""
        place = self.directory / f"steady-{size}"
        if (place / data_sets.CARD).exists():
            return place
        if self.linked and size != SIZES[0]:
            return self._links(size)
        print(f"making {place}", flush=True)
        data_sets.make(data_sets.read_recipe(RECIPE), size, place)
        return place

    def _links(self, size: str) -> Path:
        """The worlds of the size before, ten times."""
        before, place = self.traces(SIZES[SIZES.index(size) - 1]), self.directory / f"linked-{size}"
        place.mkdir(exist_ok=True)
        for file in before.glob("*.parquet"):
            for number in range(TIMES):
                link = place / f"{number}-{file.name}"
                if not link.exists():
                    link.hardlink_to(file)
        return place

    def tables(self, size: str) -> Path:
        """Where the tables of that data set are."""
        return self.directory / f"tables-{size}"
