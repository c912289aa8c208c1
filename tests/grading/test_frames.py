"""A solution that is a function of DataFrames runs where its own Spark is, and is judged as if it ran here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from mqlab.check import find_check
from mqlab.grading.confine import Limits
from mqlab.grading.frames import MOST_BYTES, MOST_ROWS, Frames
from mqlab.grading.judging import FIRST_HIDDEN, hidden_seeds
from mqlab.grading.students_process import StudentsProcess
from mqlab.grading.values import WireError
from mqlab.labs import many_worlds
from mqlab.labs.build import read_lab
from mqlab.labs.reference import reference_answers

ROOT = Path(__file__).parents[2]
LARGE = {"21_where_the_time_went": "21/where-the-time-went", "25_cluster": "25/longest-silence"}
"""A check of many worlds, and one that looks at tasks, too."""


def _source(lab: str) -> Path:
    return ROOT / "labs" / "sources" / f"{lab}.py"


@pytest.fixture(scope="module")
def far_side() -> Iterator[StudentsProcess]:
    """One process, and so one Java, for the solutions of both labs."""
    cells = [cell.source for lab in LARGE for cell in read_lab(_source(lab)).tagged("exercise")]
    limits = Limits().with_java()
    with StudentsProcess(cells, module="solutions", limits=limits, patience_s=100, asleep_s=500) as there:
        yield there


@pytest.mark.parametrize(("lab", "check"), LARGE.items(), ids=LARGE.values())
def test_a_reference_solution_passes_with_the_same_words_as_in_one_process(
    lab: str, check: str, far_side: StudentsProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLAB_SPARK_MASTER", "local[1]")
    monkeypatch.setattr(many_worlds, "WORLDS_IN_ONE_JOB", 10)
    (here,) = reference_answers(read_lab(_source(lab)))[check]
    (there,) = far_side.answers([here.__name__])
    got = find_check(check).play(there, seeds=[1, 2])
    assert got.passed, got
    assert repr(got) == repr(find_check(check).play(here, seeds=[1, 2]))


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
