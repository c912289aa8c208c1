"""Whole worlds and their traces: every scenario emits what the catalogue promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.lab import Lab
from mqlab.trace.catalogue import check_row
from mqlab.trace.digest import TraceDigest
from mqlab.trace.recorded import read_json_lines, read_parquet
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder


def played(name: str, **parameters: object) -> Lab:
    return scenarios.get(name).play(7, parameters=parameters)


@pytest.mark.parametrize("name", scenarios.names())
def test_every_event_of_a_scenario_is_as_the_catalogue_says(name: str) -> None:
    lab = played(name)
    assert len(lab.history) > 50
    for row in lab.history.rows():
        check_row(row)


def test_a_recorded_world_has_the_hash_of_the_world(tmp_path: Path) -> None:
    lab = played("first-message")
    for recorder, read in ((JsonLinesRecorder, read_json_lines), (ParquetRecorder, read_parquet)):
        with recorder(tmp_path / "trace", {"scenario": "first-message"}) as sink:
            for row in lab.history.rows():
                sink(row)
        digest = TraceDigest()
        for row in read(tmp_path / "trace"):
            digest(row)
        assert digest.hexdigest() == lab.trace_hash()
