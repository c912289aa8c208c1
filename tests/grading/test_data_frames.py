"""What a solution that is a function of DataFrames gives is taken as files of Parquet, and refused where it is none."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from mqlab.grading.data_frames import MOST_BYTES, MOST_ROWS, Frames
from mqlab.grading.judging import FIRST_HIDDEN, hidden_seeds
from mqlab.grading.values import WireError


def test_hidden_seeds_of_a_job_for_many_are_neighbours() -> None:
    seeds = hidden_seeds(b"key", "ada", "21/where-the-time-went", 20, 50)
    assert len(set(seeds)) == 20
    assert len({(seed - 1) // 50 for seed in seeds}) == 1
    assert min(seeds) >= FIRST_HIDDEN
    assert seeds == hidden_seeds(b"key", "ADA ", "21/where-the-time-went", 20, 50)
    assert not set(seeds) & set(hidden_seeds(b"key", "bob", "21/where-the-time-went", 20, 50))
    assert len(set(hidden_seeds(b"key", "ada", "21/where-the-time-went", 70, 50))) == 70


def _file(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


ROWS = _file(pa.table({"world": ["w"]}))
MANY = _file(pa.table({"n": pa.nulls(MOST_ROWS // 2 + 1)}))
REFUSED = {
    "no Parquet": ([b"PAR1 nothing"], [], "no Parquet"),
    "empty": ([b""], [], "no Parquet"),
    "too many rows": ([MANY, MANY], [], "more than 1,000,000 rows"),
    "too large": ([ROWS, bytes(MOST_BYTES)], [], "more than 16 MiB"),
    "no list of tasks": ([ROWS], "many", "number of rows"),
    "no number of rows": ([ROWS], [1, "2"], "number of rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_solution_sends_in_place_of_a_dataframe_is_refused(name: str, tmp_path: Path) -> None:
    contents, tasks, why = REFUSED[name]
    with pytest.raises(WireError, match=why):
        Frames(tmp_path).take([{}, tasks, [b64encode(content).decode() for content in contents]])


NONE: list[list[Any]] = [[], [1], [{}, [], 7], [{}, [], ["not base64 \ud800"]], [{}, [], [None]], [{}, [], [["x"]]]]


@pytest.mark.parametrize("told", NONE)
def test_what_is_no_dataframe_at_all_is_refused(told: list[Any], tmp_path: Path) -> None:
    with pytest.raises(WireError, match="no DataFrame"):
        Frames(tmp_path).take(told)
