"""The events of a played world as Arrow batches: what a Spark task makes."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from mqlab.data_sets.named_worlds import WorldSpec, played_world
from mqlab.lab import Lab
from mqlab.trace.record import KIND
from mqlab.trace.recorder import BATCH_ROWS, arrow_arrays
from mqlab_spark.schema import WORLD


@cache
def spare_the_collector() -> None:
    """Let the garbage collector of this process pass over all that is loaded by now; a second call does nothing.

    Behind each task Spark's Python worker has all objects collected. With what is imported here that takes as long as
    playing a world of 5,600 events.
    """
    gc.freeze()


def event_batches(lab: Lab, world: str, schema: Any, kinds: frozenset[str] | None = None) -> Iterator[Any]:
    """The events of a world as pyarrow RecordBatches of 10,000 rows, those columns that the Arrow schema has.

    `world` is the value of the column with the world's name; `kinds` leaves all other kinds of events out.
    """
    import pyarrow as pa

    rows = lab.history.rows()
    wanted = iter(rows) if kinds is None else (row for row in rows if row[KIND] in kinds)
    named = schema.get_field_index(WORLD)
    while batch := list(islice(wanted, BATCH_ROWS)):
        arrays = arrow_arrays(batch, schema)
        if named >= 0:
            arrays[named] = pa.repeat(pa.scalar(world, pa.string()), len(batch))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def world_row(spec: WorldSpec) -> dict[str, Any]:
    """Play a world and say what became of it: a row of the table of worlds (`world_source.WORLDS`)."""
    lab, problem = played_world(spec)
    return {
        "world": spec.name,
        "scenario": spec.scenario,
        "seed": str(spec.seed),
        "parameters": json.dumps(dict(spec.parameters), sort_keys=True),
        "events": len(lab.history),
        "slices": lab.world.slice_no,
        "now_us": lab.world.now_us,
        "trace_hash": lab.trace_hash(),
        "problem": None if problem is None else f"{type(problem).__name__}: {problem}",
    }
