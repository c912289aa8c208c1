"""What it costs to build the tables: time, memory and bytes, and whether an event costs more when there are many.

`python -m benchmarks.spark_build TRACES OUT` is one measurement, on two cores and in the session's usual 1 GB. What
is compiled and loaded only once is so before, by a build of 5,000 events.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import Figure, figure, shown
from benchmarks.spark_data import Wanted
from benchmarks.spark_run import Meter, in_a_process, spark_on, tell
from mqlab_spark import build

CORES = 2

GROWTH = 1.3


def measure(traces: Path, out: Path) -> dict[str, Any]:
    """Build the tables of these traces, anew."""
    shutil.rmtree(out, ignore_errors=True)
    seconds: dict[str, float] = {}
    with spark_on(CORES) as spark, TemporaryDirectory() as directory:
        first = Path(directory, "first")
        first.mkdir()
        shutil.copy(min(traces.glob("*.parquet")), first)
        build(spark, first, Path(directory, "tables"))
        with Meter() as meter:
            place = build(spark, traces, out, lambda name, _, took: seconds.update({name: took}))
    entries = place.entries()
    return {
        "events": entries["events"].rows,
        **meter.cost._asdict(),
        "tables": seconds,
        "mb": {layer: _mb(out / layer) for layer in ("bronze", "silver", "gold")},
        "traces_mb": _mb(traces),
    }


def _mb(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6


def building(wanted: Wanted) -> Iterator[Figure]:
    """Figures of each size, from small to large, and what an event costs beside the smallest."""
    costs: list[tuple[str, dict[str, Any]]] = []
    for size in wanted.sizes:
        measured = in_a_process("spark_build", wanted.traces(size), wanted.tables(size))
        costs.append((size, measured))
        events = measured["events"]
        name = f"build of {events / 1e6:,.1f} M events"
        yield shown(f"{name}: time", measured["seconds"], "s")
        yield shown(f"{name}: CPU for each event", 1e6 * measured["cpu_seconds"] / events, "us")
        yield shown(f"{name}: peak of the JVM", measured["jvm_mb"], "MB")
        yield shown(f"{name}: peak of Python's workers", measured["workers_mb"], "MB")
        for layer, mb in measured["mb"].items():
            yield shown(f"{name}: {layer}", 1e6 * mb / events, "bytes/event")
        yield shown(f"{name}: its traces", 1e6 * measured["traces_mb"] / events, "bytes/event")
        for table, seconds in sorted(measured["tables"].items(), key=lambda each: -each[1])[:5]:
            yield shown(f"{name}: table {table}", seconds, "s")
    smallest, first = costs[0]
    for size, measured in costs[1:]:
        for what, key in (("time", "seconds"), ("CPU", "cpu_seconds")):
            each, least = (1e6 * told[key] / told["events"] for told in (measured, first))
            yield figure(f"{what} for each event, {size} / {smallest}", each, "us", versus=least, aim=GROWTH,
                         better="lower")  # fmt: skip


if __name__ == "__main__":
    tell(measure(Path(sys.argv[1]), Path(sys.argv[2])))
