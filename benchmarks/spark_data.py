"""The data sets that Spark is measured with: `steady` in several sizes, made once and kept.

`python -m benchmarks spark-build --data DIRECTORY` takes DIRECTORY/steady-1M and so on, as `mqlab dataset` names them,
and makes those that are missing (1 M takes about 20 s on a core, 100 M half an hour). Tables are built beside them.
With `--copied` what is missing is the worlds of the size before it, ten times over, each time under other names: that
takes a minute for 10 M, and a build cannot tell, since no table looks across worlds but the percentiles of latency.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyarrow import parquet

from mqlab import data_sets
from mqlab.data_sets.named_worlds import NAME, TRACE_HASH
from mqlab.trace.recorder import END_MARK, PARQUET_KEY

RECIPE = Path("datasets/steady.toml")
SIZES = ("1M", "10M", "100M")
TIMES = 10
"""How many times the size before each is."""


class Wanted(NamedTuple):
    """What is measured: which sizes (in events), and the directory of data sets and tables."""

    sizes: Sequence[str] = SIZES
    directory: Path = Path("out/datasets")
    copied: bool = False

    def traces(self, size: str) -> Path:
        """Where the data set of a size is; it is made there when it is not whole."""
        place = self.directory / f"steady-{size}"
        if (place / data_sets.CARD).exists():
            return place
        if self.copied and size != SIZES[0]:
            return self._copies(size)
        print(f"making {place}", flush=True)
        data_sets.make(data_sets.read_recipe(RECIPE), size, place)
        return place

    def _copies(self, size: str) -> Path:
        """The worlds of the size before, ten times: the same events, said to be other worlds'."""
        before, place = self.traces(SIZES[SIZES.index(size) - 1]), self.directory / f"copied-{size}"
        place.mkdir(exist_ok=True)
        for file in sorted(before.glob("*.parquet")):
            copies = [place / f"{number}-{file.name}" for number in range(TIMES)]
            if all(copy.exists() for copy in copies):
                continue
            table, told = parquet.read_table(file), parquet.read_metadata(file).metadata
            header = json.loads(told[PARQUET_KEY])
            about = header["metadata"]
            for number, copy in enumerate(copies):
                renamed = {**about, **{key: f"{number}-{about[key]}" for key in (NAME, TRACE_HASH)}}
                other = table.replace_schema_metadata(
                    {PARQUET_KEY: json.dumps({**header, "metadata": renamed}), END_MARK: told[END_MARK.encode()]}
                )
                unfinished = copy.with_suffix(".unfinished")
                parquet.write_table(other, unfinished, compression="zstd")
                unfinished.rename(copy)
        return place

    def tables(self, size: str) -> Path:
        """Where the tables of that data set are."""
        return self.directory / f"tables-{size}"
